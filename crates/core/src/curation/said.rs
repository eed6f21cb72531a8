//! The user's words in a conversation: verbatim, newest first, and dated by turn.
//!
//! It is not claimed that a statement still holds. Nothing that a program said counts as the user's
//! words. Nothing here knows a language.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::retrieval::words::ends;
use crate::session::message::{Message, Role};
use crate::tokens::Measure;

/// Maximum number of bytes of a message; of a longer one, half is kept from each end. It is mostly a
/// log or a file.
const LONGEST: usize = 2000;
/// Heading above the words.
const HEADING: &str = "## What the user said, newest first";
/// Maximum cost of the line that counts what is left out, in tokens.
const REMARK: u64 = 16;
/// Room below which no further words are tried, in tokens.
const LEAST_ROOM: u64 = 16;

/// What the user said, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UserWords {
    /// The words of each message. Equal words of a later message replace earlier ones.
    pub words: Vec<MessageWords>,
    /// Number of turns that the words are from.
    turns: u64,
    /// Number of messages that were left out for lack of room.
    left_out: u64,
}

/// The words of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MessageWords {
    text: String,
    /// Number of the message.
    pub number: u64,
    /// Turn of the message, counted from 1.
    turn: u64,
}

impl UserWords {
    /// Returns what the user says in `messages`, which must be in the order of the log.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        Self::default().and(messages)
    }

    /// Adds what the user says in newer `messages`, which must be in the order of the log.
    #[must_use]
    pub fn and<'a>(mut self, messages: impl IntoIterator<Item = &'a Message>) -> Self {
        for message in messages {
            if message.role != Role::User || message.is_notice() {
                continue;
            }
            self.turns += 1;
            let text = message.content.trim();
            if !text.is_empty() {
                let [beginning, end] = ends(text, LONGEST);
                let gap = if end.is_empty() { "" } else { "\n[…]\n" };
                let text = format!("{beginning}{gap}{end}");
                self.words.push(MessageWords { text, number: message.number, turn: self.turns });
            }
        }
        let mut later = HashSet::new();
        let is_last: Vec<bool> =
            self.words.iter().rev().map(|words| later.insert(words.text.clone())).collect();
        let mut is_last = is_last.into_iter().rev();
        self.words.retain(|_| is_last.next().unwrap_or(true));
        self
    }

    /// Reduces the words to at most `tokens` tokens of rendered text, newest first. Words that do
    /// not fit do not hide older ones that do.
    #[must_use]
    pub fn within(mut self, tokens: u64, measure: &Measure) -> Self {
        let whole = self.render();
        if whole.len() as u64 <= tokens.saturating_mul(8) && measure.text(&whole) <= tokens {
            return self;
        }
        let count = self.words.len() as u64;
        let mut left = tokens.saturating_sub(measure.text(HEADING) + REMARK);
        let mut chosen = Vec::new();
        while left >= LEAST_ROOM
            && let Some(words) = self.words.pop()
        {
            let cost = measure.text(&words.line()) + 1;
            if cost <= left {
                left -= cost;
                chosen.push(words);
            }
        }
        chosen.reverse();
        let taken = |words: Vec<MessageWords>| Self {
            left_out: self.left_out + count - words.len() as u64,
            turns: self.turns,
            words,
        };
        let mut said = taken(chosen);
        // The whole text can have more tokens than the sum over its lines.
        while measure.text(&said.render()) > tokens && !said.words.is_empty() {
            said = taken(said.words.split_off(1));
        }
        said
    }

    /// Renders the words as Markdown, each with its turn and the id of its message. Empty if there
    /// are none.
    pub fn render(&self) -> String {
        let mut lines: Vec<String> = self.words.iter().rev().map(MessageWords::line).collect();
        if lines.is_empty() {
            return String::new();
        }
        if self.left_out > 0 {
            lines.push(format!("- {} more left out for lack of room", self.left_out));
        }
        format!("{HEADING}\n{}", lines.join("\n"))
    }
}

impl MessageWords {
    fn line(&self) -> String {
        let Self { text, number, turn } = self;
        format!("- Turn {turn} (msg-{number}): {}", text.replace('\n', "\n  "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{conversation as messages, plain};

    #[test]
    fn the_users_words_are_kept_verbatim_in_any_language() {
        let messages = messages(&[
            ("u", "Nie nach main schieben!\nUnd: Port 5433."),
            ("a", "We decided to go with SQLite."),
            ("u", "weiter"),
            ("u", "不要修改旧文件。"),
            ("u", "<system-reminder>nothing</system-reminder>"),
            ("u", "weiter"),
        ]);
        let said = UserWords::of(&messages);
        let expected = "## What the user said, newest first\n- Turn 4 (msg-6): weiter\n\
                        - Turn 3 (msg-4): 不要修改旧文件。\n\
                        - Turn 1 (msg-1): Nie nach main schieben!\n  Und: Port 5433.";
        assert_eq!(said.render(), expected);
        let folded =
            messages.iter().fold(UserWords::default(), |said, message| said.and([message]));
        assert_eq!(folded, said, "folded one by one");
        let stored = serde_json::to_string(&said).unwrap();
        assert_eq!(serde_json::from_str::<UserWords>(&stored).unwrap(), said);
    }

    #[test]
    fn what_does_not_fit_is_counted_and_hides_nothing() {
        let log = "all fine\n".repeat(150);
        let words: Vec<String> = (0..40).map(|at| format!("Part {at} is done.")).collect();
        let mut said = vec![("u", "Never call the cloud from tests."), ("u", &*log)];
        said.extend(words.iter().map(|text| ("u", &**text)));
        let messages = messages(&said);
        let whole = UserWords::of(&messages);
        for tokens in [0, 20, 60, 100, 200, 480, 2000] {
            let said = whole.clone().within(tokens, &plain());
            assert!(plain().text(&said.render()) <= tokens, "{tokens}: {}", said.render());
            assert_eq!(said.words.len() as u64 + said.left_out, whole.words.len() as u64);
            assert!(said.words.is_sorted_by_key(|words| words.number));
            let has_rule = said.render().contains("Never call the cloud");
            assert_eq!(has_rule, tokens >= 480, "{tokens}: {}", said.render());
        }
        assert_eq!(whole.clone().within(2000, &plain()), whole);
    }
}
