//! Checks and repairs the choice of a strategy. Even with a faulty strategy, no window exceeds its
//! budget, tears a unit apart or loses a unit that cannot be left out.

use super::strategy::{Fate, Projection, Shown, Verdict};
use super::unit::History;

/// Reason for leaving out a unit that the strategy showed in part or more than once.
const SHOWN_IN_PART: &str = "the strategy showed it in part or more than once";
/// Reason for leaving out a unit that the strategy showed although it does not fit.
const TOO_MUCH: &str = "the strategy chose more than fits";
/// Reason for showing a unit that cannot be left out, and that the strategy did not show unchanged.
const MANDATORY: &str = "it cannot be left out";
/// Reason given where the strategy gave none, or one for another outcome.
const NO_REASON: &str = "the strategy gave no reason";

/// Returns the projection unchanged if it keeps the contract of `Strategy::project`, and a
/// repaired one if not. The units that cannot be left out must fit into `budget`.
pub(super) fn repaired(history: &History<'_>, budget: u64, projection: Projection) -> Projection {
    let mut guard = Guard::new(history, projection);
    guard.show_whole_units();
    guard.fit(budget);
    guard.correct_verdicts();
    guard.projection
}

struct Guard<'b, 'a> {
    history: &'b History<'a>,
    projection: Projection,
    /// Index of the unit that each message belongs to.
    unit_of: Vec<usize>,
}

impl<'b, 'a> Guard<'b, 'a> {
    fn new(history: &'b History<'a>, mut projection: Projection) -> Self {
        let unit_of = history.unit_of_each_message();
        let no_reason = || Verdict { fate: Fate::Dropped, reason: NO_REASON, score: None };
        projection.verdicts.resize_with(history.units.len(), no_reason);
        Self { history, projection, unit_of }
    }

    fn show_whole_units(&mut self) {
        let broken = self.broken();
        if !broken.contains(&true) {
            return;
        }
        let unit_of = &self.unit_of;
        let of_broken = |shown: &Shown| index(shown).is_some_and(|index| broken[unit_of[index]]);
        self.projection.shown.retain(|shown| !of_broken(shown));
        for (at, _) in broken.iter().enumerate().filter(|(_, broken)| **broken) {
            let never_lost = self.history.units[at].kept.is_some();
            if never_lost {
                self.insert(at);
            }
            let verdict = &mut self.projection.verdicts[at];
            verdict.fate = if never_lost { Fate::Kept } else { Fate::Dropped };
            verdict.reason = if never_lost { MANDATORY } else { SHOWN_IN_PART };
        }
    }

    /// Returns, for each unit, whether it is shown in part or more than once, or is missing or
    /// shortened although it cannot be left out.
    fn broken(&self) -> Vec<bool> {
        let mut times = vec![0; self.history.messages.len()];
        let mut changed = vec![false; self.history.units.len()];
        for shown in &self.projection.shown {
            if let Some(index) = index(shown) {
                times[index] += 1;
                changed[self.unit_of[index]] |= matches!(shown, Shown::Shortened { .. });
            }
        }
        let units = self.history.units.iter().zip(changed);
        let broken = units.map(|(unit, changed)| {
            let all = unit.members.iter().all(|index| times[*index] == 1);
            let none = unit.members.iter().all(|index| times[*index] == 0);
            if unit.kept.is_some() { !all || changed } else { !all && !none }
        });
        broken.collect()
    }

    fn insert(&mut self, unit: usize) {
        for member in &self.history.units[unit].members {
            let earlier = |shown: &Shown| index(shown).is_some_and(|index| index < *member);
            let shown = &mut self.projection.shown;
            let place = shown.iter().rposition(earlier).map_or(0, |earlier| earlier + 1);
            shown.insert(place, Shown::Whole(*member));
        }
    }

