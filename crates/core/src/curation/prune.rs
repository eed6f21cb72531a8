//! Pruning by importance: trims a history to a number of tokens, and reports when that is due.

use serde::Serialize;

use super::budget::{Irreducible, WindowBudgetTooSmall};
use super::report::ReportPart;
use super::section::Section;
use super::strategy::importance::{Importance, unit_of_last_message};
use super::strategy::selection::FITS;
use super::strategy::{Aim, Fate, Strategy, Verdict};
use super::unit::History;
use super::window::irreducible;
use crate::tokens::model::{Model, TARGET_UTILISATION};

/// Default number of newest messages that a summary leaves unchanged.
pub const SUMMARIZED_BUT: usize = 10;

/// A history after pruning.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// Numbers of the messages that stay, in order.
    pub kept: Vec<u64>,
    /// Numbers of the messages that were removed.
    pub removed: Vec<u64>,
    /// Costs and counts before and after.
    pub stats: PruneStats,
    /// Outcome of each unit of the history, with its reason and score.
    pub verdicts: Vec<Verdict>,
}

/// The cost of a history before and after pruning, and the counts of removed and kept messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneStats {
    /// Cost of the history before, in tokens.
    pub original: u64,
    /// Cost of the history after, in tokens.
    pub remaining: u64,
    /// Number of removed messages.
    pub items_removed: u64,
    /// Number of kept messages.
    pub items_kept: u64,
}

/// The share of a model's limit that a history fills.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct HistoryStats {
    /// Number of messages.
    pub items: u64,
    /// Cost in tokens.
    pub tokens: u64,
    /// Maximum number of tokens that the model accepts.
    pub limit: u64,
    /// Cost in percent of the limit.
    pub utilization_percent: f64,
    /// True if the utilization is above the model's target.
    pub needs_pruning: bool,
    /// Name of the model.
    pub model: String,
    /// True if the model is known, so that no default was used.
    pub model_known: bool,
    /// True if the counts are the model's own rather than estimates.
    pub exact: bool,
}

impl PruneStats {
    /// Returns the number of tokens that were saved.
    pub fn token_reduction(&self) -> u64 {
        self.original.saturating_sub(self.remaining)
    }
}

/// Removes the units with the lowest scores until the history costs at most `max_tokens`. `None`
/// stands for the model's target ([`Model::target`]). The units that cannot be left out and the
/// last message stay.
///
/// # Errors
///
/// [`WindowBudgetTooSmall`] when these messages alone cost more.
pub fn prune(
    history: &History<'_>,
    max_tokens: Option<u64>,
    model: &Model,
) -> Result<Pruned, WindowBudgetTooSmall> {
    let budget = max_tokens.unwrap_or_else(|| model.target());
    check(history, budget)?;
    let projection = Importance.project(history, &Aim { budget, ..Aim::default() });
    Ok(Pruned::of(history, projection.verdicts))
}

/// Prunes the history like [`prune`] if it exceeds the model's target, and leaves it unchanged if
/// not.
///
/// # Errors
///
/// The errors of [`prune`].
pub fn auto_manage(
    history: &History<'_>,
    max_tokens: Option<u64>,
    model: &Model,
) -> Result<Pruned, WindowBudgetTooSmall> {
    match stats(history, model).needs_pruning {
        true => prune(history, max_tokens, model),
        false => {
            let kept = Verdict { fate: Fate::Kept, reason: FITS, score: None };
            Ok(Pruned::of(history, vec![kept; history.units.len()]))
        }
    }
}

impl HistoryStats {
    /// Returns these statistics with `more` tokens added, for text outside the history.
    #[must_use]
    pub fn with(self, more: u64) -> Self {
        let tokens = self.tokens + more;
        let share = tokens as f64 / self.limit.max(1) as f64;
        let needs_pruning = share > TARGET_UTILISATION;
        Self { tokens, utilization_percent: share * 100.0, needs_pruning, ..self }
    }
}

/// Returns the share of the model's limit that a history fills.
pub fn stats(history: &History<'_>, model: &Model) -> HistoryStats {
    let stats = HistoryStats {
        items: history.messages.len() as u64,
        tokens: 0,
        limit: model.limit,
        utilization_percent: 0.0,
        needs_pruning: false,
        model: model.name.clone(),
        model_known: model.known,
        exact: history.measure.is_exact(),
    };
    stats.with(history.tokens())
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

fn check(history: &History<'_>, max_tokens: u64) -> Result<(), WindowBudgetTooSmall> {
    let mut parts: Vec<Irreducible> = irreducible(history).collect();
    let last = unit_of_last_message(history).map(|at| &history.units[at]);
    if let Some(last) = last.filter(|unit| unit.kept.is_none()) {
        parts.push(Irreducible {
            section: Section::Messages,
            what: ReportPart::Messages(history.numbers(last)),
            reason: "the last message",
            tokens: last.tokens,
        });
    }
    let needed = parts.iter().map(|part| part.tokens).sum();
    if needed > max_tokens && history.tokens() > max_tokens {
        return Err(WindowBudgetTooSmall { needed, max_tokens, parts });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
