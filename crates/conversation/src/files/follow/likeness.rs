//! Computes how alike two lines are.

/// Minimum likeness at which a line counts as an edited version of a lost line.
pub(super) const LOST: f64 = 0.75;
/// Maximum likeness at which a line is certainly not one of the lost lines.
pub(super) const UNLIKE: f64 = 0.6;
/// Length, in characters, beyond which a line may have no more changes than a line of this length.
const LONG: usize = 24;

/// Returns the likeness of a line to the most similar of several others.
pub(super) fn likeness_to(line: &str, lines: &[&str]) -> f64 {
    lines.iter().map(|other| likeness(line, other)).fold(0.0, f64::max)
}

/// Returns the likeness of two lines: 1 if they are equal, 0 if too many characters differ, even in
/// long lines.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let longer = one.chars().count().max(other.chars().count());
    if longer.abs_diff(one.chars().count().min(other.chars().count())) >= LONG {
        return 0.0;
    }
    let changes = strsim::levenshtein(one, other) as f64;
    (1.0 - changes / longer.clamp(1, LONG) as f64).max(0.0)
}
