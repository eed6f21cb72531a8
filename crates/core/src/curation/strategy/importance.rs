//! Importance: scores each message from 0 to 100 by age, role, topics and length, and keeps the
//! messages with the highest scores.

use super::rank::best_first;
use super::selection::UnitSelection;
use super::{Aim, Projection, Score, Strategy};
use crate::curation::unit::History;
use crate::session::message::{Message, Role};

/// Points for recency of a system message and of the last message. Other messages get a share that
/// grows with their place in the history. All points of a message add up to at most 100.
pub const RECENCY: f64 = 40.0;
/// Points for the role of a system message.
pub const SYSTEM: f64 = 30.0;
/// Points for the role of a user's message.
pub const USER: f64 = 20.0;
/// Points for the role of any other message.
pub const OTHER: f64 = 10.0;
/// Points for mentioning an error.
pub const ERROR: f64 = 15.0;
/// Points for mentioning a success.
pub const SUCCESS: f64 = 10.0;
/// Points for calling a tool or being its result.
pub const TOOL: f64 = 10.0;
/// Points for changing files.
pub const OPERATION: f64 = 20.0;
/// Maximum of the points for errors, successes, tools and changed files together.
pub const KEYWORDS_AT_MOST: f64 = 25.0;
/// Points for a long text.
pub const LENGTH: f64 = 5.0;

/// The strategy that keeps the messages with the highest scores.
pub struct Importance;

const LAST: &str = "the last message";
const HIGH: &str = "among the highest scores that fit";
const LOW: &str = "no room left after higher scores";

impl Strategy for Importance {
    fn name(&self) -> &'static str {
        "importance"
    }

    fn keeps(&self) -> &'static str {
        "everything that fits; else what scores highest for age, role, errors and operations"
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let scores = scores(history);
        let order = best_first(&scores);
        let mut selection = UnitSelection::new(history, history.room(aim.budget)).scored(scores);
        if selection.everything_fits() {
            return selection.all();
        }
        if let Some(last) = unit_of_last_message(history) {
            selection.keep(last, LAST);
        }
        for unit in order {
            selection.keep(unit, HIGH);
        }
        selection.finish(LOW)
    }
}

/// Returns, for each unit, the score of its highest-scoring message. If several messages have this
/// score, the oldest one counts.
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
        of_messages.push(Points::of(message, RECENCY * share));
    }
    let highest = |members: &[usize]| {
        let totals = members.iter().map(|index| &of_messages[*index]);
        totals.reduce(|best, other| if other.total > best.total { other } else { best })
    };
    let scored = history.units.iter().map(|unit| highest(&unit.members));
    scored
        .map(|marks| marks.map_or(Score { total: 0.0, parts: Vec::new() }, Points::score))
        .collect()
}

pub(crate) fn unit_of_last_message(history: &History<'_>) -> Option<usize> {
    let last = history.messages.len().checked_sub(1)?;
    history.units.iter().rposition(|unit| unit.members.last() == Some(&last))
}

/// The points of a message.
struct Points {
    /// Sum of the parts, at most 100.
    total: f64,
    /// Points for each criterion, and a negative part that lowers those for keywords to
    /// [`KEYWORDS_AT_MOST`], so that the parts add up.
    parts: [(&'static str, f64); 8],
}

impl Points {
    fn of(message: &Message, recency: f64) -> Self {
        let signals = message.signals;
        let given = |there: bool, points: f64| if there { points } else { 0.0 };
        let role = match message.role {
            Role::System => SYSTEM,
            Role::User => USER,
            Role::Assistant | Role::Tool => OTHER,
        };
        let (error, success) = (given(signals.error, ERROR), given(signals.success, SUCCESS));
        let tool = given(message.role == Role::Tool || !message.tool_calls.is_empty(), TOOL);
        let operation = given(signals.operation, OPERATION);
        let length = given(signals.long, LENGTH);
        let keywords = error + success + tool + operation;
        let parts = [
            ("recency", recency),
            ("role", role),
            ("error", error),
            ("success", success),
            ("tool", tool),
            ("operation", operation),
            ("keyword-cap", (KEYWORDS_AT_MOST - keywords).min(0.0)),
            ("length", length),
        ];
        Self { total: recency + role + keywords.min(KEYWORDS_AT_MOST) + length, parts }
    }

    /// Returns the score with all parts that are not 0.
    fn score(&self) -> Score {
        let there = self.parts.into_iter().filter(|(_, points)| *points != 0.0);
        Score { total: self.total, parts: there.collect() }
    }
}

#[cfg(test)]
mod tests;
