//! The note that replaces left-out messages. It says how many there are and how to get them, and
//! contains their ledger.

use crate::curation::ledger::Ledger;
use crate::curation::unit::History;
use crate::session::message::{Message, Role};

/// Maximum number of bytes read for the ledger: first the messages of the user, then those of the
/// model, each from the newest on. The limit keeps reading quick; in a longer history, a summary
/// contains the ledger.
const READ: usize = 3 * 1024;

/// A system message about left-out messages.
pub(super) struct Note {
    pub(super) content: String,
    pub(super) tokens: u64,
}

impl Note {
    pub(super) fn new(history: &History<'_>, content: String) -> Self {
        let tokens = history.measure.note(&content);
        Self { content, tokens }
    }
}

/// Returns the text that says how many messages are left out; empty if none are.
pub(super) fn head(history: &History<'_>, dropped: &[usize]) -> String {
    let (Some(first), Some(last)) = (dropped.first(), dropped.last()) else { return String::new() };
    let number = |index: usize| history.messages[index].number;
    format!(
        "[{} earlier messages are left out between msg-{} and msg-{}; the log holds all of them]",
        dropped.len(),
        number(*first),
        number(*last)
    )
}

/// Returns the ledger of left-out messages, in at most `room` tokens.
pub(super) fn ledger(history: &History<'_>, dropped: &[usize], room: u64) -> String {
    if dropped.is_empty() || room == 0 {
        return String::new();
    }
    Ledger::of(read(history, dropped)).within(room, history.measure).render()
}

/// Chooses the messages that are read for the ledger, in the order of the log.
fn read<'h>(history: &History<'h>, dropped: &[usize]) -> Vec<&'h Message> {
    let mut left = READ;
    let mut chosen: Vec<usize> = Vec::new();
    for role in [Role::User, Role::Assistant] {
        for &index in dropped.iter().rev().filter(|index| history.messages[**index].role == role) {
            let message = history.messages[index];
            let arguments: usize = message.tool_calls.iter().map(|call| call.arguments.len()).sum();
            let length = message.content.len() + arguments;
            if length > left {
                break;
            }
            left -= length;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|index| history.messages[index]).collect()
}
