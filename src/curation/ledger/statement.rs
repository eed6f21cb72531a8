//! What a sentence of a person or of the model adds to the ledger, or takes from it.

use super::book::Book;
use super::number;
use super::sentence::{Cue, Found, cues};
use super::{Entry, Kind, Quantity, Voice, Withdrawal, Withdrawn};

/// Longer statements are cut: what a sentence lays down stands at its beginning by custom.
const LONGEST: usize = 280;
/// How many words behind "instead of" name what is replaced.
const REPLACED_WORDS: usize = 3;

/// Where a sentence stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) origin: u64,
    pub(super) voice: Voice,
}

impl Place {
    /// An entry of this place.
    pub(super) fn entry(self, kind: Kind, text: &str, values: Vec<Quantity>) -> Entry {
        let text = shortened(text.trim());
        Entry { kind, text, origin: self.origin, times: 1, voice: self.voice, values }
    }
}

/// Writes into the book what a sentence says.
pub(super) fn read(sentence: &str, place: Place, book: &mut Book) {
    let found = cues(sentence);
    let question = sentence.ends_with('?');
    let values = number::quantities(sentence);
    let kind = if question { None } else { kind(&found, place.voice) };
    for cue in &found {
        withdraw(*cue, sentence, book);
    }
    // A quantity of a question is asked about, not said.
    for value in values.iter().filter(|_| !question) {
        let observed = value.observed && !matches!(kind, Some(Kind::Constraint | Kind::Decision));
        let value = Quantity { observed, ..value.clone() };
        book.add(place.entry(Kind::Number, "", vec![value]));
    }
    if let Some(kind) = kind {
        let text = if kind == Kind::Task { task(sentence, &found) } else { sentence };
        let known = |value: &Quantity| !value.subject.is_empty();
        let said = if kind == Kind::Task { Vec::new() } else { values };
        let values = said.into_iter().filter(known).map(|v| Quantity { observed: false, ..v });
        if text.split_whitespace().nth(1).is_some() {
            book.add(place.entry(kind, text, values.collect()));
        }
    }
}

/// What a sentence is. The model lays down nothing by the orders that it gives in passing, but it
/// restates what must be.
fn kind(found: &[Found], voice: Voice) -> Option<Kind> {
    let has = |cue: Cue| found.iter().any(|found| found.cue == cue);
    match () {
        () if has(Cue::Done) => None,
        () if has(Cue::Task) => Some(Kind::Task),
        () if has(Cue::Decision) || has(Cue::Proposal) || has(Cue::Replacing) => {
            Some(Kind::Decision)
        }
        () if has(Cue::Constraint) => Some(Kind::Constraint),
        () if has(Cue::Order) && voice == Voice::Person => Some(Kind::Constraint),
        () => None,
    }
}

fn withdraw(found: Found, sentence: &str, book: &mut Book) {
    match found.cue {
        Cue::Done => {
            book.withdraw(Withdrawal { what: Withdrawn::Task, words: shortened(sentence) });
        }
        Cue::Replacing => {
            let words = replaced(&sentence[found.end..]);
            if !words.is_empty() {
                book.withdraw(Withdrawal { what: Withdrawn::Choice, words });
            }
        }
        _ => {}
    }
}

/// What "instead of" names: the words in backticks behind it, or the next few up to a stop.
fn replaced(behind: &str) -> String {
    let behind = behind.trim_start();
    if let Some(quoted) = behind.strip_prefix('`').and_then(|rest| rest.split('`').next()) {
        return quoted.to_owned();
    }
    let mut words = Vec::new();
    for word in behind.split_whitespace().take(REPLACED_WORDS) {
        let bare = word.trim_end_matches([',', '.', ';', ':', ')', '!']);
        if ["to", "for", "in", "because", "as", "since", "and", "so", "on", "with"].contains(&bare)
        {
            break;
        }
        words.push(bare);
        if bare.len() < word.len() {
            break;
        }
    }
    words.join(" ")
}

/// Takes back a path that has another name now: `renamed A to B`, `git mv A B`. To be called when
/// the paths of the sentence are written.
pub(super) fn renamed(sentence: &str, book: &mut Book) {
    const VERBS: &[&str] = &["renamed", "rename", "moved", "move", "mv"];
    let mut words = sentence.split_whitespace().skip_while(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
        !VERBS.contains(&bare.as_str())
    });
    if words.next().is_none() {
        return;
    }
    let mut paths = words.filter_map(super::path::path);
    if let (Some(old), Some(_)) = (paths.next(), paths.next()) {
        book.withdraw(Withdrawal { what: Withdrawn::Path, words: old.to_owned() });
    }
}

/// A task without the words that say that it is one, when they stand before it.
fn task<'a>(sentence: &'a str, found: &[Found]) -> &'a str {
    let mark = found.iter().find(|found| found.cue == Cue::Task).map_or(0, |found| found.end);
    let before = sentence[..mark].split_whitespace().count();
    let rest = sentence[mark..].trim_start_matches([':', ' ', ']', '-']);
    if before > 3 || rest.is_empty() { sentence } else { rest }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
