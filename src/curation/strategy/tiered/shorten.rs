//! Texts that replace messages which are not shown whole.

use super::fold::Form;
use crate::session::message::Message;

/// Number of bytes shown from the beginning of a large result. Its first lines say what it is.
const HEAD: usize = 1000;
/// Number of bytes shown from the end of a large result, where errors and totals are.
const TAIL: usize = 600;

/// Returns the text of a message in the given form, or `None` if the form has no text of its own.
pub(super) fn text(message: &Message, form: Form) -> Option<String> {
    let number = message.number;
    match form {
        Form::Whole | Form::Dropped => None,
        Form::Spilled => ends(message),
        Form::Repeated(newer) => Some(format!(
            "[Older reading left out: the file was read again in msg-{newer}; get-messages \
             returns msg-{number}]"
        )),
        Form::Masked => Some(format!("[Old result left out; get-messages returns msg-{number}]")),
    }
}

fn ends(message: &Message) -> Option<String> {
    let text = &*message.content;
    if text.len() <= HEAD + TAIL {
        return None;
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let head = head.rfind('\n').filter(|at| *at > HEAD / 2).map_or(head, |at| &head[..at]);
    let tail = &text[text.ceil_char_boundary(text.len() - TAIL)..];
    let tail = tail.find('\n').filter(|at| *at < TAIL / 2).map_or(tail, |at| &tail[at + 1..]);
    let missing = text.len() - head.len() - tail.len();
    Some(format!(
        "{head}\n[… {missing} bytes are left out here; get-messages returns all of msg-{} …]\n{tail}",
        message.number
    ))
}
