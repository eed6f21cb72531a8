//! Replays a history from its beginning, and gives up old parts whenever the history grows too
//! large. The freed room is then filled with what the work at hand needs.
//!
//! Each choice depends only on the messages up to that point. A longer version of a history
//! therefore begins with the same choices, up to the point where it gives up more parts, and a
//! cached prompt stays valid until then. Costs of shortened messages are guessed here, and counted
//! later for the messages that remain.

use super::form::Form;
use super::reads::Reads;
use super::work::{Sight, Work};
use crate::curation::unit::{History, Kept};
use crate::session::message::{Message, Role};

/// Share of the budget at which parts of the history are given up.
const TRIGGER: f64 = 0.8;
/// Share of the budget that is shown after parts have been given up. The wider the gap to the
/// trigger, the more rarely a cached prompt becomes invalid, and the less is shown on average.
const TARGET: f64 = 0.49;
/// Share of `Folded::room` that is shown after a summary. A history is folded only once for its
/// summary, so more can be shown than after other folds: about as much as is shown on average
/// between two folds, but chosen anew. Values from 0.5 to 0.8 were tried on the sessions that
/// `docs/benchmarks.md` names.
const SUMMARIZED: f64 = 0.7;
/// Share of the room for the newest messages, which stay whole. The room is the budget without the
/// units that cannot be left out.
const RECENT: f64 = 0.1;
/// Minimum share of the room for lines of given-up messages, even if the newest messages take
/// everything below the target. A larger share keeps more of the text that is used later, but makes
/// cached prompts invalid more often. `docs/benchmarks.md` has measurements of both.
const LINES: f64 = 0.35;
/// Maximum number of tokens that [`LINES`] gives to lines. The best lines come first, so in a large
/// window, further lines are not worth giving up messages sooner.
const MOST_LINES: f64 = 8000.0;
/// Share of the budget that is reserved for the note about left-out messages. Lines that the note
/// quotes have room of their own.
const RESERVE: f64 = 0.05;
/// Size in tokens above which a result is cut to its ends, before a line replaces any result.
const LARGE: u64 = 2000;
/// Guessed cost of a line that replaces a result, in tokens.
const LINE: u64 = 30;
/// Guessed cost of the beginning and end of a result, in tokens.
const ENDS: u64 = 600;

/// Returns the number of tokens up to which a history is shown whole.
pub(super) fn trigger(budget: u64) -> u64 {
    (budget as f64 * TRIGGER) as u64
}

/// Returns the tokens reserved for the note about left-out messages; see [`RESERVE`].
pub(super) fn reserve(budget: u64) -> u64 {
    (budget as f64 * RESERVE) as u64
}

/// A history up to a message, with the parts that were given up.
pub(super) struct Fold<'a, 'h> {
    history: &'a History<'h>,
    budget: u64,
    /// Index of each message's unit.
    unit_of: Vec<usize>,
    /// Form of each message.
    pub(super) forms: Vec<Form>,
    /// Cost of each message in its current form.
    costs: Vec<u64>,
    total: u64,
    /// Room for showing parts of the given-up messages again, in tokens.
    room: u64,
    /// Tokens up to which the room is filled.
    target: u64,
    /// Index of the newest message when parts were last given up; `None` if they never were.
    folded: Option<usize>,
    /// Cost of the units that cannot be left out.
    fixed: u64,
    last_user: Option<usize>,
    /// True once a tool was used. Lines torn from messages without tools say little.
    uses_tools: bool,
    reads: Reads<'h>,
    /// Index of the next message to check for a large result that can be cut.
    spilled: usize,
    /// Index of the next message to check for a result that a line can replace.
    masked: usize,
    /// Index of the next unit to drop, if it can be dropped.
    dropped: usize,
    /// Units before `dropped` that could not be dropped when `dropped` passed them.
    passed: Vec<usize>,
    /// True once the room for the note has been counted.
    noted: bool,
}

