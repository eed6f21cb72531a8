//! Orders lines by what they are worth.

use std::cmp::Ordering;

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
