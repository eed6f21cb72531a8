//! Drops the least valuable entries when there is not room for all.

use std::cmp::Reverse;

use super::{Entry, Kind, Ledger, Voice, render};
use crate::tokens::Measure;

/// Share of the room for the user's words, as far as there is something else to keep.
const SAID: f64 = 0.6;
/// Maximum cost of the line that counts left-out entries, in tokens.
const REMARK: u64 = 16;

impl Ledger {
    /// Reduces the ledger to at most `tokens` tokens of rendered text: the newest words of the user
    /// for [`SAID`] of them, then paths and commands, those first that people or the model wrote or
    /// that were found again, and then older words of the user. Words that do not fit do not hide
    /// older ones that do. [`Ledger::left_out`] counts the dropped entries.
    #[must_use]
    pub fn within(mut self, tokens: u64, measure: &Measure) -> Self {
        let has = |kind: &&Kind| self.entries.iter().any(|entry| entry.kind == **kind);
        let headings = Kind::ALL.iter().filter(has);
        let heads: u64 = headings.map(|kind| measure.text(render::heading(*kind)) + 2).sum();
        let costs: Vec<u64> =
            self.entries.iter().map(|entry| measure.text(&render::line(entry)) + 1).collect();
        if heads + costs.iter().sum::<u64>() + REMARK <= tokens {
            return self;
        }
        let mut left = tokens.saturating_sub(heads + REMARK);
        let newest = || (0..self.entries.len()).rev();
        let is_said = |at: &usize| self.entries[*at].kind == Kind::Said;
        let mut facts: Vec<usize> = newest().filter(|at| !is_said(at)).collect();
        facts.sort_by_key(|at| Reverse(worth(&self.entries[*at])));
        let said: Vec<usize> = newest().filter(is_said).collect();
        let spared = left - (left as f64 * SAID) as u64;
        let mut chosen: Vec<usize> = Vec::new();
        left -= spared;
        let mut take = |order: &[usize], left: &mut u64| {
            for at in order {
                if !chosen.contains(at) && costs[*at] <= *left {
                    *left -= costs[*at];
                    chosen.push(*at);
                }
            }
        };
        take(&said, &mut left);
        left += spared;
        take(&facts, &mut left);
        take(&said, &mut left);
        let count = self.entries.len();
        loop {
            let kept = |(at, _): &(usize, &Entry)| chosen.contains(at);
            let entries = self.entries.iter().enumerate().filter(kept);
            let entries = entries.map(|(_, entry)| entry.clone()).collect();
            let left_out = self.left_out + (count - chosen.len()) as u64;
            let ledger = Self { entries, turns: self.turns, left_out };
            // The whole text can have more tokens than the sum over its lines.
            if measure.text(&ledger.render()) <= tokens || chosen.pop().is_none() {
                self = ledger;
                return self;
            }
        }
    }
}

/// Returns the value of a path or command.
fn worth(entry: &Entry) -> u8 {
    2 * u8::from(entry.voice != Voice::Output) + u8::from(entry.times > 1)
}
