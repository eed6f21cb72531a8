//! Which entries go when there is not room for all.

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
    /// 3. what the model said in passing: paths, commands and numbers that occur once,
    /// 4. other paths, commands and numbers, and tasks that were only seen in code,
    /// 5. decisions and tasks,
    /// 6. constraints.
    ///
    /// [`Ledger::left_out`] counts what went.
    #[must_use]
    pub fn within(mut self, tokens: u64, measure: &Measure) -> Self {
        let costs: Vec<u64> =
            self.entries.iter().map(|entry| measure.text(&render::line(entry)) + 1).collect();
        let headings = |entries: &[Entry]| -> u64 {
            let has = |kind: &&Kind| entries.iter().any(|entry| entry.kind == **kind);
            Kind::ALL.iter().filter(has).map(|k| measure.text(render::heading(*k)) + 2).sum()
        };
        let mut total = costs.iter().sum::<u64>() + headings(&self.entries);
        if self.left_out > 0 {
            total += REMARK;
        }
        if total <= tokens {
            return self;
        }
        total += if self.left_out > 0 { 0 } else { REMARK };
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|at| (worth(&self.entries[*at]), self.entries[*at].origin, *at));
        let mut goes = vec![false; self.entries.len()];
        for at in order {
            if total <= tokens {
                break;
            }
            goes[at] = true;
            self.left_out += 1;
            total -= costs[at];
        }
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
    match (entry.kind, entry.voice) {
        (Kind::Constraint, _) => 6,
        (Kind::Decision, _) => 5,
        (Kind::Task, Voice::Person | Voice::Model) => 5,
        (Kind::Task, Voice::Output) => 4,
        (Kind::Error, _) => 2,
        (Kind::Path | Kind::Number, Voice::Output) => 1 + u8::from(again),
        (Kind::Path | Kind::Number | Kind::Command, Voice::Person) => 4,
        (Kind::Path | Kind::Number | Kind::Command, Voice::Model | Voice::Output) => {
            3 + u8::from(again)
        }
    }
}
