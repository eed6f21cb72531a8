//! The strategy `tiered` with a query: the ranking of the units by the query decides which older
//! units stay. Where tools were used, most of the room is for lines that the query or the work at
//! hand refers to, since most lines of a tool's result concern neither.
//!
//! The shown messages then depend on the query, so a cached prompt is valid only up to the first
//! unit that another query would not show.

use super::form::Form;
use super::reads::Reads;
use super::work::{Sight, Work};
use super::{Draft, shorten};
use crate::curation::strategy::{Aim, Projection, Verdict, rank};
use crate::curation::unit::{History, Unit};
use crate::session::message::Role;

/// Share of the budget for the newest units, whether or not they fit the query.
const RECENT: f64 = 0.05;
/// Share of the budget for the newest units if tools were used: the next steps continue them.
const RECENT_STEPS: f64 = 0.1;
/// The newest unit stays if it costs at most the room that is left, divided by this number.
const NEWEST: u64 = 4;
/// Share of the budget for the units that fit the query best, where tools were used.
const RANKED: f64 = 0.05;
/// Size in tokens above which only the beginning and the end of a result are shown.
const LARGE: u64 = 2000;
/// Minimum room for trying to fit the beginning and end of a large result, in tokens.
const ROOM_FOR_ENDS: u64 = 200;

/// Shows the units that cannot be left out, the newest units, the units that fit the query best,
/// and, where tools were used, lines of the others.
pub(super) fn project(history: &History<'_>, aim: &Aim<'_>, query: &str) -> Projection {
    let budget = aim.budget;
    let scores = rank::scores(history, query, aim.similarity);
    let order = rank::best_first(&scores);
    let mut choice = Choice::new(history, budget);
    let uses_tools = history.messages.iter().any(|message| message.role == Role::Tool);
    let recent = if uses_tools { RECENT_STEPS } else { RECENT };
    choice.take_recent((budget as f64 * recent) as u64);
    if uses_tools {
        choice.take_best(&order, (budget as f64 * RANKED) as u64);
    } else {
        choice.take_best(&order, choice.left);
    }
    let work = if uses_tools { choice.work(query) } else { Work::default() };
    let mut draft = Draft::new(history, budget, choice.forms);
    draft.fill(work, history.messages.len(), budget, order.into_iter());
    let projection = draft.within();
    let ranked = history.units.iter().zip(&projection.verdicts).zip(scores);
    let verdict = |((unit, verdict), score): ((&Unit, &Verdict), _)| {
        rank::verdict(unit.kept, verdict.fate, score)
    };
    Projection { verdicts: ranked.map(verdict).collect(), ..projection }
}

struct Choice<'a, 'h> {
    history: &'a History<'h>,
    forms: Vec<Form>,
    chosen: Vec<bool>,
    left: u64,
}

impl<'a, 'h> Choice<'a, 'h> {
    fn new(history: &'a History<'h>, budget: u64) -> Self {
        let mut forms = vec![Form::Dropped; history.messages.len()];
        let mut left = budget;
        for unit in history.units.iter().filter(|unit| unit.kept.is_some()) {
            left = left.saturating_sub(unit.tokens);
            unit.members.iter().for_each(|member| forms[*member] = Form::Whole);
        }
        let chosen = history.units.iter().map(|unit| unit.kept.is_some()).collect();
        Self { history, forms, chosen, left }
    }

    /// Takes the newest units as long as they cost no more than `tokens` together. The newest of
    /// all may cost more; see [`NEWEST`].
    fn take_recent(&mut self, tokens: u64) {
        let newest = self.history.units.last().map_or(0, |unit| unit.tokens);
        let newest = if newest <= self.left / NEWEST { newest } else { 0 };
        let least = self.left.saturating_sub(tokens.max(newest));
        let history = self.history;
        for (at, unit) in history.units.iter().enumerate().rev() {
            let fits = self.left.saturating_sub(unit.tokens) >= least;
            if unit.kept.is_none() && !(fits && self.take(at)) {
                break;
            }
        }
    }

    /// Takes units in the given order, best first, as far as they fit into `tokens` together.
    fn take_best(&mut self, order: &[usize], tokens: u64) {
        let spared = self.left.saturating_sub(tokens);
        self.left -= spared;
        for at in order {
            self.take(*at);
        }
        self.left += spared;
    }

    /// Reads the work at hand, with the query as a part of it.
    fn work(&self, query: &str) -> Work<'h> {
        let reads = Reads::over(self.history);
        let sight = |index: usize| match self.forms[index] {
            Form::Dropped if !reads.is_superseded(index, usize::MAX) => Sight::Hidden,
            Form::Whole => Sight::Shown,
            _ => Sight::Outdated,
        };
        Work::of(self.history, self.history.messages.len() - 1, sight, Some(query))
    }

    /// Takes a unit if it fits. Returns whether it is taken.
    fn take(&mut self, at: usize) -> bool {
        let unit = &self.history.units[at];
        if self.chosen[at] {
            return true;
        }
        let large = |member: &usize| self.form(*member) == Form::Spilled;
        if self.left < ROOM_FOR_ENDS && unit.members.iter().any(large) {
            return false;
        }
        let cost = self.cost(unit);
        if cost > self.left {
            return false;
        }
        self.chosen[at] = true;
        self.left -= cost;
        for &member in &unit.members {
            self.forms[member] = self.form(member);
        }
        true
    }

    fn form(&self, member: usize) -> Form {
        let message = self.history.messages[member];
        let large = message.role == Role::Tool && message.tokens > LARGE;
        if large { Form::Spilled } else { Form::Whole }
    }

    /// Returns the cost of a unit with its large results cut.
    fn cost(&self, unit: &Unit) -> u64 {
        let cost = |&member: &usize| {
            let message = self.history.messages[member];
            let whole = self.history.measure.message(message.tokens);
            let text = shorten::text(message, self.form(member));
            text.map_or(whole, |text| self.history.measure.note(&text).min(whole))
        };
        unit.members.iter().map(cost).sum()
    }
}
