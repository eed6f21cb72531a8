//! Pruning by importance: a history within a number of tokens, what was taken out of it, and when
//! that is called for.

use super::budget::{BudgetTooSmall, Irreducible};
use super::report::What;
use super::section::Section;
use super::strategy::importance::{Importance, unit_of_last_message};
use super::strategy::selection::FITS;
use super::strategy::{Aim, Fate, Strategy, Verdict};
use super::unit::History;
use super::window::irreducible;
use crate::tokens::model::{Model, TARGET_UTILISATION};

/// How many of the newest messages stay when a history is summarized and nothing else is said.
pub const SUMMARIZED_BUT: usize = 10;

/// A history after pruning.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// The numbers of the messages that stay, in their order.
    pub kept: Vec<u64>,
    /// The numbers of those that do not.
    pub removed: Vec<u64>,
    /// What that came to.
    pub stats: PruneStats,
    /// Of each unit of the history, what became of it and why, with its score.
    pub verdicts: Vec<Verdict>,
}

/// What pruning came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneStats {
    /// What the history cost.
    pub original: u64,
    /// What it costs now.
    pub remaining: u64,
    /// How many messages were removed.
    pub items_removed: u64,
    /// How many stayed.
    pub items_kept: u64,
}

/// How full a model is of a history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryStats {
    /// How many messages it has.
    pub items: u64,
    /// What they cost.
    pub tokens: u64,
    /// How much the model takes.
    pub limit: u64,
    /// The tokens in percent of the limit.
    pub utilization_percent: f64,
    /// Whether that is more than the target.
    pub needs_pruning: bool,
    /// Whether the tokens are the model's own, rather than estimated.
    pub exact: bool,
    /// Whether anything is known of the model, or the default was taken.
    pub model_known: bool,
}

impl PruneStats {
    /// How many tokens were saved.
    pub fn token_reduction(&self) -> u64 {
        self.original.saturating_sub(self.remaining)
    }
}

/// Takes the units that score lowest out of a history, until it costs at most `max_tokens`, or the
/// model's target ([`Model::target`]). What is never lost and the last message stay.
///
/// # Errors
///
/// [`BudgetTooSmall`] when what is never lost and the last message cost more than that.
pub fn prune(
    history: &History<'_>,
    max_tokens: Option<u64>,
    model: &Model,
) -> Result<Pruned, BudgetTooSmall> {
    let budget = max_tokens.unwrap_or_else(|| model.target());
    check(history, budget)?;
    let projection = Importance.project(history, &Aim { budget, query: None });
    Ok(Pruned::of(history, projection.verdicts))
}

/// The same when the history is more than the model's target, and otherwise everything as it is.
///
/// # Errors
///
/// Those of [`prune`].
pub fn auto_manage(history: &History<'_>, model: &Model) -> Result<Pruned, BudgetTooSmall> {
    match stats(history, model).needs_pruning {
        true => prune(history, None, model),
        false => {
            let kept = Verdict { fate: Fate::Kept, reason: FITS, score: None };
            Ok(Pruned::of(history, vec![kept; history.units.len()]))
        }
    }
}

impl HistoryStats {
    /// The same with as many tokens more, of what is not in the history.
    #[must_use]
    pub fn with(self, more: u64) -> Self {
        let tokens = self.tokens + more;
        let share = tokens as f64 / self.limit.max(1) as f64;
        let needs_pruning = share > TARGET_UTILISATION;
        Self { tokens, utilization_percent: share * 100.0, needs_pruning, ..self }
    }
}

/// How full the model is of a history.
pub fn stats(history: &History<'_>, model: &Model) -> HistoryStats {
    let tokens = history.tokens();
    let limit = model.limit;
    let share = tokens as f64 / limit.max(1) as f64;
    HistoryStats {
        items: history.messages.len() as u64,
        tokens,
        limit,
        utilization_percent: share * 100.0,
        needs_pruning: share > TARGET_UTILISATION,
        exact: history.measure.is_exact(),
        model_known: model.known,
    }
}

impl Pruned {
    fn of(history: &History<'_>, verdicts: Vec<Verdict>) -> Self {
        let mut stays = vec![true; history.messages.len()];
        let mut left = 0;
        for (unit, verdict) in history.units.iter().zip(&verdicts) {
            let dropped = verdict.fate == Fate::Dropped;
            left += if dropped { 0 } else { unit.tokens };
            unit.members.iter().for_each(|index| stays[*index] = !dropped);
        }
        let numbers = |wanted: bool| {
            let marked = history.messages.iter().zip(&stays).filter(|(_, stays)| **stays == wanted);
            marked.map(|(message, _)| message.number).collect::<Vec<_>>()
        };
        let (kept, removed) = (numbers(true), numbers(false));
        let stats = PruneStats {
            original: history.tokens(),
            remaining: left,
            items_removed: removed.len() as u64,
            items_kept: kept.len() as u64,
        };
        Self { kept, removed, stats, verdicts }
    }
}

fn check(history: &History<'_>, max_tokens: u64) -> Result<(), BudgetTooSmall> {
    let mut parts: Vec<Irreducible> = irreducible(history).collect();
    let last = unit_of_last_message(history).map(|at| &history.units[at]);
    if let Some(last) = last.filter(|unit| unit.kept.is_none()) {
        parts.push(Irreducible {
            section: Section::Messages,
            what: What::Messages(history.members(last).map(|message| message.number).collect()),
            reason: "the last message",
            tokens: last.tokens,
        });
    }
    let needed = parts.iter().map(|part| part.tokens).sum();
    if needed > max_tokens && history.tokens() > max_tokens {
        return Err(BudgetTooSmall { needed, max_tokens, parts });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
