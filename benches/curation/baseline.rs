//! Simple ways to choose a window, to compare with.

use contexture_program::internals::curation::unit::{History, Unit};
use contexture_program::internals::session::message::Message;

/// Guessed cost of a line in place of a result.
const MASK: u64 = 24;
/// Shares of the score of its first and second neighbours that a message has at least.
const NEIGHBOURS: [f64; 2] = [0.6, 0.36];

/// Returns the texts of a message: its content and the arguments of its calls, with their line
/// breaks.
pub(crate) fn texts(message: &Message) -> Vec<String> {
    let mut texts = vec![message.content.to_string()];
    texts.extend(arguments(message));
    texts
}

pub(crate) fn arguments(message: &Message) -> Vec<String> {
    message.tool_calls.iter().map(|call| plain(&call.arguments)).collect()
}

/// Returns the arguments of a call with their line breaks.
pub(crate) fn plain(arguments: &str) -> String {
    arguments.replace("\\n", "\n").replace("\\\"", "\"").replace("\\t", "\t")
}

/// Chooses the newest units that fit. Messages that are not `whole` are replaced by a line.
pub(crate) fn newest(
    history: &History<'_>,
    budget: u64,
    whole: impl Fn(usize) -> bool,
) -> Vec<String> {
    let cost = |unit: &Unit| {
        let cost = |index: &usize| {
            let cost = history.measure.message(history.messages[*index].tokens);
            if whole(*index) { cost } else { cost.min(MASK) }
        };
        unit.members.iter().map(cost).sum::<u64>()
    };
    let mut chosen = Chosen::new(history, budget);
    for (at, unit) in history.units.iter().enumerate().rev() {
        if !chosen.take(at, cost(unit)) {
            break;
        }
    }
    chosen.texts(whole)
}

/// Lifts each score to a share of its neighbours' scores.
pub(crate) fn with_neighbours(scores: &[f64]) -> Vec<f64> {
    let lifted = |at: usize| {
        let near = |away: usize| {
            let before = at.checked_sub(away).map_or(0.0, |before| scores[before]);
            before.max(scores.get(at + away).copied().unwrap_or(0.0))
        };
        scores[at].max(NEIGHBOURS[0] * near(1)).max(NEIGHBOURS[1] * near(2))
    };
    (0..scores.len()).map(lifted).collect()
}

/// Returns the documents with a score above 0, best first. Ties keep their order.
pub(crate) fn best_first(scores: &[f64]) -> Vec<usize> {
    let mut found: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
    found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    found
}

/// Units that are chosen so far, beginning with those that cannot be left out.
struct Chosen<'a, 'h> {
    history: &'a History<'h>,
    units: Vec<bool>,
    left: u64,
}

impl<'a, 'h> Chosen<'a, 'h> {
    fn new(history: &'a History<'h>, budget: u64) -> Self {
        let units: Vec<bool> = history.units.iter().map(|unit| unit.kept.is_some()).collect();
        let kept = history.units.iter().filter(|unit| unit.kept.is_some());
        let fixed: u64 = kept.map(|unit| unit.tokens).sum();
        Self { history, units, left: budget.saturating_sub(fixed) }
    }

    /// Takes a unit if it fits. Returns whether it is taken.
    fn take(&mut self, at: usize, cost: u64) -> bool {
        if !self.units[at] && cost <= self.left {
            self.units[at] = true;
            self.left -= cost;
        }
        self.units[at]
    }

    fn texts(&self, whole: impl Fn(usize) -> bool) -> Vec<String> {
        let chosen = self.history.units.iter().zip(&self.units).filter(|(_, chosen)| **chosen);
        let members = chosen.flat_map(|(unit, _)| &unit.members).filter(|index| whole(**index));
        members.flat_map(|index| texts(self.history.messages[*index])).collect()
    }
}
