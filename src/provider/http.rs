//! Requests to one server: the key, the retries, and what a refusal means.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, redirect};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep, timeout_at};

use super::chat::OnWait;
use super::error::{ErrorKind, ProviderError};
use super::secret::{KeySource, Secret};

/// How often a request is sent at most.
const ATTEMPTS: u32 = 3;
/// How long to wait before the second attempt; each later one waits twice as long, unless the
/// server says otherwise.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How much of a refusal is read, in bytes, and how much of it is told, in characters.
const LONGEST_REFUSAL: usize = 16 << 10;
const REFUSAL_TOLD: usize = 300;

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// As the token of an authorization.
    Bearer,
    /// In a header of its own.
    Named(&'static str),
}

/// A server that is asked for what one model makes.
pub(super) struct Endpoint {
    provider: String,
    model: String,
    source: KeySource,
    key_header: KeyHeader,
    headers: &'static [(&'static str, &'static str)],
    shared: Arc<Shared>,
}

/// What the models of one server have in common. It is no state of the engine.
#[derive(Default)]
struct Shared {
    /// Locked while it is asked for: a command that asks for a passphrase must not run twice at a
    /// time.
    key: Mutex<Option<Secret>>,
    /// Made at the first use, since reading the system's certificates takes a while.
    client: OnceCell<Client>,
}

impl Endpoint {
    pub(super) fn new(provider: String, model: String, source: KeySource) -> Self {
        Self {
            provider,
            model,
            source,
            key_header: KeyHeader::Bearer,
            headers: &[],
            shared: Arc::default(),
        }
    }

    /// The same server for another model.
    pub(super) fn with_model(&self, model: &str) -> Self {
        Self {
            provider: self.provider.clone(),
            model: model.to_owned(),
            source: self.source.clone(),
            key_header: self.key_header,
            headers: self.headers,
            shared: Arc::clone(&self.shared),
        }
    }

    /// Sends the key so, and these headers with every request.
    pub(super) fn with_headers(
        self,
        key_header: KeyHeader,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { key_header, headers, ..self }
    }

    pub(super) fn provider(&self) -> &str {
        &self.provider
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn error(&self, kind: ErrorKind, what: impl Into<String>) -> ProviderError {
        ProviderError {
            kind,
            provider: self.provider.clone(),
            model: self.model.clone(),
            what: what.into(),
            retry_after: None,
        }
    }

    /// Sends JSON, or asks without any, until that is accepted, a failure will not pass, or the
    /// time is up. Gives the key that was sent, too, since what the server says may hold it.
    pub(super) async fn ask(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        until: Instant,
        on_wait: &OnWait,
    ) -> Result<(Response, Option<Secret>), ProviderError> {
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            let asked = timeout_at(until, self.ask_once(url, body.clone())).await;
            let error = match asked.unwrap_or_else(|_| Err(self.late())) {
                Ok(answered) => return Ok(answered),
                Err(error) => error,
            };
            let pause = error.retry_after.unwrap_or(wait);
            // A server may name a pause that no clock can count to the end of.
            let left = until.saturating_duration_since(Instant::now());
            if !error.is_passing() || attempt == ATTEMPTS || pause >= left {
                return Err(error);
            }
            on_wait.tell(&format!("{error}; asked again after {:.1} s", pause.as_secs_f64()));
            sleep(pause).await;
            wait *= 2;
        }
        unreachable!("the loop only ends by returning")
    }

    /// The whole of an answer, as long as it is no longer than `limit` bytes.
    pub(super) async fn whole(
        &self,
        mut response: Response,
        limit: usize,
        until: Instant,
    ) -> Result<Vec<u8>, ProviderError> {
        let mut whole = Vec::new();
        loop {
            let chunk = timeout_at(until, response.chunk()).await.map_err(|_| self.late())?;
            match chunk.map_err(|error| self.broken(error))? {
                None => return Ok(whole),
                Some(chunk) if whole.len() + chunk.len() > limit => {
                    let what = format!("the answer has more than {limit} bytes");
                    return Err(self.error(ErrorKind::Malformed, what));
                }
                Some(chunk) => whole.extend_from_slice(&chunk),
            }
        }
    }

    /// There was no answer in time.
    pub(super) fn late(&self) -> ProviderError {
        self.error(ErrorKind::Unavailable, "no answer came in time")
    }

