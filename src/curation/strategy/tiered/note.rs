//! The note that replaces left-out messages. It tells how many they are and how to get them, and
//! contains their ledger.

use crate::curation::ledger::Ledger;
use crate::curation::unit::History;
use crate::session::message::{Message, Role};

/// Maximum number of bytes read for the ledger: first the messages of the user, then those of the
/// model, each from the newest on. The limit keeps this quick; the summary of a longer history
/// contains its ledger.
const READ: usize = 12 * 1024;

/// A system message about left-out messages.
pub(super) struct Note {
    pub(super) content: String,
    pub(super) tokens: u64,
}

impl Note {
    /// Builds the note about the messages at `dropped`, in at most `room` tokens. Leaves the ledger
    /// out if only the ledger is too large. Returns `None` if no message is left out or nothing
    /// fits.
    pub(super) fn of(history: &History<'_>, dropped: &[usize], room: u64) -> Option<Self> {
        let (first, last) = (*dropped.first()?, *dropped.last()?);
        let number = |index: usize| history.messages[index].number;
        let head = format!(
            "[{} earlier messages are left out between msg-{} and msg-{}; the log holds all of them]",
            dropped.len(),
            number(first),
            number(last)
        );
        let bare = history.measure.note(&head);
        if bare > room {
            return None;
        }
        let ledger = Ledger::of(read(history, dropped));
        // Joining the two costs a token or two.
        let ledger = ledger.within(room.saturating_sub(bare + 2), history.measure).render();
        if !ledger.is_empty() {
            let content = format!("{head}\n\n{ledger}");
            let tokens = history.measure.note(&content);
            if tokens <= room {
                return Some(Self { content, tokens });
            }
        }
        Some(Self { content: head, tokens: bare })
    }

    /// Adds lines of the left-out messages, if the whole then has at most `room` tokens.
    pub(super) fn with(self, history: &History<'_>, quoted: &str, room: u64) -> Self {
        let content = format!("{}\n\n{quoted}", self.content);
        let tokens = history.measure.note(&content);
        if tokens <= room { Self { content, tokens } } else { self }
    }
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
