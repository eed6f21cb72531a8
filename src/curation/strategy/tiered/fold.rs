//! Goes through a history as it came to be, and gives up old parts whenever it grows too large.
//!
//! What is given up depends only on what had been said by then. So a history and the same one
//! with more behind it are the same up to where the longer one gave up something more, and a
//! cache of the prompt stays good between. What shortened messages cost is guessed here and counted
//! later, for those that are left.

use super::reads::Reads;
use super::show;
use crate::curation::unit::{History, Kept};
use crate::session::message::Role;

/// At which share of the budget something is given up.
const TRIGGER: f64 = 0.8;
/// Down to which share of the budget. The farther apart the two are, the more seldom a cached
/// prompt is invalidated, and the less is shown on average.
const TARGET: f64 = 0.5;
/// Which share of the room for what can be lost belongs to the newest messages, which stay whole.
const RECENT: f64 = 0.25;
/// Which share of the budget the note about what is left out may take.
const RESERVE: f64 = 0.05;
/// Results of more tokens are cut before others are left out altogether.
const LARGE: u64 = 2000;
/// What a line in place of a result costs, as a guess.
const LINE: u64 = 30;
/// What the beginning and end of a result cost, as a guess.
const ENDS: u64 = 600;

/// What is shown of a message. In the order of how much is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// All of it.
    Whole,
    /// The beginning and the end of a large result.
    Spilled,
    /// A line, since the message of this number read the same file later.
    Repeated(u64),
    /// A line in place of a result.
    Masked,
    /// Nothing.
    Dropped,
}

/// How many tokens a history may have before something is given up.
pub(super) fn trigger(budget: u64) -> u64 {
    (budget as f64 * TRIGGER) as u64
}

/// How many tokens the note about what is left out may have.
pub(super) fn reserve(budget: u64) -> u64 {
    (budget as f64 * RESERVE) as u64
}

/// A history up to a message, with what was given up.
pub(super) struct Fold<'a, 'h> {
    history: &'a History<'h>,
    budget: u64,
    unit_of: Vec<usize>,
    /// What is shown of each message.
    pub(super) forms: Vec<Form>,
    /// What each message costs in its form.
    costs: Vec<u64>,
    total: u64,
    /// What of it can never be lost.
    fixed: u64,
    last_user: Option<usize>,
    reads: Reads<'h>,
    /// Up to which message each tier has come.
    spilled: usize,
    masked: usize,
    /// Up to which unit units are gone, and those before it that were not to be lost then.
    dropped: usize,
    passed: Vec<usize>,
    /// Whether the room for the note is counted.
    noted: bool,
}

impl<'a, 'h> Fold<'a, 'h> {
    /// Folds over the whole history.
    pub(super) fn over(history: &'a History<'h>, budget: u64) -> Self {
        let cost =
            |message: &&crate::session::message::Message| history.measure.message(message.tokens);
        let mut fold = Self {
            history,
            budget,
            unit_of: show::unit_of_each_message(history),
            forms: vec![Form::Whole; history.messages.len()],
            costs: history.messages.iter().map(cost).collect(),
            total: 0,
            fixed: 0,
            last_user: None,
            reads: Reads::default(),
            spilled: 0,
            masked: 0,
            dropped: 0,
            passed: Vec::new(),
            noted: false,
        };
        for index in 0..history.messages.len() {
            fold.advance(index);
        }
        fold
    }

    fn advance(&mut self, index: usize) {
        let unit = self.unit_of[index];
        let message = self.history.messages[index];
        self.total += self.costs[index];
        if self.history.units[unit].kept == Some(Kept::InFlight) {
            // An answer to come would make it one that can be lost, and nothing that was chosen
            // before may then have been chosen otherwise.
        } else if self.always_kept(unit) {
            self.fixed += self.costs[index];
        } else if message.role == Role::User {
            let before = self.last_user.replace(unit);
            let cost = |unit: usize| self.history.units[unit].tokens;
            self.fixed = self.fixed + cost(unit) - before.map_or(0, cost);
        }
        self.reads.see(self.history, unit, index);
        if self.total > self.level(TRIGGER, 0.5) {
            self.shrink(index);
        }
    }

