//! Cuts a large result to its beginning and end.

use crate::session::message::Message;

/// Number of bytes shown from the beginning and from the end of a result that is too large.
const ENDS: [usize; 2] = [1000, 600];

/// Returns the beginning and the end of a large result, with a mark between them. The mark names the
/// message if the reader can ask for it.
pub(super) fn ends(message: &Message, can_read: bool) -> Option<String> {
    let text = &*message.content;
    let [head, tail] = ENDS;
    if text.len() <= head + tail {
        return None;
    }
    let (head, tail) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    let way = match can_read {
        true => format!("; `read` shows msg-{} in full", message.number),
        false => String::new(),
    };
    let left_out = tail - head;
    Some(format!("{}\n[… {left_out} bytes left out{way} …]\n{}", &text[..head], &text[tail..]))
}
