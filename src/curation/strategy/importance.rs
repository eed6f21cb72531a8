//! Importance: each message has a score of 0 to 100 for how recent it is, who said it, what it
//! speaks of, and how long it is; what scores highest is kept.

use super::selection::Selection;
use super::{Aim, Projection, Score, Strategy};
use crate::curation::unit::History;
use crate::session::message::{Message, Role};

/// What a system message and the last message have for being recent; others have the share of it
/// that their place in the history gives them. The figures are the design's (§5).
pub const RECENCY: f64 = 40.0;
/// What a system message has for its role.
pub const SYSTEM: f64 = 30.0;
/// What a user's message has for its role.
pub const USER: f64 = 20.0;
/// What any other message has for its role.
pub const OTHER: f64 = 10.0;
/// What speaking of an error gives.
pub const ERROR: f64 = 15.0;
/// What speaking of a success gives.
pub const SUCCESS: f64 = 10.0;
/// What calling a tool, or being its result, gives.
pub const TOOL: f64 = 10.0;
/// What changing files gives.
pub const OPERATION: f64 = 20.0;
/// The most that the last four give together.
pub const KEYWORDS_AT_MOST: f64 = 25.0;
/// What being long gives.
pub const LENGTH: f64 = 5.0;

/// The messages that score highest.
pub struct Importance;

const LAST: &str = "the last message";
const HIGH: &str = "its score is high enough to fit";
const LOW: &str = "what scores higher leaves no room";

impl Strategy for Importance {
    fn name(&self) -> &'static str {
        "importance"
    }

    fn doc(&self) -> &'static str {
        "Keeps what scores highest for being recent, for its role, for errors and file operations."
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let scores = scores(history);
        if history.tokens() <= aim.budget {
            return Selection::new(history, aim.budget).scored(scores).all();
        }
        let order = by_score(&scores);
        let mut selection = Selection::new(history, aim.budget).scored(scores);
        if let Some(last) = unit_of_last_message(history) {
            selection.keep(last, LAST);
        }
        for unit in order {
            selection.keep(unit, HIGH);
        }
        selection.finish(LOW)
    }
}

/// The score of each unit: that of its highest message, of several the oldest.
pub fn scores(history: &History<'_>) -> Vec<Score> {
    let spoken = |message: &&&Message| message.role != Role::System;
    let count = history.messages.iter().filter(spoken).count();
    let mut place = 0;
    let mut of_messages = Vec::with_capacity(history.messages.len());
    for (index, message) in history.messages.iter().enumerate() {
        let last = index + 1 == history.messages.len();
        let system = message.role == Role::System;
        let share = if system || last { 1.0 } else { place as f64 / count as f64 };
        place += usize::from(!system);
        of_messages.push(Marks::of(message, RECENCY * share));
    }
    let highest = |members: &[usize]| {
        let totals = members.iter().map(|index| &of_messages[*index]);
        totals.reduce(|best, other| if other.total() > best.total() { other } else { best })
    };
    let scored = history.units.iter().map(|unit| highest(&unit.members));
    scored
        .map(|marks| marks.map_or(Score { total: 0.0, parts: Vec::new() }, Marks::score))
        .collect()
}

/// Units by falling score, of equal ones the newer first.
fn by_score(scores: &[Score]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total.total_cmp(&scores[*a].total).then(b.cmp(a)));
    order
}

pub(crate) fn unit_of_last_message(history: &History<'_>) -> Option<usize> {
    let last = history.messages.len().checked_sub(1)?;
    history.units.iter().rposition(|unit| unit.members.last() == Some(&last))
}

/// What a message has of each kind.
struct Marks {
    recency: f64,
    role: f64,
    error: f64,
    success: f64,
    tool: f64,
    operation: f64,
    length: f64,
}

impl Marks {
    fn of(message: &Message, recency: f64) -> Self {
        let signals = message.signals;
        let given = |there: bool, points: f64| if there { points } else { 0.0 };
        Self {
            recency,
            role: match message.role {
                Role::System => SYSTEM,
                Role::User => USER,
                Role::Assistant | Role::Tool => OTHER,
            },
            error: given(signals.error, ERROR),
            success: given(signals.success, SUCCESS),
            tool: given(message.role == Role::Tool || !message.tool_calls.is_empty(), TOOL),
            operation: given(signals.operation, OPERATION),
            length: given(signals.long, LENGTH),
        }
    }

    /// At most 100, as the greatest points of all kinds together are.
    fn total(&self) -> f64 {
        self.recency + self.role + self.keywords().min(KEYWORDS_AT_MOST) + self.length
    }

    fn keywords(&self) -> f64 {
        self.error + self.success + self.tool + self.operation
    }

    /// With the parts that are not 0; what the cap takes off is one of them, so that they sum up.
    fn score(&self) -> Score {
        let capped = (KEYWORDS_AT_MOST - self.keywords()).min(0.0);
        let parts = [
            ("recency", self.recency),
            ("role", self.role),
            ("error", self.error),
            ("success", self.success),
            ("tool", self.tool),
            ("operation", self.operation),
            ("keyword-cap", capped),
            ("length", self.length),
        ];
        let there = parts.into_iter().filter(|(_, points)| *points != 0.0);
        Score { total: self.total(), parts: there.collect() }
    }
}

#[cfg(test)]
mod tests;
