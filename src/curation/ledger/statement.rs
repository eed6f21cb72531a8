//! Reads a sentence of a person or of the model, and adds entries to the ledger or withdraws them.

use std::ops::Range;
use std::sync::LazyLock;

use super::book::Book;
use super::choice::{Choice, names};
use super::force::{Force, force};
use super::number;
use super::phrases::{Finder, phrases};
use super::sentence::{Cue, Found, cues};
use super::{Entry, Kind, Quantity, Voice, Withdrawal, Withdrawn};
use crate::retrieval::excerpt::beginning;

/// Maximum length of a statement, in characters. Longer statements are cut, since the rule usually
/// stands at the beginning.
const LONGEST: usize = 280;
/// Maximum number of words after "instead of" that name the replaced thing.
const REPLACED_WORDS: usize = 3;

/// The place of a sentence: its message and its author.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) origin: u64,
    pub(super) voice: Voice,
    /// True if every sentence here is worth keeping, as in the user's messages.
    pub(super) asked: bool,
}

impl Place {
    /// Creates an entry for words at this place.
    pub(super) fn entry(self, kind: Kind, text: &str, values: Vec<Quantity>) -> Entry {
        let text = beginning(text.trim(), LONGEST);
        Entry {
            kind,
            text,
            origin: self.origin,
            times: 1,
            voice: self.voice,
            values,
            earlier: false,
        }
    }
}

/// Writes the content of a sentence into the ledger.
pub(super) fn read(sentence: &str, place: Place, book: &mut Book) {
    let found = cues(sentence);
    let anew = || !sentence.ends_with('?') && book.decides_anew(sentence);
    let kind = match kind(sentence, &found, place) {
        None | Some(Kind::Request) if anew() => Some(Kind::Decision),
        kind => kind,
    };
    for cue in &found {
        withdraw(*cue, sentence, book);
    }
    if place.voice == Voice::Person
        && let Some(words) = retracted(sentence)
    {
        book.withdraw(Withdrawal { what: Withdrawn::Rule, words: beginning(&words, LONGEST) });
    }
    // A question asks about a quantity and does not state it.
    let asks = sentence.ends_with('?') && kind.is_none() && !proposes(sentence);
    let values =
        if asks { Vec::new() } else { book.current(number::quantities(sentence), place.origin) };
    let laid_down = matches!(kind, Some(Kind::Constraint | Kind::Decision));
    let (loose, named): (Vec<Quantity>, Vec<Quantity>) = values
        .into_iter()
        .map(|value| Quantity { observed: value.observed && !laid_down, ..value })
        .partition(|value| value.loose);
    for value in &named {
        book.add(place.entry(Kind::Number, "", vec![value.clone()]));
    }
    state(sentence, kind, &found, place, (loose, named), book);
}

/// Adds the sentence itself as an entry, under its kind. Adds a sentence without a kind as a number
/// if only the whole sentence tells what its quantities measure.
fn state(
    sentence: &str,
    kind: Option<Kind>,
    found: &[Found],
    place: Place,
    (loose, named): (Vec<Quantity>, Vec<Quantity>),
    book: &mut Book,
) {
    let stated = match kind {
        // A number with a name of its own needs no sentence in addition.
        Some(Kind::Request) if loose.is_empty() && !named.is_empty() => None,
        Some(Kind::Task) => Some((Kind::Task, task(sentence, found))),
        Some(kind) => Some((kind, sentence)),
        None if !loose.is_empty() => Some((Kind::Number, sentence)),
        None => None,
    };
    let Some((kind, text)) = stated.filter(|(_, text)| text.split_whitespace().nth(1).is_some())
    else {
        return;
    };
    let values = match kind {
        Kind::Task => Vec::new(),
        Kind::Number => loose,
        _ => {
            let named = named.into_iter().filter(|value| !value.subject.is_empty());
            named.chain(loose).map(|value| Quantity { observed: false, ..value }).collect()
        }
    };
    book.add(place.entry(kind, text, values));
}

/// Returns the kind of a sentence; `None` for a question, for a report of finished work, and for
/// other sentences that are not worth keeping. A person's sentence is a constraint if its [`force`]
/// or a phrase such as "must" makes it one; only the phrase counts in a sentence of the model.
fn kind(sentence: &str, found: &[Found], place: Place) -> Option<Kind> {
    let has = |cue: Cue| found.iter().any(|found| found.cue == cue);
    let force = if place.voice == Voice::Person { force(sentence) } else { None };
    let asks = sentence.ends_with('?') && force.is_none();
    match () {
        () if has(Cue::Done) || asks => None,
        () if has(Cue::Task) => Some(Kind::Task),
        () if has(Cue::Decision) || has(Cue::Proposal) || has(Cue::Replacing) => {
            Some(Kind::Decision)
        }
        () if has(Cue::Constraint) || force == Some(Force::Rule) => Some(Kind::Constraint),
        () if has(Cue::Choice) && place.voice == Voice::Model && names(sentence).len() > 1 => {
            Some(Kind::Decision)
        }
        () => force.filter(|_| place.asked).map(|_| Kind::Request),
    }
}

/// Returns whether a question proposes something: "can we agree on 30 s?"
fn proposes(sentence: &str) -> bool {
    static MARKS: LazyLock<Vec<&str>> = LazyLock::new(|| phrases("proposal"));
    let lower = sentence.to_lowercase();
    MARKS.iter().any(|mark| lower.contains(mark))
}

/// Returns the words that a person takes back, as in "forget about the old format" or "you may
/// rename it now".
fn retracted(sentence: &str) -> Option<String> {
    static MARKS: LazyLock<Finder> = LazyLock::new(|| Finder::of("retraction"));
    let lower = sentence.to_lowercase();
    let is_alone = |place: &Range<usize>| {
        let letter = |c: char| c.is_alphanumeric();
        !lower[..place.start].ends_with(letter) && !lower[place.end..].starts_with(letter)
    };
    let alone = MARKS.all(&lower).filter(|(_, place)| is_alone(place));
    let first = alone.map(|(phrase, _)| phrase).min()?;
    Some(lower.replacen(MARKS.phrases[first], " ", 1))
}

fn withdraw(found: Found, sentence: &str, book: &mut Book) {
    match found.cue {
        Cue::Done => {
            book.withdraw(Withdrawal {
                what: Withdrawn::Task,
                words: beginning(sentence, LONGEST),
            });
        }
        Cue::Replacing => {
            let words = replaced(&sentence[found.end..]);
            if !words.is_empty() {
                let withdrawal = Withdrawal { what: Withdrawn::Choice, words };
                book.withdraw_by(withdrawal, &Choice::of(sentence));
            }
        }
        _ => {}
    }
}

/// Returns the words that "instead of" refers to, from the text `behind` it: words in backticks, or
/// the next few words up to a punctuation mark or a word such as "for".
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

/// Takes back a path that has a new name: `renamed A to B`, `git mv A B`. The paths of the sentence
/// must have been added before.
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

/// Returns a task's sentence without the words that mark it as a task, if these come first.
fn task<'a>(sentence: &'a str, found: &[Found]) -> &'a str {
    let mark = found.iter().find(|found| found.cue == Cue::Task).map_or(0, |found| found.end);
    let before = sentence[..mark].split_whitespace().count();
    let rest = sentence[mark..].trim_start_matches([':', ' ', ']', '-']);
    if before > 3 || rest.is_empty() { sentence } else { rest }
}
