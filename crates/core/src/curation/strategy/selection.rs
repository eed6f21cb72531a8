//! A selection of whole units in progress: the kept units, their cost, and the resulting
//! projection. Units that cannot be left out are kept from the start.

use super::{Fate, Projection, Score, Shown, Verdict};
use crate::curation::unit::History;

/// The units that are kept so far.
pub struct UnitSelection<'b, 'a> {
    history: &'b History<'a>,
    budget: u64,
    tokens: u64,
    /// Reason for keeping each unit; `None` for a unit that is left out.
    kept: Vec<Option<&'static str>>,
    scores: Vec<Option<Score>>,
}

/// Reason for keeping everything.
pub const FITS: &str = "everything fits";

impl<'b, 'a> UnitSelection<'b, 'a> {
    /// Starts a selection that keeps only the units of `history` that cannot be left out.
    pub fn new(history: &'b History<'a>, budget: u64) -> Self {
        let kept: Vec<_> =
            history.units.iter().map(|unit| unit.kept.map(|kept| kept.reason())).collect();
        let always = history.units.iter().filter(|unit| unit.kept.is_some());
        let tokens = always.map(|unit| unit.tokens).sum();
        Self { history, budget, tokens, kept, scores: Vec::new() }
    }

    /// Sets the units' scores, which then appear in the verdicts.
    #[must_use]
    pub fn scored(self, scores: Vec<Score>) -> Self {
        Self { scores: scores.into_iter().map(Some).collect(), ..self }
    }

    /// Returns whether the whole history fits.
    pub fn everything_fits(&self) -> bool {
        self.history.tokens() <= self.budget
    }

    /// Returns the number of tokens that may still be added.
    pub fn room(&self) -> u64 {
        self.budget.saturating_sub(self.tokens)
    }

    /// Keeps a unit if it fits. Returns whether it is kept.
    pub fn keep(&mut self, unit: usize, why: &'static str) -> bool {
        let cost = self.history.units[unit].tokens;
        if self.kept[unit].is_none() && cost <= self.room() {
            self.kept[unit] = Some(why);
            self.tokens += cost;
        }
        self.kept[unit].is_some()
    }

    /// Reserves `tokens` for a later addition if there is room for them. Returns the number of
    /// reserved tokens, which is `tokens` or 0.
    pub fn reserve(&mut self, tokens: u64) -> u64 {
        let held = if tokens <= self.room() { tokens } else { 0 };
        self.tokens += held;
        held
    }

    /// Frees `held`, the number of tokens that [`Self::reserve`] returned.
    pub fn give_back(&mut self, held: u64) {
        self.tokens -= held;
    }

    /// Returns the number of messages that are left out.
    pub fn left_out(&self) -> usize {
        let out = self.history.units.iter().zip(&self.kept).filter(|(_, kept)| kept.is_none());
        out.map(|(unit, _)| unit.members.len()).sum()
    }

    /// Shows everything unchanged.
    pub fn all(mut self) -> Projection {
        self.kept.iter_mut().for_each(|kept| *kept = Some(kept.unwrap_or(FITS)));
        self.finish(FITS)
    }

    /// Shows the kept units. `left_out` is the reason for leaving out the others.
    pub fn finish(self, left_out: &'static str) -> Projection {
        let shown = self.kept_messages().into_iter().map(Shown::Whole).collect();
        Projection { shown, verdicts: self.verdicts(left_out) }
    }

    /// Like [`Self::finish`], with a note in place of the first left-out message, if the note fits.
    pub fn finish_with_note(
        self,
        left_out: &'static str,
        content: String,
        tokens: u64,
    ) -> Projection {
        if tokens > self.room() {
            return self.finish(left_out);
        }
        let kept = self.kept_messages();
        let gap = kept.iter().enumerate().take_while(|(at, index)| at == *index).count();
        let mut shown: Vec<Shown> = kept.into_iter().map(Shown::Whole).collect();
        shown.insert(gap, Shown::Note { content, tokens, lines: Vec::new() });
        Projection { shown, verdicts: self.verdicts(left_out) }
    }

    fn kept_messages(&self) -> Vec<usize> {
        let mut is_kept = vec![false; self.history.messages.len()];
        for (unit, kept) in self.history.units.iter().zip(&self.kept) {
            unit.members.iter().for_each(|index| is_kept[*index] = kept.is_some());
        }
        let kept = is_kept.into_iter().enumerate().filter(|(_, kept)| *kept);
        kept.map(|(index, _)| index).collect()
    }

    fn verdicts(self, left_out: &'static str) -> Vec<Verdict> {
        let mut scores = self.scores.into_iter();
        let verdict = |kept: Option<&'static str>| Verdict {
            fate: if kept.is_some() { Fate::Kept } else { Fate::Dropped },
            reason: kept.unwrap_or(left_out),
            score: scores.next().flatten(),
        };
        self.kept.into_iter().map(verdict).collect()
    }
}
