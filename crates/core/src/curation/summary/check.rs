//! Checks what a model writes about a conversation against what was said in it.

use std::collections::BTreeSet;

use crate::retrieval::stop::is_stop_word;
use crate::retrieval::words::{stems, stems_where};
use crate::visible::visible;

/// Maximum number of bytes of a model's text that are read. A summary has only a few sentences.
const READ: usize = 16 << 10;
/// Maximum length of the confirmed sentences together, in bytes.
const KEPT: usize = 2 << 10;
/// Minimum share of a sentence's words that must occur in the conversation.
const SAID: f64 = 0.5;
/// Stems of words with which a summary talks about the conversation itself.
const TELLING: &[&str] = &[
    "agre", "ask", "assist", "convers", "decid", "discuss", "explain", "model", "request", "said",
    "summari", "talk", "then", "they", "told", "user", "want",
];
/// Words that address the reader of the summary.
const ADDRESSING: &[&str] = &["you", "your", "yourself", "instructions", "instruction", "prompt"];

/// The words of a conversation, for checking texts about it.
pub(super) struct KnownWords {
    text: String,
    stems: BTreeSet<String>,
}

impl KnownWords {
    /// Reads the texts of a conversation.
    pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut text, mut words) = (String::new(), BTreeSet::new());
        for part in texts {
            words.extend(stems(part));
            text.push('\n');
            text += &folded(part);
        }
        Self { text, stems: words }
    }

    /// Returns whether somebody said these words, in this order and not as a part of longer words.
    fn has(&self, words: &str) -> bool {
        let (words, letter) = (folded(words), |c: char| c.is_alphanumeric() || c == '_');
        self.text.match_indices(&words).any(|(at, _)| {
            let (before, behind) = (&self.text[..at], &self.text[at + words.len()..]);
            !before.ends_with(letter) && !behind.starts_with(letter)
        })
    }
}

impl KnownWords {
    /// Returns the sentences of a model's text that the conversation confirms. Leaves out each
    /// sentence that has a path, a quoted command, an identifier or a number that nobody said, that
    /// addresses its reader, or that has mostly words that nobody used, or no meaningful words. Also
    /// leaves out repetitions, sentences with hidden characters, lines that look like headings,
    /// fences or tables, and what exceeds [`READ`] or [`KEPT`].
    pub(super) fn confirmed(&self, text: &str) -> String {
        let text = &text[..text.floor_char_boundary(READ)];
        let mut kept: Vec<&str> = Vec::new();
        let mut left = KEPT;
        for line in text.lines().map(str::trim).filter(|line| is_prose(line)) {
            for sentence in sentences(line) {
                // Hidden characters could make a sentence look different from what it says.
                let plain = visible(sentence) == sentence;
                let is_new = !kept.contains(&sentence);
                if plain && is_new && sentence.len() <= left && bears_out(sentence, self) {
                    left -= sentence.len();
                    kept.push(sentence);
                }
            }
        }
        kept.join(" ")
    }
}

fn bears_out(sentence: &str, told: &KnownWords) -> bool {
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    specifics(sentence).iter().all(|specific| told.has(specific))
        && is_mostly(sentence, &told.stems)
        && !words.any(|word| ADDRESSING.contains(&word))
}

/// Returns the sentences of a line, without marks of a list before them.
fn sentences(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.trim_start_matches(['-', '*', '•', ' ']);
    std::iter::from_fn(move || {
        let end = rest.char_indices().find_map(|(at, c)| {
            let after = &rest[at + c.len_utf8()..];
            let is_end = match c {
                '.' | '!' | '?' => after.is_empty() || after.starts_with(char::is_whitespace),
                _ => matches!(c, '。' | '！' | '？'),
            };
            is_end.then_some(at + c.len_utf8())
        });
        let (sentence, more) = rest.split_at(end.unwrap_or(rest.len()));
        rest = more.trim_start();
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// Returns whether a line is prose, and not empty, a heading, a fence or a line of a table.
fn is_prose(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(['#', '[', '<', '|', '`', '=', '~']) && line != "---"
}

/// Returns the parts of a sentence that must have been said word for word.
fn specifics(sentence: &str) -> Vec<String> {
    let quoted = sentence.split('`').skip(1).step_by(2);
    let mut found: Vec<String> = quoted.map(str::to_owned).collect();
    let mark = |c: char| !c.is_alphanumeric() && !"/\\_-.~@$€%".contains(c);
    for word in sentence.split_whitespace() {
        let word = word.trim_start_matches(mark);
        let word = word.trim_end_matches(|c: char| mark(c) || ".-".contains(c));
        let inner = word.get(1..).unwrap_or("");
        let of_code = word.contains(|c: char| c.is_ascii_digit() || "/\\_@=".contains(c))
            || word.contains("::")
            || word.starts_with("--")
            || inner.contains('.')
            || inner.contains(char::is_uppercase) && word.contains(char::is_lowercase);
        if of_code {
            found.push(word.to_owned());
        }
    }
    found.retain(|specific| !specific.trim().is_empty());
    found
}

/// Returns whether a sentence has meaningful words, and enough of their stems are in `said`.
fn is_mostly(sentence: &str, said: &BTreeSet<String>) -> bool {
    let mut words: BTreeSet<String> =
        stems_where(sentence, |word| !is_stop_word(word)).into_iter().collect();
    if words.is_empty() {
        return false;
    }
    words.retain(|word| !TELLING.contains(&word.as_str()));
    let known = words.iter().filter(|word| said.contains(*word)).count();
    known as f64 >= SAID * words.len() as f64
}

/// Returns a text in lower case, with one space between words.
fn folded(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
