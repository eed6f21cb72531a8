//! The ledger while it is being written. Finds the entries that a new entry repeats or supersedes.

use std::collections::HashMap;

use super::amount::Amount;
use super::choice::{Choice, is_bare, may_decide_anew};
use super::same::{identity, is_choice_of, is_done, is_rule_about};
use super::subject::{Match, Related, Subject, key, relations};
use super::{Entry, Kind, Ledger, Quantity, Voice, Withdrawal, Withdrawn};

/// Maximum number of withdrawals that a ledger keeps; only the newest stay. They also apply to an
/// older ledger with which the ledger is merged.
const WITHDRAWALS: usize = 64;
/// Number of the newest quantities, and of the newest choices, that a new one is compared with, so
/// that writing takes no longer in a full ledger than in an empty one.
const RECALLED: usize = 256;
/// Number of messages after which "make it 40 s" can no longer refer to an earlier quantity.
const ANAPHORA: u64 = 6;

/// A ledger that is being written. Entries that no longer hold leave empty slots until it closes.
#[derive(Default)]
pub(super) struct Book {
    slots: Vec<Option<Entry>>,
    /// For each kind and [`identity`], the index in `slots` of the last such entry.
    places: HashMap<(Kind, String), usize>,
    /// Current stated quantities, oldest first. Kept apart from `shown`, since outputs show so many
    /// quantities that few stated ones would be among the [`RECALLED`] newest.
    stated: Vec<Held>,
    /// Current quantities that were seen in outputs, oldest first.
    shown: Vec<Held>,
    /// Statements that may be choices, oldest first, each with the index of its entry in `slots`.
    choices: Vec<(usize, Choice)>,
    withdrawn: Vec<Withdrawal>,
    left_out: u64,
}

struct Held {
    slot: usize,
    subject: Subject,
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