    /// A share of the budget, but at least a share of what is left beside that which is never
    /// lost, so that something can be left between trigger and target when that takes most of it.
    fn level(&self, of_budget: f64, of_room: f64) -> u64 {
        let room = self.budget.saturating_sub(self.fixed);
        let least = self.fixed as f64 + room as f64 * of_room;
        (self.budget as f64 * of_budget).max(least) as u64
    }

    fn shrink(&mut self, now: usize) {
        let target = self.level(TARGET, 0.25);
        self.tiers(self.recent(now), now, target);
        if self.total > self.level(TRIGGER, 0.5) {
            // What came last is too large even alone.
            (self.spilled, self.masked) = (self.spilled.min(now), self.masked.min(now));
            self.tiers(now + 1, now, target);
        }
    }

    /// The first of the newest messages that stay whole.
    fn recent(&self, now: usize) -> usize {
        let mut room = self.budget.saturating_sub(self.fixed) as f64 * RECENT;
        let mut first = now;
        while first > 0 && room > self.costs[first] as f64 {
            room -= self.costs[first] as f64;
            first -= 1;
        }
        first
    }

    /// Gives up of the messages before `end`, until the total is at most `target`.
    fn tiers(&mut self, end: usize, now: usize, target: u64) {
        for (older, newer) in self.reads.repeated(end) {
            if self.forms[older] <= Form::Spilled && self.is_losable(older, now) {
                let number = self.history.messages[newer].number;
                self.set(older, Form::Repeated(number), LINE);
            }
        }
        while self.total > target && self.spilled < end {
            let at = self.spilled;
            self.spilled += 1;
            if self.is_result(at, now) && self.costs[at] > LARGE {
                self.set(at, Form::Spilled, ENDS);
            }
        }
        while self.total > target && self.masked < end {
            let at = self.masked;
            self.masked += 1;
            if self.is_result(at, now) && self.costs[at] > 2 * LINE {
                self.set(at, Form::Masked, LINE);
            }
        }
        self.drop_units(end, now, target);
    }

    fn drop_units(&mut self, end: usize, now: usize, target: u64) {
        let again = std::mem::take(&mut self.passed);
        for unit in again {
            self.drop_unit(unit, end, now, target);
        }
        while self.total > target && self.dropped < self.history.units.len() {
            let unit = self.dropped;
            if self.history.units[unit].members[0] >= end {
                break;
            }
            self.dropped += 1;
            self.drop_unit(unit, end, now, target);
        }
    }

    fn drop_unit(&mut self, unit: usize, end: usize, now: usize, target: u64) {
        if self.always_kept(unit) {
            return;
        }
        let members = &self.history.units[unit].members;
        let open = members.last().is_some_and(|last| *last >= end || *last > now);
        if self.total <= target || open || self.last_user == Some(unit) {
            self.passed.push(unit);
            return;
        }
        if !self.noted {
            self.noted = true;
            self.total += reserve(self.budget);
        }
        for &member in members {
            self.set(member, Form::Dropped, 0);
        }
    }

    fn set(&mut self, index: usize, form: Form, cost: u64) {
        self.total = self.total - self.costs[index] + cost;
        self.forms[index] = form;
        self.costs[index] = cost;
    }

    /// Whether a message is a result that is shown and may be shortened.
    fn is_result(&self, index: usize, now: usize) -> bool {
        self.history.messages[index].role == Role::Tool
            && self.forms[index] <= Form::Spilled
            && self.is_losable(index, now)
    }

    fn is_losable(&self, index: usize, now: usize) -> bool {
        let unit = self.unit_of[index];
        let complete = self.history.units[unit].members.last().is_some_and(|last| *last <= now);
        !self.always_kept(unit) && complete
    }

    fn always_kept(&self, unit: usize) -> bool {
        !matches!(self.history.units[unit].kept, None | Some(Kept::LastUser))
    }
}
