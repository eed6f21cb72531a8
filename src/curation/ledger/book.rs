//! The ledger while it is being written. Finds the entries that a new entry repeats or supersedes.

use std::collections::{BTreeSet, HashMap};

use super::lexicon::Classes;
use super::number::Amount;
use super::{Entry, Kind, Ledger, Quantity, Voice, Withdrawal, Withdrawn};
use crate::retrieval::words::stems;

/// Maximum number of withdrawals kept for an older ledger that may be merged.
const WITHDRAWALS: usize = 64;
/// Number of the newest quantities that a new one is compared with, so that writing takes no longer
/// in a full ledger than in an empty one.
const RECALLED: usize = 256;
/// Number of messages after which "make it 40 s" can no longer refer to an earlier quantity.
const ANAPHORA: u64 = 6;
/// Share of a task's words that a report must contain to mark the task as done.
const DONE_SHARE: f64 = 0.6;

/// A ledger that is being written. Entries that no longer hold leave holes until it is closed.
#[derive(Default)]
pub(super) struct Book {
    slots: Vec<Option<Entry>>,
    /// Index of the entry with exactly these words.
    places: HashMap<(Kind, String), usize>,
    /// Current stated quantities, oldest first. Kept apart from `shown`, since outputs show so many
    /// quantities that they would push the stated ones out.
    stated: Vec<Held>,
    /// Current quantities that were seen in outputs, oldest first.
    shown: Vec<Held>,
    withdrawn: Vec<Withdrawal>,
    left_out: u64,
}

struct Held {
    slot: usize,
    /// Stems of the words for the thing that is measured.
    key: BTreeSet<String>,
    amount: Amount,
    quantity: Quantity,
}

/// The relation between the subjects of two quantities.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Related {
    Same,
    /// The subjects may be the same or not.
    Doubtful,
    Not,
}

impl Book {
    pub(super) fn open(ledger: Ledger) -> Self {
        let mut book = Self { left_out: ledger.left_out, ..Self::default() };
        ledger.entries.into_iter().for_each(|entry| book.add(entry));
        book.withdrawn = ledger.withdrawn;
        book
    }

    pub(super) fn close(self) -> Ledger {
        let mut entries: Vec<Entry> = self.slots.into_iter().flatten().collect();
        entries.sort_by_key(|entry| entry.origin);
        let mut withdrawn = self.withdrawn;
        withdrawn.drain(..withdrawn.len().saturating_sub(WITHDRAWALS));
        Ledger { entries, withdrawn, left_out: self.left_out }
    }

    pub(super) fn left_out(&mut self, more: u64) {
        self.left_out += more;
    }

    /// Adds an entry. Joins it with older entries of the same words, and drops older quantities of
    /// the same subject.
    pub(super) fn add(&mut self, mut entry: Entry) {
        if entry.kind == Kind::Number && !self.resolve(&mut entry) {
            return;
        }
        let place = (entry.kind, identity(&entry));
        if let Some(slot) = self.places.get(&place).copied()
            && let Some(old) = self.slots[slot].take()
        {
            self.stated.retain(|held| held.slot != slot);
            self.shown.retain(|held| held.slot != slot);
            entry.times += old.times;
            entry.voice = if old.voice.name() == "output" { entry.voice } else { old.voice };
        }
        for at in 0..entry.values.len() {
            if let Some(meant) = self.named_in(&entry.values[at]) {
                let quantity = entry.values[at].clone();
                entry.values[at] = Quantity { subject: meant, loose: false, ..quantity };
            }
            self.supersede(&entry.values[at]);
        }
        let slot = self.slots.len();
        let held = if entry.voice == Voice::Output { &mut self.shown } else { &mut self.stated };
        held.extend(entry.values.iter().map(|quantity| {
            let (key, amount) = (key(&quantity.subject), Amount::of(&quantity.amount));
            Held { slot, key, amount, quantity: quantity.clone() }
        }));
        self.places.insert(place, slot);
        self.slots.push(Some(entry));
    }

    /// Drops the entries that the withdrawal names, and remembers the withdrawal.
    pub(super) fn withdraw(&mut self, withdrawal: Withdrawal) {
        let named = key(&withdrawal.words);
        if named.is_empty() {
            return;
        }
        for slot in &mut self.slots {
            let taken = slot.as_ref().is_some_and(|entry| match withdrawal.what {
                Withdrawn::Task => entry.kind == Kind::Task && is_done(&entry.text, &named),
                Withdrawn::Choice => is_choice_of(entry, &withdrawal.words, &named),
                Withdrawn::Path => entry.kind == Kind::Path && entry.text == withdrawal.words,
                Withdrawn::Rule => is_rule_about(entry, &named),
            });
            if taken {
                *slot = None;
            }
        }
        self.withdrawn.push(withdrawal);
    }

