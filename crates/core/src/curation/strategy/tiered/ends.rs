//! Cuts a large result to its beginning and end.

use crate::session::message::Message;

/// Number of bytes shown from the beginning and from the end of a result that is too large.
const ENDS: [usize; 2] = [1000, 600];

/// Returns the beginning and the end of a large result, with a mark that names the message.
pub(super) fn ends(message: &Message) -> Option<String> {
    let text = &*message.content;
    let [head, tail] = ENDS;
    if text.len() <= head + tail {
        return None;
    }
    let (head, tail) = (text.floor_char_boundary(head), text.ceil_char_boundary(text.len() - tail));
    Some(format!(
        "{}\n[… {} bytes left out; `read` shows msg-{} in full …]\n{}",
        &text[..head],
        tail - head,
        message.number,
        &text[tail..]
    ))
}
