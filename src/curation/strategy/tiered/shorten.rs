//! Writes the texts that replace messages that are not shown whole.

use super::form::Form;
use crate::session::message::Message;

/// Number of bytes shown from the beginning of a large result. Its first lines say what it is.
const HEAD: usize = 1000;
/// Number of bytes shown from the end of a large result, where errors and totals are.
const TAIL: usize = 600;

/// Returns the text that replaces a message in the given form; `None` if no text replaces it.
pub(super) fn text(message: &Message, form: Form) -> Option<String> {
    let number = message.number;
    match form {
        Form::Whole | Form::Dropped => None,
        Form::Spilled => ends(message),
        Form::Masked => Some(format!("[Old tool result left out; it is msg-{number} in the log]")),
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
        "{head}\n[… {missing} bytes are left out here; msg-{} in the log is complete …]\n{tail}",
        message.number
    ))
}
