//! What names are worth, and the order of lines by what they are worth.

use std::cmp::Ordering;

use crate::session::message::{Message, Role};

/// Exponent of a message's age, in messages, in the weight of its names.
const AGE: f64 = -0.7;
/// Weight of a name in the words of the user or the model, relative to one in a result.
const IN_WORDS: f64 = 2.0;
/// Weight of a name in a call, relative to one in a result.
const IN_CALLS: f64 = 5.0;
/// Weight of a name in the query. More than any other can get.
pub(super) const IN_QUERY: f64 = 1e6;

/// Returns what the content and the calls of a message add to the weights of their names. `since` is
/// the number of messages after it.
pub(super) fn of_names(message: &Message, since: usize) -> [f64; 2] {
    let is_output = message.role == Role::Tool || message.is_notice();
    let by = if is_output { 1.0 } else { IN_WORDS };
    [by, IN_CALLS].map(|by| by * ((since + 1) as f64).powf(AGE))
}

/// A line that could be taken, and what it is worth. Of lines that are worth the same, the newest is
/// the greatest.
pub(super) struct LineWorth {
    pub(super) worth: f64,
    /// Index of the line.
    pub(super) line: usize,
}

impl Ord for LineWorth {
    fn cmp(&self, other: &Self) -> Ordering {
        self.worth.total_cmp(&other.worth).then(self.line.cmp(&other.line))
    }
}

impl PartialOrd for LineWorth {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for LineWorth {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for LineWorth {}
