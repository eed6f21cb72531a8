//! Tests of what refusals say.

use reqwest::header::HeaderMap;

use super::*;
use crate::provider::secret::Secret;

#[test]
fn a_pause_is_given_in_seconds_or_as_a_date() {
    let named = |name: &'static str, text: &str| {
        let value = reqwest::header::HeaderValue::from_str(text).unwrap();
        wanted_pause(&HeaderMap::from_iter([(name.parse().unwrap(), value)]))
    };
    let pause = |text: &str| named("retry-after", text);
    assert_eq!(named("retry-after-ms", "250"), Some(Duration::from_millis(250)));
    assert_eq!(pause("1.5"), Some(Duration::from_millis(1500)));
    assert_eq!(pause("7"), Some(Duration::from_secs(7)));
    assert_eq!(pause("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
    assert!(pause("Thu, 06 Nov 2994 08:49:37 GMT").unwrap() > Duration::from_secs(1 << 30));
    assert_eq!(pause("soon"), None);
}

#[track_caller]
fn check(status: u16, body: &str, kind: ErrorKind, said: &str) {
    let found = ServerRefusal::read(status, body, None, &RequestSecrets::default());
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
    check(404, "<html>\n no </html>", BadRequest, "no");
    // Amazon's errors, and their names.
    let aws = r#"{"__type": "com.amazon.coral#ThrottlingException", "message": "Rate exceeded"}"#;
    check(400, aws, RateLimited, "Rate exceeded");
    check(403, r#"{"Message": "not authorized"}"#, Authentication, "not authorized");
    check(400, r#"{"Code": "AccessDeniedException", "Message": "no"}"#, Authentication, "no");
    check(307, "", BadRequest, "");
    let long = "x".repeat(1000);
    check(500, &long, Unavailable, &format!("{}…", &long[..REFUSAL_TOLD]));
}

#[test]
fn an_error_with_status_200_is_told() {
    let check = |body: serde_json::Value, kind: ErrorKind, said: &str| {
        let found = ServerRefusal::in_answer(&body).unwrap();
        let words = found.said.strip_prefix("the answer broke off: ");
        assert_eq!((found.kind, words), (kind, Some(said)));
    };
    let minimax = |code: u64| serde_json::json!({"choices": null, "base_resp": {"status_code": code, "status_msg": "m"}});
    check(minimax(1004), ErrorKind::Authentication, "m");
    check(minimax(1002), ErrorKind::RateLimited, "m");
    check(minimax(1008), ErrorKind::QuotaExhausted, "m");
    check(minimax(1000), ErrorKind::Unavailable, "m");
    assert!(ServerRefusal::in_answer(&minimax(0)).is_none());
}

#[test]
fn no_part_of_a_key_is_told_wherever_the_refusal_is_cut() {
    let key = Secret::new("sk-abcdefghijklmnopqrstuvwxyz").unwrap();
    for before in REFUSAL_TOLD - 40..REFUSAL_TOLD + 2 {
        let said = format!("{}{}, which is wrong", "x".repeat(before), key.reveal());
        let json = serde_json::json!({"error": {"message": said}}).to_string();
        for body in [said, json] {
            let told = ServerRefusal::read(400, &body, None, &RequestSecrets::new([&key])).said;
            assert!(!told.contains("sk-"), "{told}");
            assert_eq!(told.chars().filter(|c| *c != 'x').take(1).collect::<String>(), "…");
        }
    }
}

#[track_caller]
fn check_again(status: u16, body: &str, kind: ErrorKind, again: RetryPolicy) {
    let found = ServerRefusal::read(status, body, None, &RequestSecrets::default());
    assert_eq!((found.kind, found.again), (kind, again), "{status} {body}");
}

#[test]
fn who_is_loading_is_waited_for_and_who_is_out_of_money_is_not() {
    use ErrorKind::{ContextTooLong, QuotaExhausted, RateLimited, Unavailable};
    let loading = r#"{"error": {"message": "Loading model", "code": 503}}"#;
    check_again(503, loading, Unavailable, RetryPolicy::UntilReady);
    check_again(529, "", Unavailable, RetryPolicy::UntilReady);
    check_again(500, r#"{"error": "model is loading"}"#, Unavailable, RetryPolicy::UntilReady);
    check_again(500, "oops", Unavailable, RetryPolicy::Soon);
    check_again(502, "", Unavailable, RetryPolicy::Soon);
    check_again(429, r#"{"error": "slow down"}"#, RateLimited, RetryPolicy::Soon);
    let openai = r#"{"error": {"message": "You exceeded your current quota, please check your
        plan and billing details.", "type": "insufficient_quota"}}"#;
    check_again(429, openai, QuotaExhausted, RetryPolicy::Never);
    check_again(402, r#"{"error": "Insufficient Balance"}"#, QuotaExhausted, RetryPolicy::Never);
    let anthropic = r#"{"type": "error", "error": {"type": "invalid_request_error", "message":
        "Your credit balance is too low to access the Anthropic API."}}"#;
    check_again(400, anthropic, QuotaExhausted, RetryPolicy::Never);
    let proxied = r#"{"error": {"message": "litellm.RateLimitError: OpenAIException - {'type':
        'insufficient_quota'}", "code": "429"}}"#;
    check_again(429, proxied, QuotaExhausted, RetryPolicy::Never);
    let large = r#"{"error": {"message": "Request too large for gpt-4 on tokens per min (TPM):
        Limit 30000, Requested 35012."}}"#;
    check_again(429, large, ContextTooLong, RetryPolicy::Never);
    for long in ["prompt is too long: 9 tokens > 8", "max_tokens must be at least 1, got -50."] {
        check_again(500, &format!(r#"{{"error": "{long}"}}"#), ContextTooLong, RetryPolicy::Never);
    }
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
        ServerRefusal::read(429, &body.to_string(), None, &RequestSecrets::default())
    };
    let minute = refusal("GenerateRequestsPerMinutePerProjectPerModel-FreeTier");
    assert_eq!((minute.kind, minute.again), (ErrorKind::RateLimited, RetryPolicy::UntilReady));
    assert_eq!(minute.pause, Some(Duration::from_millis(34_500)));
    let day = refusal("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    assert_eq!((day.kind, day.again), (ErrorKind::QuotaExhausted, RetryPolicy::Never));
}