    /// Chooses between several amounts of the same thing in one sentence: an amount that was known
    /// before loses, and of the others the last one wins.
    pub(super) fn current(&self, values: Vec<Quantity>) -> Vec<Quantity> {
        let mut current: Vec<Quantity> = Vec::new();
        for value in values {
            let dimension = Amount::of(&value.amount).dimension;
            let same = |other: &Quantity| {
                other.subject == value.subject && Amount::of(&other.amount).dimension == dimension
            };
            match current.iter().position(same) {
                Some(_) if self.is_known(&value) => {}
                Some(at) => current[at] = value,
                None => current.push(value),
            }
        }
        current
    }

    /// Iterates over the newest quantities, stated ones first.
    fn recalled(&self) -> impl Iterator<Item = &Held> {
        let newest = |held: &'_ [Held]| held.len().saturating_sub(RECALLED);
        let (stated, shown) = (newest(&self.stated), newest(&self.shown));
        self.stated[stated..].iter().rev().chain(self.shown[shown..].iter().rev())
    }

    fn is_known(&self, value: &Quantity) -> bool {
        let (key, amount) = (key(&value.subject), Amount::of(&value.amount));
        let same = |held: &Held| held.amount == amount && key.is_superset(&held.key);
        self.recalled().any(same)
    }

    /// Finds the quantity that "make it 40 s" refers to. Returns false if there is none.
    fn resolve(&self, entry: &mut Entry) -> bool {
        let [quantity] = entry.values.as_mut_slice() else { return !entry.text.is_empty() };
        let amount = Amount::of(&quantity.amount);
        let near = |held: &&Held| {
            held.amount.dimension == amount.dimension
                && !held.quantity.loose
                && self.slots[held.slot]
                    .as_ref()
                    .is_some_and(|old| old.origin + ANAPHORA >= entry.origin)
        };
        if quantity.loose {
            let Some(meant) = self.named_in(quantity) else { return true };
            *quantity = Quantity { subject: meant, loose: false, ..quantity.clone() };
        } else if quantity.subject.is_empty() {
            let Some(meant) = self.recalled().find(near) else { return false };
            quantity.subject.clone_from(&meant.quantity.subject);
        } else if let Some(meant) = self.longer_name(quantity, &amount) {
            quantity.subject = meant;
        }
        let observed = if quantity.observed { " (observed)" } else { "" };
        entry.text = format!("{}: {}{observed}", quantity.subject, quantity.amount);
        true
    }

    /// Returns the known subject that the words around a quantity name: the longest one whose words
    /// all occur there, if there is only one.
    fn named_in(&self, quantity: &Quantity) -> Option<String> {
        if !quantity.loose {
            return None;
        }
        let (words, amount) = (key(&quantity.subject), Amount::of(&quantity.amount));
        let mut best: Option<&Held> = None;
        let mut several = false;
        for held in self.recalled() {
            let fits = held.amount.dimension == amount.dimension
                && !held.quantity.loose
                && !held.key.is_empty()
                && words.is_superset(&held.key);
            if !fits {
                continue;
            }
            match best {
                Some(other) if other.key.len() > held.key.len() || other.key == held.key => {}
                Some(other) if other.key.len() == held.key.len() => several = true,
                _ => (best, several) = (Some(held), false),
            }
        }
        best.filter(|_| !several).map(|held| held.quantity.subject.clone())
    }

    /// Returns the known subject that has the quantity's subject as its short form, if there is
    /// only one: "timeout" means "request timeout" if nothing else has a timeout.
    fn longer_name(&self, quantity: &Quantity, amount: &Amount) -> Option<String> {
        let short = key(&quantity.subject);
        let mut found: Option<&Held> = None;
        for held in self.recalled() {
            let other = held.amount.dimension != amount.dimension || held.quantity.loose;
            if other || !held.key.is_superset(&short) {
                continue;
            }
            match found {
                _ if held.key == short => return None,
                Some(other) if other.key != held.key => return None,
                _ => found = Some(held),
            }
        }
        found.map(|held| held.quantity.subject.clone())
    }

    /// Drops numbers with another amount of the same subject. Statements stay and take over the new
    /// amount, since they may contain more than the number. Numbers and requests that may be about
    /// the same subject are marked.
    fn supersede(&mut self, newer: &Quantity) {
        let (subject, amount) = (key(&newer.subject), Amount::of(&newer.amount));
        for held in [&mut self.stated, &mut self.shown] {
            let start = held.len().saturating_sub(RECALLED);
            let mut at = start;
            while at < held.len() {
                let gone = update(&mut held[at], &mut self.slots, newer, &subject, &amount);
                if gone {
                    held.remove(at);
                } else {
                    at += 1;
                }
            }
        }
    }
}

