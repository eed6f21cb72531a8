//! Interprets refusals: error responses of servers, and errors within answers. Says their kind, the
//! server's message, and whether to try again.

mod code;
mod pause;

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use self::code::{kind_of_code, minimax};
pub(super) use self::pause::wanted_pause;
use self::pause::{pause_in, pause_in_words};
use super::error::ErrorKind;
use super::overflow::Overflow;
use super::secret::RequestSecrets;

/// Maximum number of characters of a refusal to show.
const REFUSAL_TOLD: usize = 300;
/// Maximum depth of errors within errors.
const DEEPEST: usize = 6;
/// Maximum number of errors in a list to show.
const MOST_ERRORS: usize = 3;

/// An interpreted refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerRefusal {
    pub(super) kind: ErrorKind,
    /// The server's message, on one line and without the key.
    pub(super) said: String,
    /// Message, codes and parameter, in lower case, from which to learn what is refused.
    pub(super) words: String,
    /// Token counts, if the request was too long.
    pub(super) overflow: Option<Overflow>,
    /// Time that the server asks clients to wait.
    pub(super) pause: Option<Duration>,
    pub(super) again: RetryPolicy,
}

/// The policy for sending the same request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryPolicy {
    /// Give up: the request would be refused again.
    Never,
    /// Try a few times: the failure may pass.
    Soon,
    /// Keep trying until the time is up: the server is loading the model or overloaded, or says
    /// when to try again.
    UntilReady,
}

/// The facts that a refusal has in its members.
#[derive(Default)]
struct RefusalFacts {
    /// Codes and types, in lower case; the outermost come first.
    codes: Vec<String>,
    /// Status within the body.
    status: Option<u16>,
    /// Parameter that the refusal is about.
    param: String,
}

impl ServerRefusal {
    /// Creates a refusal of a kind for which the same request is not sent again.
    pub(super) fn new(kind: ErrorKind, said: String) -> Self {
        let words = String::new();
        Self { kind, said, words, overflow: None, pause: None, again: RetryPolicy::Never }
    }

    /// Interprets a response with `status`. `pause` comes from the headers.
    pub(super) fn read(
        status: u16,
        body: &str,
        pause: Option<Duration>,
        secrets: &RequestSecrets,
    ) -> Self {
        let json: Option<Value> = serde_json::from_str(body).ok();
        Self::of(Some(status), json.as_ref(), body, pause, secrets)
    }

    /// Returns the error that an event or a whole answer tells, if it is one.
    pub(super) fn in_answer(said: &Value) -> Option<Self> {
        const ANSWERS: &[&str] = &["choices", "candidates", "delta", "content", "content_block"];
        let is_told = match &said["error"] {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(error) => !error.is_empty(),
            _ => true,
        };
        let is_named = said["object"] == "error" || said["type"] == "error";
        let is_coded = said["base_resp"]["status_code"].as_u64().is_some_and(|code| code != 0);
        let is_only = || {
            let names = ["message", "detail", "msg", "error_msg", "errors"];
            let is_message = |name: &&str| {
                !(said[*name].is_null() || (*name == "message" && said[*name].is_object()))
            };
            names.iter().any(is_message) && ANSWERS.iter().all(|name| said[*name].is_null())
        };
        (is_told || is_named || is_coded || is_only()).then(|| {
            let refusal = Self::of(None, Some(said), "", None, &RequestSecrets::default());
            Self { said: format!("the answer broke off: {}", refusal.said), ..refusal }
        })
    }

    fn of(
        status: Option<u16>,
        json: Option<&Value>,
        body: &str,
        pause: Option<Duration>,
        secrets: &RequestSecrets,
    ) -> Self {
        let mut facts = RefusalFacts::default();
        let message = json.and_then(|json| facts.message(json, DEEPEST));
        let whole = in_words(&untagged(message.as_deref().unwrap_or(body)));
        let whole = match whole.is_empty() && status.is_none() {
            true => "no reason given".to_owned(),
            false => whole,
        };
        let status = status.or(facts.status);
        let words = format!("{whole} {} {}", facts.param, facts.codes.join(" ")).to_lowercase();
        let pause = pause.or_else(|| json.and_then(pause_in)).or_else(|| pause_in_words(&words));
        let kind = match is_quota(status, &words, body, json, pause) {
            true => ErrorKind::QuotaExhausted,
            false => facts.kind(status, &whole, &words),
        };
        let too_long = kind == ErrorKind::ContextTooLong;
        let overflow = too_long.then(|| Overflow::read_body(json, &whole)).flatten();
        let again = again(status, kind, &words, pause);
        Self { kind, said: in_a_line(&whole, secrets), words, overflow, pause, again }
    }
}

