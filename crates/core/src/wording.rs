//! Texts that several parts of the program write alike: counts with their nouns, and messages with
//! their calls.

use serde::{Deserialize, Serialize};

/// Returns a count with its noun, in the singular or plural: `1 item`, `2 memories`.
pub fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// Returns lines as they are named after a colon: `14`, or `14-20`.
pub fn span(first: u64, last: u64) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Returns a message with its calls, each a name and arguments, on lines of their own below the
/// content. This is what stands behind the id of a message that a window left out.
pub fn in_full<'a>(content: &str, calls: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = content.to_owned();
    for (name, arguments) in calls {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{name} {arguments}\n");
    }
    text
}

/// Returns the lines from `first`, counted from 1, to `last` or the end, to the byte. `None` if the
/// text has no line `first`, or if it comes after `last`.
pub fn lines(text: &str, first: u64, last: Option<u64>) -> Option<&str> {
    let end = |count: u64| {
        let lines = text.split_inclusive('\n').take(usize::try_from(count).unwrap_or(usize::MAX));
        lines.map(str::len).sum::<usize>()
    };
    let start = end(first.checked_sub(1)?);
    let end = last.map_or(text.len(), end);
    (start < end).then(|| &text[start..end])
}

/// How many messages of a conversation are in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SentMessages"))]
pub struct SentCount {
    /// Number of messages in the window.
    pub sent: u64,
    /// Number of messages in the conversation.
    pub of: u64,
    /// Number of messages of which the window has only a part.
    pub shortened: u64,
}

impl std::fmt::Display for SentCount {
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
    fn lines_are_given_to_the_byte() {
        let text = "a\r\n\nc";
        for (first, last, expected) in [
            (1, None, Some(text)),
            (1, Some(1), Some("a\r\n")),
            (2, Some(2), Some("\n")),
            (2, Some(9), Some("\nc")),
            (3, None, Some("c")),
            (3, Some(2), None),
            (4, None, None),
            (0, None, None),
        ] {
            assert_eq!(lines(text, first, last), expected, "{first}-{last:?}");
        }
        assert_eq!(lines("", 1, None), None);
    }

    #[test]
    fn calls_stand_below_the_content() {
        assert_eq!(in_full("x", []), "x");
        assert_eq!(in_full("x", [("run", "{}")]), "x\nrun {}\n");
        assert_eq!(in_full("", [("a", "{}"), ("b", "")]), "a {}\nb \n");
    }

    #[test]
    fn one_thing_is_singular() {
        let texts = [0, 1, 2].map(|count| counted(count, "message"));
        assert_eq!(texts, ["0 messages", "1 message", "2 messages"]);
    }
}
