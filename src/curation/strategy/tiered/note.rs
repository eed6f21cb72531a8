//! The note that replaces left-out messages. It says how many messages are left out and that the
//! log holds them, and contains their ledger.

use crate::curation::ledger::Ledger;
use crate::curation::reading::length;
use crate::curation::unit::History;
use crate::session::message::{Message, Role};

/// Maximum number of bytes read for the ledger from the messages of the user and of the model,
/// beginning with the newest. The limits keep reading quick; in a longer history, a summary
/// contains the ledger. Users write little, but what they decide must not be lost.
const READ: [(Role, usize); 2] = [(Role::User, 9 * 1024), (Role::Assistant, 3 * 1024)];

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

/// Returns the text that says how many messages are left out and where; empty if none are.
pub(super) fn head(history: &History<'_>, dropped: &[usize]) -> String {
    let (Some(first), Some(last)) = (dropped.first(), dropped.last()) else { return String::new() };
    let number = |index: usize| history.messages[index].number;
    if dropped.len() == 1 {
        return format!("[msg-{} is left out; the log holds it]", number(*first));
    }
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
    let messages = read(history, dropped);
    let ledger = match history.words {
        Some(words) => words.ledger_of(&messages),
        None => Ledger::of(messages),
    };
    ledger.within(room, history.measure).render()
}

/// Chooses the messages that are read for the ledger, in the order of the log.
fn read<'h>(history: &History<'h>, dropped: &[usize]) -> Vec<&'h Message> {
    let mut chosen: Vec<usize> = Vec::new();
    for (role, mut left) in READ {
        for &index in dropped.iter().rev() {
            let message = history.messages[index];
            if message.role != role || message.is_notice() {
                continue;
            }
            let length = length(message);
            if length > left {
                // A long text of the user, such as a pasted log, must not hide the others.
                if role == Role::User { continue } else { break }
            }
            left -= length;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|index| history.messages[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{history, plain, said};

    #[test]
    fn one_left_out_message_is_named_alone() {
        let said = [said(4, Role::User, "one"), said(5, Role::User, "two")];
        let measure = plain();
        let history = history(&said, &measure);
        assert_eq!(head(&history, &[0]), "[msg-4 is left out; the log holds it]");
        let both =
            "[2 earlier messages are left out between msg-4 and msg-5; the log holds all of them]";
        assert_eq!(head(&history, &[0, 1]), both);
    }

    #[test]
    fn a_long_text_of_the_user_does_not_hide_a_decision() {
        let log = "all fine\n".repeat(2000);
        let said =
            [said(1, Role::User, "Never call the cloud from tests."), said(2, Role::User, &log)];
        let measure = plain();
        let history = history(&said, &measure);
        assert!(ledger(&history, &[0, 1], 1000).contains("Never call the cloud"));
    }
}
