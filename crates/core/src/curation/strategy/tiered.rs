//! The strategy `tiered`: keeps the newest messages, and of the older ones the lines that the work
//! needs, each with its neighbours.
//!
//! What the work needs is told by [names](crate::retrieval::names): a name weighs more if it was
//! written more often, more recently, in calls, or by people or the model rather than by tools.
//! Each name gets one place. First come the lines whose names weigh most, compared with what the
//! lines cost with their neighbours; of equal lines, the newest. A share of the room is for the
//! user's words. The whole room is used.
//!
//! Parts are chosen anew only when the room is full; see [`refill`].

mod choice;
mod ends;
mod notes;
mod refill;
mod shown;
mod worth;

use choice::{Choice, Focus};
use refill::Refill;

use super::selection::UnitSelection;
use super::{Aim, Projection, Strategy, Verdict, rank};
use crate::curation::unit::{History, Unit};
use crate::session::message::Role;

/// Share of the room for the newest units.
const TAIL: f64 = 0.2;
/// Share of the room for the newest units, if there is a query.
const TAIL_ASKED: f64 = 0.05;
/// The same if tools were used: the next steps continue the newest.
const TAIL_STEPS: f64 = 0.1;
/// Share of the room for the units that fit the query best, where tools were used. Where none were
/// used, they get all of it.
const RANKED: f64 = 0.05;

/// The default strategy; see the module's documentation.
pub(super) struct Tiered;

impl Strategy for Tiered {
    fn name(&self) -> &'static str {
        "tiered"
    }

    fn keeps(&self) -> &'static str {
        "everything that fits; else the newest, and older lines the work names"
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let Some(query) = aim.query else { return unasked(history, aim) };
        let budget = history.room(aim.budget);
        match history.tokens() <= budget {
            true => UnitSelection::new(history, aim.budget).all(),
            false => asked(history, &Aim { budget, ..*aim }, query),
        }
    }
}

fn unasked(history: &History<'_>, aim: &Aim<'_>) -> Projection {
    let budget = aim.budget;
    let last = match aim.once {
        true => Refill::whole(history, budget),
        false => Refill::last(history, budget),
    };
    let Some(mut refill) = last else { return UnitSelection::new(history, budget).all() };
    loop {
        let choice = Choice::new(history, refill, None).fill(TAIL);
        let newest = history.messages.len() - 1;
        if choice.tokens() <= budget || refill.now == newest {
            return choice.show(budget);
        }
        refill.now = newest;
    }
}

fn asked(history: &History<'_>, aim: &Aim<'_>, query: &str) -> Projection {
    let scores = rank::scores(history, query, aim.similarity);
    let order = rank::best_first(&scores);
    let uses_tools = history.messages.iter().any(|message| message.role == Role::Tool);
    let (tail, ranked) = if uses_tools { (TAIL_STEPS, RANKED) } else { (TAIL_ASKED, 1.0) };
    let refill = Refill { now: history.messages.len() - 1, target: aim.budget };
    let asked = Focus { query, order: &order, share: ranked };
    let projection = Choice::new(history, refill, Some(asked)).fill(tail).show(aim.budget);
    let ranked = history.units.iter().zip(&projection.verdicts).zip(scores);
    let verdict = |((unit, verdict), score): ((&Unit, &Verdict), _)| {
        rank::verdict(unit.kept, verdict.fate, score)
    };
    Projection { verdicts: ranked.map(verdict).collect(), ..projection }
}

#[cfg(test)]
mod tests;