    /// Adds an entry, or joins it with an older entry of the same kind and [`identity`]. The
    /// quantities of the entry supersede older quantities of the same subjects. Does not add a
    /// number if [`Self::resolve`] returns false for it.
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
        for value in &mut entry.values {
            if let Some(meant) = self.named_in(value) {
                (value.subject, value.loose) = (meant, false);
            }
            self.supersede(value, entry.voice);
        }
        let slot = self.slots.len();
        if matches!(entry.kind, Kind::Decision | Kind::Constraint | Kind::Request) {
            self.choose(&entry, slot);
        }
        let held = if entry.voice == Voice::Output { &mut self.shown } else { &mut self.stated };
        held.extend(entry.values.iter().map(|quantity| {
            let (subject, amount) = (Subject::of(quantity), Amount::of(&quantity.amount));
            Held { slot, subject, amount, quantity: quantity.clone() }
        }));
        self.places.insert(place, slot);
        self.slots.push(Some(entry));
    }

    /// Marks as `earlier` the older choices that the statement `entry` replaces, and remembers the
    /// statement.
    fn choose(&mut self, entry: &Entry, slot: usize) {
        let choice = Choice::of(&entry.text);
        let start = self.choices.len().saturating_sub(RECALLED);
        for (older, known) in &self.choices[start..] {
            let Some(old) = self.slots[*older].as_mut() else { continue };
            let both = entry.kind == Kind::Decision && old.kind == Kind::Decision;
            // A person's choice outranks the model's.
            let outranked = old.voice == Voice::Person && entry.voice != Voice::Person;
            if (choice.changes || both && !outranked) && choice.replaces(known) {
                old.earlier = true;
            }
        }
        self.choices.push((slot, choice));
    }

    /// Returns whether a sentence gives a different answer to a question that was already decided.
    /// Such a sentence says that something changes, or only names a thing and what is chosen for
    /// it, as in "SQLite for the parser".
    pub(super) fn decides_anew(&self, sentence: &str) -> bool {
        let decided = |slot: usize| {
            let stated = [Kind::Decision, Kind::Constraint, Kind::Request];
            let holds = |entry: &Entry| !entry.earlier && stated.contains(&entry.kind);
            self.slots[slot].as_ref().is_some_and(holds)
        };
        // "Now let me update the parser" announces the next step, and decides nothing.
        let narrates = sentence.starts_with("Now ");
        if self.choices.is_empty() || narrates || !may_decide_anew(sentence) {
            return false;
        }
        let choice = Choice::of(sentence);
        let start = self.choices.len().saturating_sub(RECALLED);
        let mut recent = self.choices[start..].iter().filter(|(slot, _)| decided(*slot));
        (choice.changes || is_bare(sentence)) && recent.any(|(_, known)| choice.replaces(known))
    }

    /// Drops the entries that the withdrawal names, and remembers the withdrawal. Ignores a
    /// withdrawal without meaningful words.
    pub(super) fn withdraw(&mut self, withdrawal: Withdrawal) {
        self.withdraw_by(withdrawal, &Choice::default());
    }

    /// Withdraws entries like [`withdraw`](Self::withdraw), but keeps an older choice that is about
    /// another thing than `by`, the choice that replaces the withdrawn one.
    pub(super) fn withdraw_by(&mut self, withdrawal: Withdrawal, by: &Choice) {
        let named = key(&withdrawal.words);
        if named.is_empty() {
            return;
        }
        for slot in &mut self.slots {
            let taken = slot.as_ref().is_some_and(|entry| match withdrawal.what {
                Withdrawn::Task => entry.kind == Kind::Task && is_done(&entry.text, &named),
                Withdrawn::Choice => {
                    is_choice_of(entry, &withdrawal.words, &named)
                        && by.may_be_about(&Choice::of(&entry.text))
                }
                Withdrawn::Path => entry.kind == Kind::Path && entry.text == withdrawal.words,
                Withdrawn::Rule => is_rule_about(entry, &named),
            });
            if taken {
                *slot = None;
            }
        }
        self.withdrawn.push(withdrawal);
    }

    /// Chooses between several amounts of the same thing in one sentence of message `origin`: an
    /// amount that was known before loses, and of the others the last one wins. If the sentence
    /// does not say what a number measures, the number is about the thing that was last measured in
    /// the same dimension.
    pub(super) fn current(&self, values: Vec<Quantity>, origin: u64) -> Vec<Quantity> {
        let mut current: Vec<Quantity> = Vec::new();
        for mut value in values {
            let amount = Amount::of(&value.amount);
            let names_none = value.subject.is_empty() && value.loose;
            if (names_none || value.subject == amount.counted())
                && let Some(meant) = self.last_of_kind(&amount, origin)
            {
                value.subject.clone_from(&meant.quantity.subject);
                value.loose = meant.quantity.loose;
            }
            let same = |other: &Quantity| {
                (other.subject == value.subject || other.loose && value.loose)
                    && Amount::of(&other.amount).dimension == amount.dimension
            };
            match current.iter().position(same) {
                Some(at) if !self.is_known(&current[at]) && self.is_known(&value) => {}
                Some(at) => current[at] = value,
                None => current.push(value),
            }
        }
        let holds = |it: &&Quantity| !current.iter().any(|other| self.was(it, other));
        current.iter().filter(holds).cloned().collect()
    }

    /// Returns whether the amount of `old` is known for the thing that `new` measures, but not for
    /// the thing that `old` itself names.
    fn was(&self, old: &Quantity, new: &Quantity) -> bool {
        let (old_amount, amount) = (Amount::of(&old.amount), Amount::of(&new.amount));
        if old_amount.dimension != amount.dimension || old_amount == amount {
            return false;
        }
        let (subject, own) = (Subject::of(new), Subject::of(old));
        let mut has = self.recalled().filter(|held| held.amount == old_amount).peekable();
        has.peek().is_some()
            && has.all(|held| held.subject.relation(&own).is_none())
            && self.recalled().any(|held| {
                held.amount == old_amount && held.subject.relation(&subject) == Some(Match::Equal)
            })
    }

    /// Returns the newest quantity in the dimension of `amount` that was mentioned at most
    /// [`ANAPHORA`] messages before message `origin`, stated ones first. A count must also have the
    /// same unit.
    fn last_of_kind(&self, amount: &Amount, origin: u64) -> Option<&Held> {
        let recent = |entry: &Entry| entry.origin + ANAPHORA >= origin;
        self.recalled().find(|held| {
            held.amount.dimension == amount.dimension
                && held.amount.counted() == amount.counted()
                && self.slots[held.slot].as_ref().is_some_and(recent)
        })
    }

    /// Iterates over the [`RECALLED`] newest stated quantities, and then over the [`RECALLED`]
    /// newest ones in outputs, each time from the newest to the oldest.
    fn recalled(&self) -> impl Iterator<Item = &Held> {
        let newest = |held: &'_ [Held]| held.len().saturating_sub(RECALLED);
        let (stated, shown) = (newest(&self.stated), newest(&self.shown));
        self.stated[stated..].iter().rev().chain(self.shown[shown..].iter().rev())
    }

    fn is_known(&self, value: &Quantity) -> bool {
        let (subject, amount) = (Subject::of(value), Amount::of(&value.amount));
        let same = |held: &Held| held.amount == amount && held.subject.relation(&subject).is_some();
        self.recalled().any(same)
    }

    /// Finds the thing that a number measures, as in "make it 40 s", and names it in the entry.
    /// Returns false if the entry is not to be added: because the thing is unknown, or because an
    /// older sentence about the thing has taken over the new amount.
    fn resolve(&mut self, entry: &mut Entry) -> bool {
        let [quantity] = entry.values.as_mut_slice() else { return !entry.text.is_empty() };
        let amount = Amount::of(&quantity.amount);
        if quantity.loose {
            if let Some(meant) = self.named_in(quantity) {
                (quantity.subject, quantity.loose) = (meant, false);
            }
            return true;
        } else if quantity.subject.is_empty() {
            let Some(meant) = self.last_of_kind(&amount, entry.origin) else {
                // "8 workers" names what it counts.
                quantity.subject = amount.counted().to_owned();
                entry.text = format!("{}: {}", quantity.subject, quantity.amount);
                return !quantity.subject.is_empty();
            };
            quantity.subject.clone_from(&meant.quantity.subject);
            quantity.loose = meant.quantity.loose;
            if quantity.loose {
                let (newer, slot) = (quantity.clone(), meant.slot);
                self.supersede(&newer, entry.voice);
                if let Some(old) = self.slots[slot].as_mut() {
                    old.origin = entry.origin;
                }
                return false;
            }
        } else if let Some(meant) = self.longer_name(quantity, &amount) {
            quantity.subject = meant;
        }
        let observed = if quantity.observed { " (observed)" } else { "" };
        entry.text = format!("{}: {}{observed}", quantity.subject, quantity.amount);
        true
    }

    /// Returns the known subject that the words around a loose quantity name; `None` if they name
    /// none or several, or if the quantity is not loose.
    fn named_in(&self, quantity: &Quantity) -> Option<String> {
        if !quantity.loose {
            return None;
        }
        let amount = Amount::of(&quantity.amount);
        let held: Vec<&Held> = self
            .recalled()
            .filter(|held| held.amount.dimension == amount.dimension && !held.quantity.loose)
            .collect();
        let related = relations(held.iter().map(|held| &held.subject), &Subject::of(quantity));
        let same = related.iter().position(|related| *related == Related::Same)?;
        Some(held[same].quantity.subject.clone())
    }

    /// Returns the known subject whose name has all words of the quantity's subject and more, if
    /// there is only one: "timeout" means "request timeout" if no other timeout is known.
    fn longer_name(&self, quantity: &Quantity, amount: &Amount) -> Option<String> {
        let short = key(&quantity.subject);
        let mut found: Option<&Held> = None;
        for held in self.recalled() {
            let other = held.amount.dimension != amount.dimension || held.quantity.loose;
            let key = held.subject.words();
            if other || !key.is_superset(&short) {
                continue;
            }
            match found {
                _ if key == short => return None,
                Some(other) if other.subject.words() != key => return None,
                _ => found = Some(held),
            }
        }
        found.map(|held| held.quantity.subject.clone())
    }

    /// Applies a new amount to the older entries about the same subject. Drops numbers with another
    /// amount. Statements take over the new amount and stay, since a statement may contain more
    /// than the number. Marks numbers and requests as `earlier` if it is doubtful whether they are
    /// about the same subject.
    fn supersede(&mut self, newer: &Quantity, voice: Voice) {
        let (subject, amount) = (Subject::of(newer), Amount::of(&newer.amount));
        for held in [&mut self.stated, &mut self.shown] {
            let start = held.len().saturating_sub(RECALLED);
            let recent = relations(held[start..].iter().map(|held| &held.subject), &subject);
            let mut related = std::iter::repeat_n(Related::Not, start).chain(recent);
            held.retain_mut(|held| {
                let related = related.next().unwrap_or(Related::Not);
                !update(held, &mut self.slots, (newer, voice), related, &amount)
            });
        }
    }
}

/// Updates the entry of an older quantity from a newer one. Returns whether the entry was dropped.
fn update(
    held: &mut Held,
    slots: &mut [Option<Entry>],
    (newer, voice): (&Quantity, Voice),
    related: Related,
    amount: &Amount,
) -> bool {
    let Some(entry) = slots[held.slot].as_mut() else { return false };
    // The output of a tool can refute what the model said, but not what a person wants.
    let claimed = entry.voice == Voice::Model && voice == Voice::Output;
    let other = held.amount.dimension == amount.dimension
        && held.amount != *amount
        && (held.quantity.observed || !newer.observed || claimed);
    match (related, entry.kind) {
        _ if !other => {}
        (Related::Same, Kind::Number)
            if !(newer.loose && held.quantity.subject == newer.subject) =>
        {
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

/// Puts the newer amount into a statement and keeps the old one beside it, as in `40 s (was 30 s)`.
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
