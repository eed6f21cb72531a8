//! Helpers that strategies share for showing a history.

use super::{Fate, Projection, Score, Shown, Verdict};
use crate::curation::unit::{History, Kept};

/// Shows the whole history unchanged, with this reason for each unit.
pub(super) fn everything(history: &History<'_>, reason: &'static str) -> Projection {
    let verdict = |kept: Option<Kept>| Verdict {
        fate: Fate::Kept,
        reason: kept.map_or(reason, Kept::reason),
        score: None,
    };
    Projection {
        shown: (0..history.messages.len()).map(Shown::Whole).collect(),
        verdicts: history.units.iter().map(|unit| verdict(unit.kept)).collect(),
    }
}

/// Returns the verdict on a ranked unit.
pub(super) fn ranked(kept: Option<Kept>, fate: Fate, score: Score) -> Verdict {
    let reason = match (kept, fate) {
        (Some(kept), _) => kept.reason(),
        (None, Fate::Dropped) => "fits the query less than the messages shown",
        (None, _) => "fits the query",
    };
    Verdict { fate, reason, score: Some(score) }
}