impl RefusalFacts {
    /// Collects the facts, and returns the message. What a proxy wraps comes after its own words.
    fn message(&mut self, said: &Value, depth: usize) -> Option<String> {
        match said {
            _ if depth == 0 => None,
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                let inner = serde_json::from_str::<Value>(text).ok();
                let inner = inner.and_then(|inner| self.message(&inner, depth - 1));
                Some(inner.unwrap_or_else(|| text.clone()))
            }
            Value::String(text) => (!text.trim().is_empty()).then(|| text.clone()),
            Value::Array(errors) => {
                let errors = errors.iter().take(MOST_ERRORS);
                let told: Vec<_> = errors.filter_map(|one| self.message(one, depth - 1)).collect();
                (!told.is_empty()).then(|| told.join("; "))
            }
            Value::Object(_) => self.message_of(said, depth),
            _ => None,
        }
    }

    fn message_of(&mut self, said: &Value, depth: usize) -> Option<String> {
        const MESSAGES: &[&str] = &[
            "error",
            "message",
            "detail",
            "msg",
            "error_message",
            "errorMessage",
            "error_msg",
            "error_description",
            "errors",
            "title",
            "Message",
            "status_msg",
            "base_resp",
        ];
        const CODES: &[&str] = &[
            "code",
            "type",
            "status",
            "error_type",
            "error_code",
            "errorCode",
            "reason",
            "__type",
            "Code",
        ];
        for name in CODES {
            match &said[*name] {
                Value::String(code) => self.code(&code.to_lowercase()),
                Value::Number(code) => self.code(&code.to_string()),
                _ => {}
            }
        }
        if let Some(code) = said["status_code"].as_u64() {
            self.code(minimax(code));
        }
        if let Some(param) = said["param"].as_str().filter(|_| self.param.is_empty()) {
            self.param = param.to_owned();
        }
        let told = MESSAGES.iter().find_map(|name| self.message(&said[*name], depth - 1));
        if let (Some(place), Some(told)) = (said["loc"].as_array(), &told) {
            let place: Vec<String> =
                place.iter().map(|it| it.to_string().replace('"', "")).collect();
            return Some(format!("{}: {told}", place.join(".")));
        }
        let raw = self.message(&said["metadata"]["raw"], depth - 1);
        match (told, raw) {
            (Some(told), Some(raw)) if !told.contains(&raw) => Some(format!("{told}: {raw}")),
            (told, raw) => told.or(raw),
        }
    }

    fn code(&mut self, code: &str) {
        match code.parse().ok().filter(|status| (400..600).contains(status)) {
            Some(status) => self.status = self.status.or(Some(status)),
            None => self.codes.push(code.to_owned()),
        }
    }

    fn kind(&self, status: Option<u16>, whole: &str, words: &str) -> ErrorKind {
        use ErrorKind::{Authentication, BadRequest, ContextTooLong, RateLimited, Unavailable};
        let by_code = self.codes.iter().rev().find_map(|code| kind_of_code(code));
        let too_long = !self.is_about_a_part() && is_too_long(whole);
        let is_client = matches!(status, Some(400..=499)) && !matches!(status, Some(408 | 425));
        match (by_code, status) {
            (Some(kind @ (ContextTooLong | Authentication)), _) => kind,
            (_, Some(401 | 403)) => Authentication,
            (_, Some(413)) => ContextTooLong,
            // The limit of tokens per minute is smaller than the request.
            (_, Some(429)) if words.contains("request too large") => ContextTooLong,
            (Some(RateLimited), _) | (_, Some(429)) => RateLimited,
            _ if too_long => ContextTooLong,
            _ if WRONG_KEY.iter().any(|known| words.contains(known)) => Authentication,
            // Ollama calls the client's mistakes errors of the server.
            (Some(Unavailable), _) if !is_client => Unavailable,
            (_, Some(408 | 425 | 500..)) => Unavailable,
            (Some(BadRequest), _) => BadRequest,
            // Once a stream has begun, servers report every failure as a failure of their own.
            (_, None) => Unavailable,
            _ => BadRequest,
        }
    }

    /// Returns whether the refusal is about a part of the request that curation cannot shorten.
    fn is_about_a_part(&self) -> bool {
        let parts = ["tools", "functions", "max_tokens", "max_completion_tokens"];
        parts.iter().any(|part| self.param.starts_with(part))
            || self.codes.iter().any(|code| code == "string_above_max_length")
    }
}

