//! Drops the least valuable entries when there is not room for all.

use super::force::{Force, force};
use super::{Entry, Kind, Ledger, Voice, render};
use crate::tokens::Measure;

/// Maximum cost of the line that counts left-out entries, in tokens.
const REMARK: u64 = 16;

impl Ledger {
    /// Reduces the ledger to at most `tokens` tokens of rendered text. The least valuable entries
    /// are dropped first, and among equally valuable entries, those whose last mention is oldest.
    /// From least to most valuable:
    ///
    /// 1. paths and numbers that were seen once, and only in outputs,
    /// 2. paths and numbers that were seen more than once, but only in outputs; and errors,
    /// 3. paths, commands and numbers that the model mentioned only once; commands that were seen
    ///    once, and only in outputs; and remarks of the user,
    /// 4. other paths, commands and numbers; tasks that were only seen in outputs or code; the
    ///    user's requests; and decisions that the model mentioned only once,
    /// 5. other decisions and other tasks,
    /// 6. constraints.
    ///
    /// Entries that a later statement may have replaced belong to the first group.
    ///
    /// [`Ledger::left_out`] counts the dropped entries.
    #[must_use]
    pub fn within(mut self, tokens: u64, measure: &Measure) -> Self {
        // The best entries come first, so that the tokens of left-out ones need not be counted.
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_cached_key(|at| {
            let entry = &self.entries[*at];
            std::cmp::Reverse((worth(entry), entry.origin, *at))
        });
        let has = |kind: &&Kind| self.entries.iter().any(|entry| entry.kind == **kind);
        let headings = Kind::ALL.iter().filter(has);
        let mut total: u64 = headings.map(|kind| measure.text(render::heading(*kind)) + 2).sum();
        total += if self.left_out > 0 { REMARK } else { 0 };
        let mut costs = Vec::new();
        for at in &order {
            let cost = measure.text(&render::line(&self.entries[*at])) + 1;
            if total + cost > tokens {
                break;
            }
            total += cost;
            costs.push(cost);
        }
        if costs.len() == order.len() {
            return self;
        }
        total += if self.left_out > 0 { 0 } else { REMARK };
        while total > tokens
            && let Some(cost) = costs.pop()
        {
            total -= cost;
        }
        let mut goes = vec![true; self.entries.len()];
        order.iter().take(costs.len()).for_each(|at| goes[*at] = false);
        self.left_out += (order.len() - costs.len()) as u64;
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            !goes[at - 1]
        });
        self.exactly(tokens, measure)
    }

    /// Drops entries until the rendered text has at most `tokens` tokens. The whole text can have
    /// more tokens than the sum over its lines.
    fn exactly(mut self, tokens: u64, measure: &Measure) -> Self {
        while !self.entries.is_empty() && measure.text(&self.render()) > tokens {
            let least = |(at, entry): &(usize, &Entry)| (worth(entry), entry.origin, *at);
            let Some((at, _)) = self.entries.iter().enumerate().min_by_key(least) else { break };
            self.entries.remove(at);
            self.left_out += 1;
        }
        self
    }
}

/// Returns the value of an entry, by the rules of [`Ledger::within`].
fn worth(entry: &Entry) -> u8 {
    let again = entry.times > 1;
    if entry.earlier {
        return 1;
    }
    match (entry.kind, entry.voice) {
        (Kind::Constraint, _) => 6,
        (Kind::Decision, Voice::Model) => 4 + u8::from(again),
        (Kind::Decision, _) => 5,
        (Kind::Task, Voice::Person | Voice::Model) => 5,
        (Kind::Task, Voice::Output) => 4,
        (Kind::Request, _) => 3 + u8::from(force(&entry.text) > Some(Force::Remark)),
        (Kind::Error, _) => 2,
        (Kind::Path | Kind::Number, Voice::Output) => 1 + u8::from(again),
        (Kind::Path | Kind::Number | Kind::Command, Voice::Person) => 4,
        (Kind::Path | Kind::Number | Kind::Command, Voice::Model | Voice::Output) => {
            3 + u8::from(again)
        }
    }
}
