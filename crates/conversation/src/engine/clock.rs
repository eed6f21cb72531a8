//! Keeps one implausible time from making all later times implausible.

/// Maximum time in seconds that a stored time may be ahead of the clock. Clocks differ, but not by
/// a day.
const MAX_AHEAD: i64 = 24 * 60 * 60;

/// Returns the lower bound for later times: `stored`, or `now` if `stored` is so far ahead that a
/// clock or a client must have been wrong.
pub(super) fn not_ahead(stored: i64, now: i64) -> i64 {
    if stored > now.saturating_add(MAX_AHEAD) { now } else { stored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_far_ahead_is_left_behind() {
        assert_eq!(not_ahead(i64::MAX, 5), 5);
        assert_eq!(not_ahead(5 + MAX_AHEAD, 5), 5 + MAX_AHEAD);
        assert_eq!(not_ahead(6 + MAX_AHEAD, 5), 5);
        assert_eq!(not_ahead(3, 5), 3);
        assert_eq!(not_ahead(i64::MIN, i64::MAX), i64::MIN);
    }
}