/// Words of Gemini for a wrong key.
const WRONG_KEY: &[&str] = &["api key not valid", "api key expired", "api_key_invalid"];

/// Words for a request that is too long, which are the only sign from many servers.
static TOO_LONG: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const FORMS: &[&str] = &[
        "context[ _](length|window|limit|size)",
        "contextwindowexceeded",
        r"\b(prompt|input|request|conversation|history|messages?)( \S+){0,3} (is|are|was) too (long|large)",
        r"\b(prompt|input|request) too (long|large)",
        "too many (input |prompt )?tokens",
        "maximum number of (input )?tokens",
        "maximum prompt length",
        "prompt token count",
        "reduce the length of (the|your) (messages|prompt|input)",
        "(prompt|input|request|message)s?( length)? exceeds? (the )?(max|maximum|limit|model)",
        "exceeds? (the )?(model's |model )?(max|maximum) (sequence|input|prompt|context|model) ?(length|tokens|len)",
        "exceeded model token limit",
        "token limit exceeded",
        "range of input length should be",
        // vLLM, with what is left for the answer.
        "max_(completion_)?tokens must be at least 1, got -",
        "input tokens exceed",
        "`inputs` tokens",
        "(request|payload) size exceeds",
    ];
    Regex::new(&format!("(?i){}", FORMS.join("|"))).ok()
});

fn is_too_long(said: &str) -> bool {
    TOO_LONG.as_ref().is_some_and(|forms| forms.is_match(said)) || Overflow::read(said).is_some()
}

fn again(
    status: Option<u16>,
    kind: ErrorKind,
    words: &str,
    pause: Option<Duration>,
) -> RetryPolicy {
    let is_loading = words.contains("loading") || words.contains("overloaded");
    match (kind, status) {
        (ErrorKind::RateLimited, _) if pause.is_some() => RetryPolicy::UntilReady,
        (ErrorKind::Unavailable, Some(503 | 529)) => RetryPolicy::UntilReady,
        (ErrorKind::Unavailable, _) if is_loading => RetryPolicy::UntilReady,
        (ErrorKind::RateLimited | ErrorKind::Unavailable, _) => RetryPolicy::Soon,
        _ => RetryPolicy::Never,
    }
}

/// Signs of an account without money or allowance, which waiting does not cure: codes of `OpenAI`
/// and Moonshot, and words of Anthropic, DeepSeek and OpenRouter.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "exceeded_current_quota_error",
    "credit balance is too low",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credits",
];

/// Words of `OpenAI` about an account without money or allowance. Gemini also uses these words for
/// limits per minute, but then says how long to wait.
const OVER_QUOTA: &str = "exceeded your current quota";

fn is_quota(
    status: Option<u16>,
    words: &str,
    body: &str,
    json: Option<&Value>,
    pause: Option<Duration>,
) -> bool {
    if !matches!(status, None | Some(400 | 402 | 403 | 429)) {
        return false;
    }
    let body = body.to_lowercase();
    // Gemini names the limits that were exceeded.
    let violations = details(json).flat_map(|detail| detail["violations"].as_array()).flatten();
    let limits: Vec<&str> = violations.filter_map(|it| it["quotaId"].as_str()).collect();
    let is_daily = limits.iter().any(|limit| limit.contains("PerDay"));
    let is_over = words.contains(OVER_QUOTA) && limits.is_empty() && pause.is_none();
    let is_told = || QUOTA.iter().any(|known| words.contains(known) || body.contains(known));
    status == Some(402) || is_daily || is_over || is_told()
}

fn details(json: Option<&Value>) -> impl Iterator<Item = &Value> {
    let json = json.map(|json| json.get(0).unwrap_or(json));
    json.and_then(|json| json["error"]["details"].as_array()).into_iter().flatten()
}

/// Returns the text of an HTML page, and any other text unchanged.
fn untagged(text: &str) -> String {
    static TAGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?is)<(script|style)\b.*?</(script|style)>|<!--.*?-->|<[^>]*>").ok()
    });
    match (text.trim_start().starts_with('<'), &*TAGS) {
        (true, Some(tags)) => tags.replace_all(text, " ").into_owned(),
        _ => text.to_owned(),
    }
}

fn in_words(whole: &str) -> String {
    whole.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text, on one line and without secrets.
pub(super) fn in_a_line(whole: &str, secrets: &RequestSecrets) -> String {
    // They are hidden before the text is cut, since half a key could not be found.
    let line = in_words(&secrets.hidden_in(whole));
    match line.char_indices().nth(REFUSAL_TOLD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