/// Updates the entry of an older quantity from a newer one. Returns whether the entry is gone.
fn update(
    held: &mut Held,
    slots: &mut [Option<Entry>],
    newer: &Quantity,
    subject: &BTreeSet<String>,
    amount: &Amount,
) -> bool {
    let other = held.amount.dimension == amount.dimension
        && held.amount != *amount
        && (held.quantity.observed || !newer.observed);
    let Some(entry) = slots[held.slot].as_mut().filter(|_| other) else { return false };
    match (related(held, subject, newer.loose), entry.kind) {
        (Related::Same, Kind::Number) => {
            slots[held.slot] = None;
            return true;
        }
        (Related::Same, _) => {
            change_amount(entry, &held.quantity, newer);
            held.quantity.amount.clone_from(&newer.amount);
            held.amount = amount.clone();
        }
        (Related::Doubtful, Kind::Number | Kind::Request) => entry.earlier = true,
        (Related::Doubtful | Related::Not, _) => {}
    }
    false
}

/// Puts the new amount into a statement, next to its old one.
fn change_amount(entry: &mut Entry, old: &Quantity, newer: &Quantity) {
    let Some(start) = entry.text.find(&old.amount) else {
        entry.text = format!("{} (now {})", entry.text, newer.amount);
        return;
    };
    let mut end = start + old.amount.len();
    if let Some(rest) = entry.text[end..].strip_prefix(" (was ") {
        end += " (was ".len() + rest.find(')').map_or(rest.len(), |at| at + 1);
    }
    let amounts = format!("{} (was {})", newer.amount, old.amount);
    entry.text.replace_range(start..end, &amounts);
    for value in entry.values.iter_mut().filter(|value| *value == old) {
        value.amount.clone_from(&newer.amount);
    }
}

/// Compares the subjects of a held quantity and of a newer one with another amount.
fn related(held: &Held, newer: &BTreeSet<String>, newer_is_loose: bool) -> Related {
    if newer.is_empty() || held.key.is_empty() {
        return Related::Not;
    }
    let shared = held.key.intersection(newer).count();
    let most = |key: &BTreeSet<String>| shared * 3 >= key.len() * 2;
    let doubtful = match (held.quantity.loose, newer_is_loose) {
        (false, false) if held.key == *newer => return Related::Same,
        // "The timeout" first, "the request timeout" later.
        (false, false) => shared == held.key.len(),
        (true, false) => shared == newer.len(),
        (false, true) => most(&held.key),
        (true, true) => most(&held.key) && most(newer),
    };
    if doubtful { Related::Doubtful } else { Related::Not }
}

/// Returns the key by which an entry is recognized: its words, or for a statement its meaningful
/// words in any order.
fn identity(entry: &Entry) -> String {
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

/// Returns the stems of words, without those that carry no meaning.
fn key(words: &str) -> BTreeSet<String> {
    const EMPTY: &[&str] = &[
        "a", "an", "and", "be", "by", "do", "for", "in", "is", "it", "of", "on", "our", "that",
        "the", "this", "to", "was", "we", "with",
    ];
    stems(words).into_iter().filter(|stem| !EMPTY.contains(&stem.as_str())).collect()
}

fn is_done(task: &str, done: &BTreeSet<String>) -> bool {
    let words = key(task);
    let shared = words.iter().filter(|word| done.contains(*word)).count();
    !words.is_empty() && shared as f64 >= DONE_SHARE * words.len() as f64
}

/// Returns whether an entry is the withdrawn choice: it contains all of the words, or is that exact
/// command.
fn is_choice_of(entry: &Entry, words: &str, named: &BTreeSet<String>) -> bool {
    match entry.kind {
        Kind::Decision => key(&entry.text).is_superset(named),
        Kind::Command => entry.text == words,
        _ => false,
    }
}

/// Returns whether an entry is a person's statement about the thing that the words name. It must
/// share at least two meaningful words, and most of its own.
fn is_rule_about(entry: &Entry, named: &BTreeSet<String>) -> bool {
    let statement = matches!(entry.kind, Kind::Constraint | Kind::Decision | Kind::Request);
    if !statement || entry.voice != Voice::Person {
        return false;
    }
    let mut words = key(&entry.text);
    words.retain(|word| !Classes::of(word).any(&[Classes::STOP, Classes::AUXILIARY]));
    let shared = words.intersection(named).count();
    shared >= 2 && shared as f64 >= DONE_SHARE * words.len() as f64
}
