//! Compares the things that quantities measure.

use std::collections::BTreeSet;

use super::Quantity;
use crate::retrieval::words::stems;

/// The thing that a quantity measures.
pub(super) struct Subject {
    /// Stems of each name that the thing may have: one name if the sentence is clear, else all
    /// names in the sentence.
    names: Vec<BTreeSet<String>>,
    /// True if the sentence does not say which of its names is meant.
    loose: bool,
}

/// The relation between the subjects of two quantities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Related {
    /// The subjects are the same.
    Same,
    /// The subjects may be the same or not.
    Doubtful,
    /// The subjects differ.
    Not,
}

/// How the names of two subjects match, from the weakest match to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    /// The newer name has all words of the older one and more, so it may mean another thing.
    Longer,
    /// The names agree in part in another way.
    Part,
    /// The names are equal.
    Equal,
}

impl Subject {
    pub(super) fn of(quantity: &Quantity) -> Self {
        let names = match quantity.loose {
            true => quantity.subject.split(',').map(key).collect(),
            false => vec![key(&quantity.subject)],
        };
        let names = names.into_iter().filter(|name: &BTreeSet<String>| !name.is_empty());
        Self { names: names.collect(), loose: quantity.loose }
    }

    /// Returns the stems of all names.
    pub(super) fn words(&self) -> BTreeSet<String> {
        self.names.iter().flatten().cloned().collect()
    }

    /// Returns the best match with a newer subject, if any.
    pub(super) fn relation(&self, newer: &Self) -> Option<Match> {
        self.matching(newer).map(|(found, _)| found)
    }

    /// Returns the best match with a newer subject, and the longer one of the two names.
    fn matching<'a>(&'a self, newer: &'a Self) -> Option<(Match, &'a BTreeSet<String>)> {
        // If a sentence does not say what it measures, a single equal word proves little.
        let fewest = if self.loose || newer.loose { 2 } else { 1 };
        let pairs = self.names.iter().flat_map(|old| newer.names.iter().map(move |new| (old, new)));
        let compared = pairs.filter_map(|(old, new)| match () {
            () if old == new && old.len() >= fewest => Some((Match::Equal, old)),
            () if old == new && self.loose != newer.loose => Some((Match::Part, old)),
            () if old.is_superset(new) && new.len() >= fewest => Some((Match::Part, old)),
            () if new.is_superset(old) && old.len() >= fewest => match newer.loose {
                true => Some((Match::Part, new)),
                false => Some((Match::Longer, new)),
            },
            () => None,
        });
        compared.max_by_key(|(found, _)| *found)
    }
}

/// Returns how each older subject is related to a newer one. If some older subjects have the newer
/// one's name, only these are related. Otherwise, subjects that share a part of their names count
/// as the same if only one name has that part; if several have it, the relation is doubtful. It is
/// also doubtful if the newer name has all words of the older name and more.
pub(super) fn relations<'a>(
    older: impl Iterator<Item = &'a Subject>,
    newer: &'a Subject,
) -> Vec<Related> {
    let matches: Vec<_> = older.map(|subject| subject.matching(newer)).collect();
    let best = matches.iter().flatten().map(|(found, _)| *found).max();
    let names: BTreeSet<&BTreeSet<String>> = matches
        .iter()
        .flatten()
        .filter(|(found, _)| Some(*found) == best)
        .map(|(_, n)| *n)
        .collect();
    let related = |found: Match| match found {
        Match::Equal => Related::Same,
        _ if best == Some(Match::Equal) => Related::Not,
        Match::Part if names.len() == 1 => Related::Same,
        Match::Part | Match::Longer => Related::Doubtful,
    };
    let found = matches.iter().map(|found| found.map_or(Related::Not, |(found, _)| related(found)));
    found.collect()
}

/// Returns the stems of the words that carry meaning.
pub(super) fn key(words: &str) -> BTreeSet<String> {
    const EMPTY: &[&str] = &[
        "a", "an", "and", "be", "by", "do", "for", "in", "is", "it", "of", "on", "our", "that",
        "the", "this", "to", "was", "we", "with",
    ];
    stems(words).into_iter().filter(|stem| !EMPTY.contains(&stem.as_str())).collect()
}
