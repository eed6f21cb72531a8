//! Times as recordings write them.

use jiff::Timestamp;

/// Returns the Unix seconds of a time such as `2026-02-11T20:36:45.693Z`. A space may stand in
/// place of the `T`, and the seconds may be missing. Returns `None` for other texts.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let seconds_left_out = || {
        let minutes = text.strip_suffix('Z').filter(|rest| rest.matches(':').count() == 1)?;
        format!("{minutes}:00Z").parse::<Timestamp>().ok()
    };
    text.parse::<Timestamp>().ok().or_else(seconds_left_out).map(Timestamp::as_second)
}
