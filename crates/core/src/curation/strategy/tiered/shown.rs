//! Turns a choice into what is shown: whole messages, notes, and the reasons.

use super::choice::{Choice, TieredLine};
use super::notes;
use crate::curation::strategy::{Fate, Projection, Shown, Verdict};
use crate::curation::unit::KeptReason;

impl<'h> Choice<'_, 'h> {
    /// Returns the cost of a message that is shown, in tokens.
    pub(super) fn cost(&self, index: usize) -> u64 {
        let whole = || self.history.measure.message(self.history.messages[index].tokens);
        self.cut.get(&index).map_or_else(whole, |(_, cost)| *cost)
    }

    /// Returns the cost of what is shown of the messages up to the point, in tokens.
    pub(super) fn counted(&self) -> u64 {
        let later: u64 = (self.refill.now + 1..self.unit_of.len()).map(|at| self.cost(at)).sum();
        self.tokens() - later
    }

    /// Returns the cost of all that is shown, in tokens.
    pub(super) fn tokens(&self) -> u64 {
        let cost = |shown: &Shown| shown.tokens(self.history);
        self.shown().iter().map(cost).sum()
    }

    /// Lists what is shown, in order: messages of whole units, and a note for each gap.
    fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        let mut gap: Option<(usize, usize)> = None;
        for index in 0..self.unit_of.len() {
            if !self.whole[self.unit_of[index]] {
                gap = Some((gap.map_or(index, |gap| gap.0), index));
                continue;
            }
            shown.extend(gap.take().map(|gap| self.note(gap)));
            shown.push(match self.cut.get(&index).cloned() {
                Some((content, tokens)) => Shown::Shortened { index, content, tokens },
                None => Shown::Whole(index),
            });
        }
        shown.extend(gap.map(|gap| self.note(gap)));
        shown
    }

    fn note(&self, gap: (usize, usize)) -> Shown {
        let lines = (gap.0..=gap.1).flat_map(|index| self.lines_of[index].clone());
        let lines: Vec<&TieredLine<'h>> =
            lines.filter(|line| self.is_kept[*line]).map(|line| &self.lines[line]).collect();
        let whole: u64 = (gap.0..=gap.1).map(|index| self.cost(index)).sum();
        let of_message = |lines: &[&TieredLine<'h>]| {
            let cost: f64 = lines.iter().map(|line| line.cost).sum();
            let message = lines[0].message;
            (message, self.cost(message).min(cost.ceil() as u64))
        };
        let costs: Vec<(usize, u64)> =
            lines.chunk_by(|left, right| left.message == right.message).map(of_message).collect();
        let left_out = whole.saturating_sub(costs.iter().map(|(_, cost)| cost).sum());
        let content = notes::note(self.history, gap, left_out, &lines);
        let tokens = self.history.measure.note(&content);
        Shown::Note { content, tokens, lines: costs }
    }

    /// Returns the projection. Gives up lines, the last choices first, and then notes, if it would
    /// exceed the budget.
    pub(super) fn show(mut self, budget: u64) -> Projection {
        while self.tokens() > budget && !self.order.is_empty() {
            let less = self.order.len() - self.order.len().div_ceil(20);
            for line in self.order.split_off(less) {
                self.give_up(line);
            }
        }
        let mut shown = self.shown();
        let mut over = (shown.iter())
            .map(|shown| shown.tokens(self.history))
            .sum::<u64>()
            .saturating_sub(budget);
        shown.retain(|shown| match shown {
            Shown::Note { tokens, .. } if over > 0 => {
                over = over.saturating_sub(*tokens);
                false
            }
            _ => true,
        });
        let mut is_told = vec![false; self.whole.len()];
        for shown in &shown {
            if let Shown::Note { lines, .. } = shown {
                lines.iter().for_each(|(message, _)| is_told[self.unit_of[*message]] = true);
            }
        }
        let verdicts =
            is_told.iter().enumerate().map(|(unit, is_told)| self.verdict(unit, *is_told));
        Projection { verdicts: verdicts.collect(), shown }
    }

    /// Returns the verdict on a unit. `is_told` says whether a note that is shown has lines of it.
    fn verdict(&self, at: usize, is_told: bool) -> Verdict {
        let unit = &self.history.units[at];
        let is_folded = self.history.is_folded(unit.members[0]);
        let is_cut = unit.members.iter().any(|member| self.cut.contains_key(member));
        let (fate, reason) = match self.whole[at] {
            true if is_cut => (Fate::Shortened, "a large result, cut to its beginning and end"),
            true if is_folded => (Fate::Kept, "summarized, but there is room for it"),
            true => (Fate::Kept, "new or asked for, and there is room for it"),
            false if is_told => {
                (Fate::Dropped, "no room for all of it; a note has its lines about the work")
            }
            false if is_folded => (Fate::Dropped, "summarized, and no room for it"),
            false => (Fate::Dropped, "no room for it"),
        };
        Verdict { fate, reason: unit.kept.map_or(reason, KeptReason::reason), score: None }
    }
}