impl<'a, 'h> Fold<'a, 'h> {
    /// Replays the whole history, and gives up parts of it so that it fits into `budget`.
    pub(super) fn over(history: &'a History<'h>, budget: u64) -> Self {
        let cost = |message: &&Message| history.measure.message(message.tokens);
        let mut fold = Self {
            history,
            budget,
            unit_of: history.unit_of_each_message(),
            forms: vec![Form::Whole; history.messages.len()],
            costs: history.messages.iter().map(cost).collect(),
            total: 0,
            room: 0,
            target: 0,
            folded: None,
            fixed: 0,
            last_user: None,
            uses_tools: false,
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
        self.uses_tools |= message.role == Role::Tool;
        if self.history.units[unit].kept == Some(Kept::InFlight) {
            // This unit can be left out once its call is answered. That must not change earlier
            // choices, so the unit does not count as fixed.
        } else if self.always_kept(unit) {
            self.fixed += self.costs[index];
        } else if message.role == Role::User && !message.is_notice() {
            let before = self.last_user.replace(unit);
            let cost = |unit: usize| self.history.units[unit].tokens;
            self.fixed = self.fixed + cost(unit) - before.map_or(0, cost);
        }
        self.reads.see(self.history, unit, index);
        if self.total + self.room > self.level(TRIGGER, 0.5) {
            self.shrink(index, self.level(TARGET, 0.25));
        }
        let summarized = self.history.folded.as_ref().filter(|folded| folded.newest == index);
        if let Some(folded) = summarized {
            let target = (folded.room.min(self.budget) as f64 * SUMMARIZED) as u64;
            if self.total + self.room > target {
                self.shrink(index, target);
            }
        }
    }

    /// Returns a level in tokens: a share of the budget, but at least the cost of the fixed units
    /// plus a share of the remaining room. Even if the fixed units take most of the budget, this
    /// leaves some room between trigger and target.
    fn level(&self, of_budget: f64, of_room: f64) -> u64 {
        let room = self.budget.saturating_sub(self.fixed);
        let least = self.fixed as f64 + room as f64 * of_room;
        (self.budget as f64 * of_budget).max(least) as u64
    }

    /// Gives up parts of the messages up to `now`, if possible until the total is at most `target`,
    /// and sets the room for lines.
    fn shrink(&mut self, now: usize, target: u64) {
        self.folded = Some(now);
        self.room = 0;
        // If tools were used, chosen lines of old messages are worth more than whole messages.
        self.drop_units(self.recent(now), now, if self.uses_tools { 0 } else { target });
        let trigger = self.level(TRIGGER, 0.5);
        if self.total > trigger {
            // The newest messages are too large. Those that the model has not seen yet are given up
            // last.
            self.again(self.unseen(now), now, target);
            if self.total > self.budget {
                self.again(now + 1, now, target);
            }
        }
        self.target = target;
        if self.uses_tools {
            // Half of the room for lines stays free below the trigger, so that the next message
            // does not make the history too large again.
            let room = self.budget.saturating_sub(self.fixed) as f64;
            let least = (room * LINES).min(MOST_LINES) as u64;
            let most = trigger.saturating_sub(least / 2);
            self.target = target.max(most.min(self.total + least));
        }
        self.room = self.target.saturating_sub(self.total);
    }

    /// Gives up more parts of the messages before `end`, including those that were spared so far.
    fn again(&mut self, end: usize, now: usize, target: u64) {
        (self.spilled, self.masked) = (self.spilled.min(now), self.masked.min(now));
        self.shorten(end, now, target);
        self.drop_units(end, now, target);
    }

    /// Returns the index of the model's last message, or 0 if there is none. The model has not seen
    /// what follows. The results of the message's calls belong to the same unit as the message.
    fn unseen(&self, now: usize) -> usize {
        let by_model = |index: &usize| self.history.messages[*index].role == Role::Assistant;
        (0..=now).rev().find(by_model).unwrap_or(0)
    }

    /// Returns the index of the first message that is new enough to stay whole.
    fn recent(&self, now: usize) -> usize {
        let mut room = self.budget.saturating_sub(self.fixed) as f64 * RECENT;
        let mut first = now;
        while first > 0 && room > self.costs[first] as f64 {
            room -= self.costs[first] as f64;
            first -= 1;
        }
        first
    }

    /// Shortens results before `end`, oldest first, until the total is at most `target`: first cuts
    /// large results, and then replaces results by a line.
    fn shorten(&mut self, end: usize, now: usize, target: u64) {
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

    /// Returns whether a unit reads a file that was read again, or written as a whole, later.
    pub(super) fn is_outdated(&self, unit: usize) -> bool {
        let now = self.folded.unwrap_or(usize::MAX);
        let members = &self.history.units[unit].members;
        members.iter().any(|index| self.reads.is_superseded(*index, now))
    }

    /// Reads the work at hand as it was when parts were last given up. Also returns the index of
    /// the newest message at that time, and the number of tokens up to which the window is filled.
    /// `None` if no parts were given up.
    pub(super) fn work(&self) -> Option<(Work<'h>, usize, u64)> {
        let now = self.folded?;
        let sight = |index: usize| match self.forms[index] {
            Form::Whole => Sight::Shown,
            _ if self.reads.is_superseded(index, now) => Sight::Outdated,
            _ => Sight::Hidden,
        };
        let work = if self.uses_tools {
            Work::of(self.history, now, sight, None)
        } else {
            Work::default()
        };
        Some((work, now, self.target))
    }

    fn set(&mut self, index: usize, form: Form, cost: u64) {
        self.total = self.total - self.costs[index] + cost;
        self.forms[index] = form;
        self.costs[index] = cost;
    }

    /// Returns whether a message is a result that is shown and may be shortened.
    fn is_result(&self, index: usize, now: usize) -> bool {
        let unit = self.unit_of[index];
        self.history.messages[index].role == Role::Tool
            && self.forms[index] <= Form::Spilled
            && self.history.units[unit].members.last().is_some_and(|last| *last <= now)
            && !self.always_kept(unit)
    }

    fn always_kept(&self, unit: usize) -> bool {
        !matches!(self.history.units[unit].kept, None | Some(Kept::LastUser))
    }
}