    /// Leaves out units that can be left out, oldest first, until what is shown fits into `budget`;
    /// then all notes, if that is not enough.
    fn fit(&mut self, budget: u64) {
        let cost: u64 = self.projection.shown.iter().map(|shown| shown.tokens(self.history)).sum();
        let mut over = cost.saturating_sub(budget);
        if over == 0 {
            return;
        }
        let mut costs = vec![0; self.history.units.len()];
        for shown in &self.projection.shown {
            if let Some(index) = index(shown) {
                costs[self.unit_of[index]] += shown.tokens(self.history);
            }
        }
        let mut out = vec![false; costs.len()];
        for (at, unit) in self.history.units.iter().enumerate() {
            if over > 0 && unit.kept.is_none() && costs[at] > 0 {
                over = over.saturating_sub(costs[at]);
                out[at] = true;
                let verdict = &mut self.projection.verdicts[at];
                (verdict.fate, verdict.reason) = (Fate::Dropped, TOO_MUCH);
            }
        }
        let unit_of = &self.unit_of;
        self.projection.shown.retain(|shown| match index(shown) {
            Some(index) => !out[unit_of[index]],
            None => over == 0,
        });
    }

    /// Makes the verdicts agree with what is shown.
    fn correct_verdicts(&mut self) {
        let mut fates = vec![Fate::Dropped; self.history.units.len()];
        for shown in &self.projection.shown {
            let Some(index) = index(shown) else { continue };
            let fate = &mut fates[self.unit_of[index]];
            match shown {
                Shown::Shortened { .. } => *fate = Fate::Shortened,
                _ if *fate == Fate::Dropped => *fate = Fate::Kept,
                _ => {}
            }
        }
        for (verdict, fate) in self.projection.verdicts.iter_mut().zip(fates) {
            if verdict.fate != fate {
                (verdict.fate, verdict.reason) = (fate, NO_REASON);
            }
        }
    }
}

fn index(shown: &Shown) -> Option<usize> {
    match shown {
        Shown::Whole(index) | Shown::Shortened { index, .. } => Some(*index),
        Shown::Note { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curation::testing::{history, messages, plain};

    /// Writes the shown messages as numbers, with `~` before a shortened one and `n` for a note of
    /// 5 tokens.
    #[track_caller]
    fn check(words: &str, budget: u64, chosen: &str, expected: &str) {
        let (messages, measure) = (messages(words), plain());
        let history = history(&messages, &measure);
        let index = |number: &str| number.parse::<usize>().unwrap() - 1;
        let shown = chosen.split_whitespace().map(|word| match word.strip_prefix('~') {
            Some(number) => {
                Shown::Shortened { index: index(number), content: "-".into(), tokens: 1 }
            }
            None if word == "n" => {
                Shown::Note { content: "-".into(), tokens: 5, lines: Vec::new() }
            }
            None => Shown::Whole(index(word)),
        });
        let projection = Projection { shown: shown.collect(), verdicts: Vec::new() };
        let repaired = repaired(&history, budget, projection);
        let show = |shown: &Shown| match shown {
            Shown::Whole(index) => format!("{}", index + 1),
            Shown::Shortened { index, .. } => format!("~{}", index + 1),
            Shown::Note { .. } => "n".into(),
        };
        let shown: Vec<String> = repaired.shown.iter().map(show).collect();
        assert_eq!(shown.join(" "), expected);
        assert_eq!(repaired.verdicts.len(), history.units.len());
    }

    #[test]
    fn a_valid_choice_is_left_alone() {
        check("u a>1 t<1 a u", 9, "1 n 4 5", "1 n 4 5");
        check("u a>1 t<1 a u", 9, "1 2 ~3 5", "1 2 ~3 5");
        check("", 0, "", "");
    }

    #[test]
    fn torn_and_doubled_units_are_left_out() {
        check("u a>1 t<1 a u", 9, "1 2 4 5", "1 4 5");
        check("u a a u", 9, "1 2 2 3 4", "1 3 4");
    }

    #[test]
    fn units_that_cannot_be_left_out_come_back() {
        check("u a a! u", 9, "2", "1 2 3 4");
        check("u a u", 9, "~1 n 2 ~3", "1 n 2 3");
    }

    #[test]
    fn the_oldest_units_go_first_and_notes_last() {
        check("u a a a u", 9, "1 n 2 3 4 5", "1 n 3 4 5");
        check("u a a a u", 7, "1 n 2 3 4 5", "1 n 5");
        check("u a a a u", 6, "1 n 2 3 4 5", "1 5");
    }
}
