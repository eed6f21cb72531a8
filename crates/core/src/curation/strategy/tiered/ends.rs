//! Cuts a large result to its beginning and end.

use crate::curation::unit::History;
use crate::session::message::Role;

/// Number of bytes shown from the beginning and from the end of a result that is too large.
const ENDS: [usize; 2] = [1000, 600];

/// Returns the beginning and the end of a large result, with a mark between them, and their cost in
/// tokens; `None` for any other message. The mark names the message if the reader can ask for it.
pub(super) fn ends(history: &History<'_>, index: usize) -> Option<(String, u64)> {
    let message = history.messages[index];
    let text = &*message.content;
    let [head, tail] = ENDS;
    if message.role != Role::Tool || text.len() <= head + tail {
        return None;
    }
    let (head, tail) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    let way = match history.can_read {
        true => format!("; `read` shows msg-{} in full", message.number),
        false => String::new(),
    };
    let left_out = tail - head;
    let text =
        format!("{}\n[… {left_out} bytes left out{way} …]\n{}", &text[..head], &text[tail..]);
    let cost = history.measure.note(&text);
    Some((text, cost))
}
