//! Times as recordings write them.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

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

/// Returns the Unix seconds of a time without a zone, such as `2025-04-30 13:02:42` or
/// `3/11/2025, 8:11:06 PM`. The zone counts as UTC, since the recording does not tell it.
pub(super) fn zoneless(text: &str) -> Option<i64> {
    const FORMATS: [&str; 5] = [
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%m/%d/%Y, %I:%M:%S %p",
        "%m/%d/%Y, %H:%M:%S",
        "%d.%m.%Y, %H:%M:%S",
    ];
    // Some systems write a narrow space before AM and PM.
    let text = text.trim().replace('\u{202f}', " ");
    let time = FORMATS.iter().find_map(|format| DateTime::strptime(format, &text).ok())?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

/// Returns the Unix seconds of a time in words, such as `Tuesday, Sep 29, 2026, 9:14 PM (UTC+5:30)`. The
/// weekday, the time of day and the zone may be missing.
pub(super) fn in_words(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(time) = seconds(text) {
        return Some(time);
    }
    let (text, zone) = match text.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((text, zone)) => (text, zone),
        None => (text, "UTC"),
    };
    let is_weekday = |word: &str| word.ends_with("day") || word.len() == 3;
    let text = match text.split_once(", ") {
        Some((word, rest)) if is_weekday(word) => rest,
        _ => text,
    };
    const FORMATS: [&str; 2] = ["%b %d, %Y, %I:%M %p", "%B %d, %Y, %I:%M %p"];
    const DATES: [&str; 2] = ["%b %d, %Y", "%B %d, %Y"];
    let time = FORMATS.iter().find_map(|format| DateTime::strptime(format, text).ok());
    let date = || DATES.iter().find_map(|format| Date::strptime(format, text).ok());
    let time = time.or_else(|| Some(date()?.at(0, 0, 0, 0)))?;
    let seconds = time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    Some(seconds - offset(zone.strip_prefix("UTC").or(zone.strip_prefix("GMT"))?)?)
}

/// Returns the seconds of an offset such as `+5:30` or `-7`.
fn offset(text: &str) -> Option<i64> {
    let sign = if text.starts_with(['-', '−']) { -1 } else { 1 };
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "0"));
    let hours = hours.trim_start_matches(['+', '-', '−']);
    let hours: i64 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    Some(sign * (hours * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// Splits a title such as `Ports (2025-12-02 12:49Z)` into its text and its time.
pub(super) fn seconds_in_title(title: &str) -> (&str, Option<i64>) {
    let title = title.trim();
    let read = |text: &str| seconds(text).or_else(|| zoneless(text));
    if let Some(time) = read(title) {
        return ("", Some(time));
    }
    let split = title.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
    match split.map(|(text, time)| (text, read(time))) {
        Some((text, Some(time))) => (text.trim(), Some(time)),
        _ => (title, None),
    }
}

/// Returns the Unix seconds of the time with which the name of a file begins, as in
/// `2025-12-02_12-49Z-ports.md` and `2025-12-02_12-49-08Z.md`.
pub(super) fn seconds_in_name(name: &str) -> Option<i64> {
    let (date, rest) = (name.get(..10)?, name.get(11..)?);
    let time: String = rest.chars().take_while(|it| it.is_ascii_digit() || *it == '-').collect();
    let parts: Vec<&str> = time.split('-').filter(|part| part.len() == 2).collect();
    let (hour, minute) = (parts.first()?, parts.get(1)?);
    let second = parts.get(2).copied().unwrap_or("00");
    seconds(&format!("{date}T{hour}:{minute}:{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words_are_read_with_their_zone() {
        let at = |text: &str| seconds(text);
        let read = |text: &str, expected: &str| assert_eq!(in_words(text), at(expected), "{text}");
        read("Tuesday, Sep 29, 2026, 9:14 PM (UTC+1)", "2026-09-29T20:14:00Z");
        read("Monday, May 4, 2026, 12:47 AM (UTC+5:30)", "2026-05-03T19:17:00Z");
        read("Saturday, Sep 26, 2026, 6:25 AM (UTC-7)", "2026-09-26T13:25:00Z");
        read("Thu, Jun 18, 2026", "2026-06-18T00:00:00Z");
        read("2026-05-07T14:30:00Z", "2026-05-07T14:30:00Z");
        assert_eq!(in_words("x"), None);
    }

    #[test]
    fn titles_and_names_tell_times() {
        let at = |text| seconds(text);
        assert_eq!(
            seconds_in_title("Ports (2025-12-02 12:49Z)"),
            ("Ports", at("2025-12-02T12:49:00Z"))
        );
        assert_eq!(seconds_in_title("A (2025-04-30 13:02:42)"), ("A", at("2025-04-30T13:02:42Z")));
        assert_eq!(
            seconds_in_title("A (3/11/2025, 8:11:06 PM)"),
            ("A", at("2025-03-11T20:11:06Z"))
        );
        assert_eq!(seconds_in_title("2025-07-19 22:41:03Z"), ("", at("2025-07-19T22:41:03Z")));
        assert_eq!(seconds_in_title("Why (f(x))"), ("Why (f(x))", None));
        assert_eq!(seconds_in_name("2025-12-02_12-49Z-ports.md"), at("2025-12-02T12:49:00Z"));
        assert_eq!(seconds_in_name("2026-05-04_13-00-07Z-x.md"), at("2026-05-04T13:00:07Z"));
        assert_eq!(seconds_in_name("ports.md"), None);
        assert_eq!(seconds_in_name("größe-12-02.md"), None);
    }
}
