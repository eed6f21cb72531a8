//! Finds the older entries that a new entry or a withdrawal refers to.

use std::collections::BTreeSet;

use super::lexicon::Classes;
use super::subject::key;
use super::{Entry, Kind, Voice};

/// Share of a task's words that a report must contain to mark the task as done, or of a rule's
/// words that a withdrawal must contain to take back the rule.
const DONE_SHARE: f64 = 0.6;

/// Returns the key that equal entries share: the text of the entry in lower case, or, for a
/// statement, the stems of its meaningful words in alphabetical order.
pub(super) fn identity(entry: &Entry) -> String {
    match entry.kind {
        Kind::Constraint | Kind::Decision | Kind::Request => {
            const POLITE: &[&str] = &["pleas", "also", "kind", "just", "realli", "again", "you"];
            let mut words = key(&entry.text);
            words.retain(|word| !POLITE.contains(&word.as_str()));
            if words.is_empty() {
                return entry.text.to_lowercase();
            }
            words.into_iter().collect::<Vec<String>>().join(" ")
        }
        _ => entry.text.to_lowercase(),
    }
}

pub(super) fn is_done(task: &str, done: &BTreeSet<String>) -> bool {
    let words = key(task);
    let shared = words.iter().filter(|word| done.contains(*word)).count();
    !words.is_empty() && shared as f64 >= DONE_SHARE * words.len() as f64
}

/// Returns whether an entry is the withdrawn choice: a decision with all of the stems in `named`,
/// or a command that equals `words`.
pub(super) fn is_choice_of(entry: &Entry, words: &str, named: &BTreeSet<String>) -> bool {
    match entry.kind {
        Kind::Decision => key(&entry.text).is_superset(named),
        Kind::Command => entry.text == words,
        _ => false,
    }
}

/// Returns whether an entry is a person's statement about the named thing. At least two of the
/// statement's meaningful words, and 60 % of these words, must be in `named`.
pub(super) fn is_rule_about(entry: &Entry, named: &BTreeSet<String>) -> bool {
    let statement = matches!(entry.kind, Kind::Constraint | Kind::Decision | Kind::Request);
    if !statement || entry.voice != Voice::Person {
        return false;
    }
    let mut words = key(&entry.text);
    words.retain(|word| !Classes::of(word).any(&[Classes::STOP, Classes::AUXILIARY]));
    let shared = words.intersection(named).count();
    shared >= 2 && shared as f64 >= DONE_SHARE * words.len() as f64
}
