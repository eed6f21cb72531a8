//! Which entries go when there is not room for all.

use super::force::{Force, force};
use super::{Entry, Kind, Ledger, Voice, render};
use crate::tokens::Measure;

/// What the line that says how much is left out takes at most.
const REMARK: u64 = 16;

impl Ledger {
    /// The ledger in at most `tokens` tokens of rendered text. What is worth least goes first, and
    /// of equal worth what was said longest ago:
    ///
    /// 1. paths and numbers that were only seen in outputs, and once,
    /// 2. those seen more than once, and errors,
    /// 3. what the model said in passing: paths, commands and numbers that occur once; and what
    ///    the person told without wanting anything,
    /// 4. other paths, commands and numbers, tasks that were only seen in code, and what the
    ///    person wanted,
    /// 5. decisions and tasks,
    /// 6. constraints.
    ///
    /// What may well be out of date goes with the first.
    ///
    /// [`Ledger::left_out`] counts what went.
    #[must_use]
    pub fn within(mut self, tokens: u64, measure: &Measure) -> Self {
        // What is left out need not be counted, so the best come first.
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

    /// Parts counted by themselves can be fewer than their text: drops until the text fits.
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

/// The rule of [`Ledger::within`].
fn worth(entry: &Entry) -> u8 {
    let again = entry.times > 1;
    if entry.earlier {
        return 1;
    }
    match (entry.kind, entry.voice) {
        (Kind::Constraint, _) => 6,
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
