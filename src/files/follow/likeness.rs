//! Likeness of lines.

/// Likeness from which a changed line is one that was lost.
pub(super) const LOST: f64 = 0.75;
/// Likeness up to which a line is certainly none of those that were lost.
pub(super) const UNLIKE: f64 = 0.6;
/// Number of characters above which a longer line may not have more changes.
const LONG: usize = 24;

/// Returns the likeness of a line and the one of several that is most like it.
pub(super) fn likeness_to(line: &str, lines: &[&str]) -> f64 {
    lines.iter().map(|other| likeness(line, other)).fold(0.0, f64::max)
}

/// Returns how alike two lines are: 1 if they are equal, and 0 if too many characters differ, however
/// long they are.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let longer = one.chars().count().max(other.chars().count());
    if longer.abs_diff(one.chars().count().min(other.chars().count())) >= LONG {
        return 0.0;
    }
    let changes = strsim::levenshtein(one, other) as f64;
    (1.0 - changes / longer.clamp(1, LONG) as f64).max(0.0)
}
