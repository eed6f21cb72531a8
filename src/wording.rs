//! Writes counts with their nouns.

use serde::{Deserialize, Serialize};

/// Returns a count with its noun, in the singular or plural: `1 item`, `2 memories`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// How many messages of a conversation are in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "server", schemars(rename = "SentMessages"))]
pub struct Sent {
    /// Number of messages in the window.
    pub sent: u64,
    /// Number of messages in the conversation.
    pub of: u64,
    /// Number of messages of which the window has only a part.
    pub shortened: u64,
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sent, of, shortened } = self;
        write!(f, "{sent} of {} sent", counted(*of, "message"))?;
        match shortened {
            0 => Ok(()),
            _ => write!(f, ", {shortened} shortened"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_nouns() {
        let counts = [counted(1, "item"), counted(0, "memory"), counted(2, "message")];
        assert_eq!(counts, ["1 item", "0 memories", "2 messages"]);
    }

    #[test]
    fn one_thing_is_singular() {
        let texts = [0, 1, 2].map(|count| counted(count, "message"));
        assert_eq!(texts, ["0 messages", "1 message", "2 messages"]);
    }
}
