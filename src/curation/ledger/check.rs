//! Checks what a model writes about a conversation against what was said in it.

use std::collections::BTreeSet;

use super::amount::Amount;
use super::lexicon::Classes;
use super::number::quantities;
use super::sentence::{Cue, cues, sentences};
use super::subject::{Related, Subject, key, relations};
use super::{Entry, Kind, Ledger, Quantity, command};
use crate::retrieval::words::stems;
use crate::visible::visible;

/// Maximum number of bytes of a model's text that are read. A summary has only a few sentences.
const READ: usize = 16 << 10;
/// Maximum length of the confirmed sentences together, in bytes.
const KEPT: usize = 2 << 10;
/// Minimum share of a sentence's words that must occur in the conversation.
const SAID: f64 = 0.5;
/// Minimum share of a rule's words that must occur in an entry, so that the entry states the rule.
const STATED: f64 = 0.6;
/// Stems of words with which a summary talks about the conversation itself.
const TELLING: &[&str] = &[
    "agre", "ask", "assist", "convers", "decid", "discuss", "explain", "model", "request", "said",
    "summari", "talk", "then", "they", "told", "user", "want",
];
/// Words that address the reader of the summary.
const ADDRESSING: &[&str] = &["you", "your", "yourself", "instructions", "instruction", "prompt"];

/// The words of a conversation, for checking texts about it.
pub(crate) struct Told {
    text: String,
    stems: BTreeSet<String>,
}

impl Told {
    /// Reads the texts of a conversation.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
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

impl Ledger {
    /// Returns the sentences of a model's text that the conversation confirms. Leaves out each
    /// sentence that has a path, a command, an identifier or a number that nobody said, a value
    /// that no longer holds, a rule that nobody laid down, mostly words that nobody used, or no
    /// meaningful words. Also leaves out repetitions, sentences with hidden characters, lines that
    /// look like headings, fences or tables, and what exceeds [`READ`] or [`KEPT`].
    pub(crate) fn confirmed(&self, text: &str, told: &Told) -> String {
        let text = &text[..text.floor_char_boundary(READ)];
        let mut kept: Vec<&str> = Vec::new();
        let mut left = KEPT;
        for line in text.lines().map(str::trim).filter(|line| is_prose(line)) {
            for sentence in sentences(line) {
                // Hidden characters could make a sentence look different from what it says.
                let plain = visible(sentence) == sentence;
                let is_new = !kept.contains(&sentence);
                if plain && is_new && sentence.len() <= left && self.bears_out(sentence, told) {
                    left -= sentence.len();
                    kept.push(sentence);
                }
            }
        }
        kept.join(" ")
    }

    fn bears_out(&self, sentence: &str, told: &Told) -> bool {
        specifics(sentence).iter().all(|specific| told.has(specific))
            && !self.contradicts(sentence)
            && is_mostly(sentence, &told.stems)
            && (!lays_down(sentence) || self.entries.iter().any(|entry| states(entry, sentence)))
    }

    /// Returns whether a sentence gives a different amount of something than the ledger does.
    fn contradicts(&self, sentence: &str) -> bool {
        let values: Vec<&Quantity> = self.entries.iter().flat_map(|entry| &entry.values).collect();
        let subjects: Vec<Subject> = values.iter().map(|value| Subject::of(value)).collect();
        quantities(sentence).iter().any(|found| {
            let amount = Amount::of(&found.amount);
            let differs = |held: &Quantity| {
                let held = Amount::of(&held.amount);
                held.dimension == amount.dimension && held != amount
            };
            let related = relations(subjects.iter(), &Subject::of(found));
            let same = |(held, related): (&&Quantity, &Related)| {
                *related == Related::Same && differs(held)
            };
            values.iter().zip(&related).any(same)
        })
    }
}

/// Returns whether a line is prose, and not empty, a heading, a fence or a line of a table.
fn is_prose(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(['#', '[', '<', '|', '`', '=', '~']) && line != "---"
}

/// Returns the parts of a sentence that must have been said word for word.
fn specifics(sentence: &str) -> Vec<String> {
    let mut found = command::in_sentence(sentence);
    found.extend(sentence.split('`').skip(1).step_by(2).map(str::to_owned));
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
    let mut words = key(sentence);
    if words.is_empty() {
        return false;
    }
    words.retain(|word| {
        !TELLING.contains(&word.as_str()) && !Classes::of(word).any(&[Classes::STOP])
    });
    let known = words.iter().filter(|word| said.contains(*word)).count();
    known as f64 >= SAID * words.len() as f64
}

/// Returns whether a sentence states a rule or addresses its reader.
fn lays_down(sentence: &str) -> bool {
    let rule = |cue: Cue| matches!(cue, Cue::Constraint | Cue::Order);
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    cues(sentence).iter().any(|found| rule(found.cue))
        || words.any(|word| ADDRESSING.contains(&word))
}

/// Returns whether an entry states the rule of a sentence.
fn states(entry: &Entry, sentence: &str) -> bool {
    if matches!(entry.kind, Kind::Path | Kind::Command | Kind::Error) {
        return false;
    }
    let mut words = key(sentence);
    words.retain(|word| !TELLING.contains(&word.as_str()));
    let shared = key(&entry.text).intersection(&words).count();
    shared > 0 && shared as f64 >= STATED * words.len() as f64
}

/// Returns a text in lower case, with one space between words.
fn folded(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