    async fn ask_once(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(Response, Option<Secret>), ProviderError> {
        let key = self.key().await?;
        let client = self.shared.client.get_or_try_init(|| async { client(url) }).await;
        let client = client.map_err(|error| {
            let what = format!("there can be no connections: {}", deepest(&error));
            self.error(ErrorKind::Unconfigured, what)
        })?;
        let request = match body {
            Some(body) => client.post(url).body(body),
            None => client.get(url),
        };
        let request = request.headers(self.headers(key.as_ref())?);
        let response = request.send().await.map_err(|error| self.broken(error))?;
        match response.status().is_success() {
            true => Ok((response, key)),
            false => Err(self.refused(response, key).await),
        }
    }

    async fn key(&self) -> Result<Option<Secret>, ProviderError> {
        let mut known = self.shared.key.lock().await;
        if known.is_none() {
            let key = self.source.key().await;
            *known = key.map_err(|why| self.error(ErrorKind::Unconfigured, why))?;
        }
        Ok(known.clone())
    }

    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = key {
            let (name, text) = match self.key_header {
                KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
                KeyHeader::Named(name) => (HeaderName::from_static(name), key.reveal().to_owned()),
            };
            let value = HeaderValue::from_str(&text);
            let what = "the key has characters that no key has";
            let mut value = value.map_err(|_| self.error(ErrorKind::Unconfigured, what))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    async fn refused(&self, mut response: Response, key: Option<Secret>) -> ProviderError {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(wanted_pause);
        let mut body = Vec::new();
        let mut is_cut = true;
        while body.len() <= LONGEST_REFUSAL {
            // What is missing of a refusal does not matter.
            let chunk = response.chunk().await;
            is_cut = !matches!(chunk, Ok(None));
            let Ok(Some(chunk)) = chunk else { break };
            body.extend_from_slice(&chunk);
        }
        body.truncate(LONGEST_REFUSAL);
        let mut body = String::from_utf8_lossy(&body).into_owned();
        if let Some(key) = key.as_ref().filter(|_| is_cut) {
            body = key.hidden_in_beginning(&body);
        }
        let said = said_in(&body, key.as_ref());
        let kind = kind_of(status, &said);
        if kind == ErrorKind::Authentication {
            // The command or the variable may give another one next time.
            *self.shared.key.lock().await = None;
        }
        let told = if said.is_empty() { String::new() } else { format!(": {said}") };
        let what = format!("it answered {}{told}", status.as_u16());
        ProviderError { retry_after, ..self.error(kind, what) }
    }

    /// The connection failed. What reqwest says of the address is left out, since it is long.
    pub(super) fn broken(&self, error: reqwest::Error) -> ProviderError {
        let what = format!("the connection failed: {}", deepest(&error.without_url()));
        self.error(ErrorKind::Unavailable, what)
    }
}

/// The cause of an error that says most.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

fn client(url: &str) -> reqwest::Result<Client> {
    // Only the first of a process is taken, and they are all the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = match url.starts_with("https:") {
        true => Client::builder(),
        // A server on one's own machine must not need the system's certificates: there may be none.
        false => Client::builder().tls_certs_only([]),
    };
    builder
        .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        // A key is only for the server that it was given for.
        .redirect(redirect::Policy::none())
        .build()
}

fn kind_of(status: StatusCode, said: &str) -> ErrorKind {
    match status.as_u16() {
        401 | 403 => ErrorKind::Authentication,
        402 | 429 => ErrorKind::RateLimited,
        408 | 425 | 500.. => ErrorKind::Unavailable,
        413 => ErrorKind::ContextTooLong,
        _ => kind_of_bad(said),
    }
}

/// What is wrong with a request, as far as the words of the refusal tell: many servers have no
/// other sign. Those of a window that is too long are of `OpenAI` and Anthropic (the first four),
/// Gemini, llama.cpp and vLLM; those of a wrong key are of Gemini.
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
    ];
    const WRONG_KEY: &[&str] = &["api key not valid", "api key expired", "api_key_invalid"];
    let said = said.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|words| said.contains(words));
    match (any(TOO_LONG), any(WRONG_KEY)) {
        (true, _) => ErrorKind::ContextTooLong,
        (_, true) => ErrorKind::Authentication,
        _ => ErrorKind::BadRequest,
    }
}

/// What a refusal says, in a line without the key: the message where servers put it, or else its
/// beginning.
fn said_in(body: &str, key: Option<&Secret>) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let message = json.as_ref().and_then(|json| {
        // Gemini may put it into a list.
        let json = json.get(0).unwrap_or(json);
        let places = [&json["error"]["message"], &json["error"], &json["message"]];
        places.into_iter().find_map(serde_json::Value::as_str)
    });
    let whole = message.unwrap_or(body);
    // Before anything is cut: half a key is none that could be found.
    let whole = key.map_or_else(|| whole.to_owned(), |key| key.hidden_in(whole));
    let words: Vec<&str> = whole.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(REFUSAL_TOLD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Reads `Retry-After`: seconds, or a date.
fn wanted_pause(header: &HeaderValue) -> Option<Duration> {
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
        let found = said_in(body, None);
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!((kind_of(status, &found), &*found), (kind, said));
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
                let told = said_in(&body, Some(&key));
                assert!(!told.contains("sk-"), "{told}");
                assert_eq!(told.chars().filter(|c| *c != 'x').take(1).collect::<String>(), "…");
            }
        }
    }
}
