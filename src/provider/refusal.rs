//! Interprets refusals, the error responses of servers: their kind, the server's message, and
//! whether to try again.

use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::Value;

use super::error::ErrorKind;
use super::overflow::Overflow;
use super::secret::Secret;

/// Maximum number of characters of a refusal to show.
const REFUSAL_TOLD: usize = 300;

/// An interpreted refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: ErrorKind,
    /// The server's message, on one line and without the key.
    pub(super) said: String,
    /// Token counts, if the request was too long.
    pub(super) overflow: Option<Overflow>,
    /// Time that the server asks clients to wait.
    pub(super) pause: Option<Duration>,
    pub(super) again: Again,
}

/// The policy for sending the same request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Give up: the request would be refused again.
    Never,
    /// Try a few times: the failure may pass.
    Soon,
    /// Keep trying until the time is up: the server is loading the model or overloaded, or says
    /// when to try again.
    UntilReady,
}

impl Refusal {
    /// Interprets a refusal with `status`. `pause` comes from the headers.
    pub(super) fn read(
        status: u16,
        body: &str,
        pause: Option<Duration>,
        key: Option<&Secret>,
    ) -> Self {
        let json: Option<Value> = serde_json::from_str(body).ok();
        // Gemini may wrap the error in a list.
        let json = json.map(|json| json.get(0).cloned().unwrap_or(json));
        let whole = message(json.as_ref()).unwrap_or(body);
        let pause = pause.or_else(|| json.as_ref().and_then(gemini_pause));
        let said = in_a_line(whole, key);
        let kind = match is_quota(status, body, json.as_ref(), pause) {
            true => ErrorKind::QuotaExhausted,
            false => kind_of(status, &in_words(whole)),
        };
        let too_long = kind == ErrorKind::ContextTooLong;
        let overflow =
            too_long.then(|| Overflow::read_body(json.as_ref(), &in_words(whole))).flatten();
        let again = again(status, kind, &said, pause);
        Self { kind, said, overflow, pause, again }
    }
}

fn again(status: u16, kind: ErrorKind, said: &str, pause: Option<Duration>) -> Again {
    let said = said.to_lowercase();
    let is_loading = said.contains("loading") || said.contains("overloaded");
    match (kind, status) {
        (ErrorKind::RateLimited, _) if pause.is_some() => Again::UntilReady,
        (ErrorKind::Unavailable, 503 | 529) => Again::UntilReady,
        (ErrorKind::Unavailable, _) if is_loading => Again::UntilReady,
        (ErrorKind::RateLimited | ErrorKind::Unavailable, _) => Again::Soon,
        _ => Again::Never,
    }
}

fn kind_of(status: u16, said: &str) -> ErrorKind {
    let by_words = kind_of_bad(said);
    let too_long = by_words == ErrorKind::ContextTooLong;
    match status {
        401 | 403 => ErrorKind::Authentication,
        413 => ErrorKind::ContextTooLong,
        // The limit of tokens per minute is smaller than the request.
        429 if said.to_lowercase().contains("request too large") => ErrorKind::ContextTooLong,
        429 => ErrorKind::RateLimited,
        // Some servers and proxies report a request that is too long as a failure of their own.
        500 if too_long => ErrorKind::ContextTooLong,
        408 | 425 | 500.. => ErrorKind::Unavailable,
        _ => by_words,
    }
}

/// Classifies a refusal by its words, which are the only sign from many servers. The words for a
/// request that is too long are from `OpenAI` and Anthropic (the first four), Gemini, llama.cpp,
/// vLLM and xAI; those for a wrong key are from Gemini.
pub(super) fn kind_of_bad(said: &str) -> ErrorKind {
    const TOO_LONG: &[&str] = &[
        "context length",
        "context_length",
        "context window",
        "too long",
        "context limit",
        "too many tokens",
        "maximum number of tokens",
        "context size",
        "maximum prompt length",
        "prompt token count",
        "contextwindowexceeded",
    ];
    const WRONG_KEY: &[&str] = &["api key not valid", "api key expired", "api_key_invalid"];
    let said = said.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|words| said.contains(words));
    let too_long = any(TOO_LONG) || Overflow::read(&said).is_some();
    match (any(WRONG_KEY), too_long, any(QUOTA)) {
        (true, _, _) => ErrorKind::Authentication,
        (_, true, _) => ErrorKind::ContextTooLong,
        (_, _, true) => ErrorKind::QuotaExhausted,
        _ => ErrorKind::BadRequest,
    }
}

