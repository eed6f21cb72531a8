//! The ledger while it is written: finds the entries that a new one repeats or supersedes.

use std::collections::{BTreeSet, HashMap};

use super::number::Amount;
use super::{Entry, Kind, Ledger, Quantity, Withdrawal, Withdrawn};
use crate::retrieval::words::stems;

/// How many withdrawals are remembered for an older ledger.
const WITHDRAWALS: usize = 64;
/// How many of the newest quantities a new one is compared with, so that it takes no longer to
/// write in a full ledger than in an empty one.
const RECALLED: usize = 256;
/// How many messages later "make it 40 s" can still mean what was said.
const ANAPHORA: u64 = 6;
/// Which share of a task's words must be among those that say that it is done.
const DONE_SHARE: f64 = 0.6;

/// A ledger that is being written. Entries that no longer hold leave holes until it is closed.
#[derive(Default)]
pub(super) struct Book {
    slots: Vec<Option<Entry>>,
    /// Where an entry of these very words is.
    places: HashMap<(Kind, String), usize>,
    /// The quantities that hold, oldest first.
    held: Vec<Held>,
    withdrawn: Vec<Withdrawal>,
    left_out: u64,
}

struct Held {
    slot: usize,
    /// The stems of what it measures.
    key: BTreeSet<String>,
    amount: Amount,
    quantity: Quantity,
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

    /// Writes an entry in; older ones of the same words are joined with it, and older quantities
    /// of the same subject go.
    pub(super) fn add(&mut self, mut entry: Entry) {
        if entry.kind == Kind::Number && !self.resolve(&mut entry) {
            return;
        }
        let place = (entry.kind, entry.text.to_lowercase());
        if let Some(slot) = self.places.get(&place).copied()
            && let Some(old) = self.slots[slot].take()
        {
            self.held.retain(|held| held.slot != slot);
            entry.times += old.times;
            entry.voice = if old.voice.name() == "output" { entry.voice } else { old.voice };
        }
        for quantity in &entry.values {
            self.supersede(quantity);
        }
        let slot = self.slots.len();
        for quantity in &entry.values {
            let (key, amount) = (key(&quantity.subject), Amount::of(&quantity.amount));
            self.held.push(Held { slot, key, amount, quantity: quantity.clone() });
        }
        self.places.insert(place, slot);
        self.slots.push(Some(entry));
    }

    /// Drops what the words take back, and remembers them.
    pub(super) fn withdraw(&mut self, withdrawal: Withdrawal) {
        let named = key(&withdrawal.words);
        if named.is_empty() {
            return;
        }
        for slot in &mut self.slots {
            let taken = slot.as_ref().is_some_and(|entry| match withdrawal.what {
                Withdrawn::Task => entry.kind == Kind::Task && is_done(&entry.text, &named),
                Withdrawn::Choice => was_chosen(entry, &withdrawal.words, &named),
                Withdrawn::Path => entry.kind == Kind::Path && entry.text == withdrawal.words,
            });
            if taken {
                *slot = None;
            }
        }
        self.withdrawn.push(withdrawal);
    }

    /// Finds what "make it 40 s" is about; false when nothing is.
    fn resolve(&self, entry: &mut Entry) -> bool {
        let Some(quantity) = entry.values.first_mut() else { return false };
        let amount = Amount::of(&quantity.amount);
        let near = |held: &&Held| {
            held.amount.dimension == amount.dimension
                && self.slots[held.slot]
                    .as_ref()
                    .is_some_and(|old| old.origin + ANAPHORA >= entry.origin)
        };
        if quantity.subject.is_empty() {
            let Some(meant) = self.held.iter().rev().find(near) else { return false };
            quantity.subject.clone_from(&meant.quantity.subject);
        } else if let Some(meant) = self.longer_name(quantity, &amount) {
            quantity.subject = meant;
        }
        let observed = if quantity.observed { " (observed)" } else { "" };
        entry.text = format!("{}: {}{observed}", quantity.subject, quantity.amount);
        true
    }

    /// The one subject of which the quantity's is a shorter name, as "timeout" is of "request
    /// timeout" when nothing else has a timeout.
    fn longer_name(&self, quantity: &Quantity, amount: &Amount) -> Option<String> {
        let short = key(&quantity.subject);
        let mut found: Option<&Held> = None;
        for held in self.held.iter().rev().take(RECALLED) {
            if held.amount.dimension != amount.dimension || !held.key.is_superset(&short) {
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

    /// Drops what says another amount of the same subject; a constraint is told the new amount,
    /// since more may depend on it than the number.
    fn supersede(&mut self, newer: &Quantity) {
        let (subject, amount) = (key(&newer.subject), Amount::of(&newer.amount));
        let start = self.held.len().saturating_sub(RECALLED);
        let mut gone = Vec::new();
        for (at, held) in self.held.iter().enumerate().skip(start) {
            let same = held.key == subject && held.amount.dimension == amount.dimension;
            if same && held.amount != amount && (held.quantity.observed || !newer.observed) {
                gone.push(at);
            }
        }
        for at in gone.into_iter().rev() {
            let held = self.held.remove(at);
            let Some(entry) = self.slots[held.slot].as_mut() else { continue };
            if entry.kind != Kind::Constraint {
                self.slots[held.slot] = None;
                continue;
            }
            let told = format!("{} (was {})", newer.amount, held.quantity.amount);
            entry.text = entry.text.replacen(&held.quantity.amount, &told, 1);
            entry.values.retain(|value| *value != held.quantity);
        }
    }
}

/// The stems of what words name, without those that name nothing.
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

/// Whether an entry is the choice that the words take back: all of them are in it, or it is that
/// very command.
fn was_chosen(entry: &Entry, words: &str, named: &BTreeSet<String>) -> bool {
    match entry.kind {
        Kind::Decision => key(&entry.text).is_superset(named),
        Kind::Command => entry.text == words,
        _ => false,
    }
}
