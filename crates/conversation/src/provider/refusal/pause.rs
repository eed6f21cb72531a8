//! How long a server asks to wait: in a header, in the body, or in words.

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::details;

/// Returns the pause that a body names: Gemini's retry delay, such as `"34.07s"`, or seconds.
pub(super) fn pause_in(json: &Value) -> Option<Duration> {
    let delay = details(Some(json)).find_map(|detail| detail["retryDelay"].as_str());
    let delay = delay.and_then(|delay| delay.strip_suffix('s')?.parse().ok());
    let places = [json, &json["error"], &json["error"]["metadata"]];
    let seconds = || places.iter().find_map(|place| place["retry_after"].as_f64());
    Duration::try_from_secs_f64(delay.or_else(seconds)?).ok()
}

/// Returns the pause that a message names, such as "try again in 1m2.5s".
pub(super) fn pause_in_words(words: &str) -> Option<Duration> {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?:try again|retry) (?:in|after) (?:(\d+)m(?:in\w*)? ?)?(?:(\d+(?:\.\d+)?) ?(ms|s\b|sec))?").ok()
    });
    let found = FORM.as_ref()?.captures(words)?;
    let figure = |at: usize| found.get(at).and_then(|text| text.as_str().parse::<f64>().ok());
    let unit = if found.get(3).is_some_and(|unit| unit.as_str() == "ms") { 0.001 } else { 1.0 };
    let seconds =
        figure(1).map(|minutes| minutes * 60.0).into_iter().chain(figure(2).map(|it| it * unit));
    let seconds: Vec<f64> = seconds.collect();
    (!seconds.is_empty()).then(|| Duration::try_from_secs_f64(seconds.iter().sum()).ok())?
}

/// Returns the pause that headers name: `retry-after-ms`, or `Retry-After` as seconds or a date.
pub(in crate::provider) fn wanted_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim());
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let short = text("retry-after-ms").and_then(seconds).map(|pause| pause / 1000);
    short.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        // No clock counts that long, but a server may say so.
        let whole = text.parse().ok().map(Duration::from_secs);
        whole.or_else(|| seconds(text)).or_else(|| {
            let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
            let wait = date.duration_since(jiff::Timestamp::now());
            Some(Duration::try_from(wait).unwrap_or_default())
        })
    })
}