/// Signs of an account without money or allowance, which waiting does not cure: `OpenAI`'s codes,
/// and words of Anthropic, DeepSeek and OpenRouter.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
];

/// Words of `OpenAI` about an account without money or allowance. Gemini also uses these words for
/// limits per minute, but then says how long to wait.
const OVER_QUOTA: &str = "exceeded your current quota";

fn is_quota(status: u16, body: &str, json: Option<&Value>, pause: Option<Duration>) -> bool {
    if !matches!(status, 400 | 402 | 403 | 429) {
        return false;
    }
    let body = body.to_lowercase();
    // Gemini names the limits that were exceeded.
    let violations = details(json).flat_map(|detail| detail["violations"].as_array()).flatten();
    let limits: Vec<&str> = violations.filter_map(|it| it["quotaId"].as_str()).collect();
    let is_daily = limits.iter().any(|limit| limit.contains("PerDay"));
    let is_over = body.contains(OVER_QUOTA) && limits.is_empty() && pause.is_none();
    status == 402 || is_daily || is_over || QUOTA.iter().any(|words| body.contains(words))
}

fn details(json: Option<&Value>) -> impl Iterator<Item = &Value> {
    json.and_then(|json| json["error"]["details"].as_array()).into_iter().flatten()
}

/// Returns Gemini's retry delay, such as `"34.07s"`.
fn gemini_pause(json: &Value) -> Option<Duration> {
    let delay = details(Some(json)).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the message of a refusal from one of the usual fields.
fn message(json: Option<&Value>) -> Option<&str> {
    let json = json?;
    let places = [&json["error"]["message"], &json["error"], &json["message"], &json["detail"]];
    places.into_iter().find_map(Value::as_str)
}

fn in_words(whole: &str) -> String {
    whole.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text, on one line and without the key.
fn in_a_line(whole: &str, key: Option<&Secret>) -> String {
    // The key is hidden before the text is cut, since half a key could not be found.
    let whole = key.map_or_else(|| whole.to_owned(), |key| key.hidden_in(whole));
    let line = in_words(&whole);
    match line.char_indices().nth(REFUSAL_TOLD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Parses `Retry-After`: seconds, or a date.
pub(super) fn wanted_pause(header: &HeaderValue) -> Option<Duration> {
    let text = header.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = date.duration_since(jiff::Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_given_in_seconds_or_as_a_date() {
        let pause = |text: &str| wanted_pause(&HeaderValue::from_str(text).unwrap());
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert_eq!(pause("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert!(pause("Thu, 06 Nov 2994 08:49:37 GMT").unwrap() > Duration::from_secs(1 << 30));
        assert_eq!(pause("soon"), None);
    }

    #[track_caller]
    fn check(status: u16, body: &str, kind: ErrorKind, said: &str) {
        let found = Refusal::read(status, body, None, None);
        assert_eq!((found.kind, &*found.said), (kind, said));
    }

    #[test]
    fn refusals_are_told_apart() {
        use ErrorKind::{Authentication, BadRequest, ContextTooLong, RateLimited, Unavailable};
        check(401, r#"{"error": {"message": "wrong  key"}}"#, Authentication, "wrong key");
        check(429, r#"{"error": "slow down"}"#, RateLimited, "slow down");
        check(529, "", Unavailable, "");
        check(
            400,
            r#"{"message": "maximum context length is 8"}"#,
            ContextTooLong,
            "maximum context length is 8",
        );
        let gemini = |message: &str| format!(r#"[{{"error": {{"message": "{message}"}}}}]"#);
        let long = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
        check(400, &gemini(long), ContextTooLong, long);
        let key = "API key not valid. Please pass a valid API key.";
        check(400, &gemini(key), Authentication, key);
        check(404, "<html>\n no </html>", BadRequest, "<html> no </html>");
        check(307, "", BadRequest, "");
        let long = "x".repeat(1000);
        check(500, &long, Unavailable, &format!("{}…", &long[..REFUSAL_TOLD]));
    }

    #[test]
    fn no_part_of_a_key_is_told_wherever_the_refusal_is_cut() {
        let key = Secret::new("sk-abcdefghijklmnopqrstuvwxyz").unwrap();
        for before in REFUSAL_TOLD - 40..REFUSAL_TOLD + 2 {
            let said = format!("{}{}, which is wrong", "x".repeat(before), key.reveal());
            let json = serde_json::json!({"error": {"message": said}}).to_string();
            for body in [said, json] {
                let told = Refusal::read(400, &body, None, Some(&key)).said;
                assert!(!told.contains("sk-"), "{told}");
                assert_eq!(told.chars().filter(|c| *c != 'x').take(1).collect::<String>(), "…");
            }
        }
    }

    #[track_caller]
    fn check_again(status: u16, body: &str, kind: ErrorKind, again: Again) {
        let found = Refusal::read(status, body, None, None);
        assert_eq!((found.kind, found.again), (kind, again), "{status} {body}");
    }

    #[test]
    fn who_is_loading_is_waited_for_and_who_is_out_of_money_is_not() {
        use ErrorKind::{ContextTooLong, QuotaExhausted, RateLimited, Unavailable};
        let loading = r#"{"error": {"message": "Loading model", "code": 503}}"#;
        check_again(503, loading, Unavailable, Again::UntilReady);
        check_again(529, "", Unavailable, Again::UntilReady);
        check_again(500, r#"{"error": "model is loading"}"#, Unavailable, Again::UntilReady);
        check_again(500, "oops", Unavailable, Again::Soon);
        check_again(502, "", Unavailable, Again::Soon);
        check_again(429, r#"{"error": "slow down"}"#, RateLimited, Again::Soon);
        let openai = r#"{"error": {"message": "You exceeded your current quota, please check your
            plan and billing details.", "type": "insufficient_quota"}}"#;
        check_again(429, openai, QuotaExhausted, Again::Never);
        check_again(402, r#"{"error": "Insufficient Balance"}"#, QuotaExhausted, Again::Never);
        let anthropic = r#"{"type": "error", "error": {"type": "invalid_request_error", "message":
            "Your credit balance is too low to access the Anthropic API."}}"#;
        check_again(400, anthropic, QuotaExhausted, Again::Never);
        let proxied = r#"{"error": {"message": "litellm.RateLimitError: OpenAIException - {'type':
            'insufficient_quota'}", "code": "429"}}"#;
        check_again(429, proxied, QuotaExhausted, Again::Never);
        let large = r#"{"error": {"message": "Request too large for gpt-4 on tokens per min (TPM):
            Limit 30000, Requested 35012."}}"#;
        check_again(429, large, ContextTooLong, Again::Never);
        check_again(
            500,
            r#"{"error": "prompt is too long: 9 tokens > 8"}"#,
            ContextTooLong,
            Again::Never,
        );
    }

    #[test]
    fn gemini_says_whether_a_limit_is_one_of_a_day_and_how_long_to_wait() {
        let refusal = |quota: &str| {
            let body = serde_json::json!([{"error": {
                "code": 429, "status": "RESOURCE_EXHAUSTED",
                "message": "You exceeded your current quota, please check your plan.",
                "details": [
                    {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                     "violations": [{"quotaId": quota}]},
                    {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
                ],
            }}]);
            Refusal::read(429, &body.to_string(), None, None)
        };
        let minute = refusal("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
        assert_eq!((minute.kind, minute.again), (ErrorKind::RateLimited, Again::UntilReady));
        assert_eq!(minute.pause, Some(Duration::from_millis(34_500)));
        let day = refusal("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
        assert_eq!((day.kind, day.again), (ErrorKind::QuotaExhausted, Again::Never));
    }
}
