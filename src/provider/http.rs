//! HTTP requests to one server: keys, retries, and the meaning of refusals.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, redirect};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep, timeout_at};

use super::chat::OnWait;
use super::error::{ErrorKind, ProviderError};
use super::refusal::{Again, Refusal, wanted_pause};
use super::secret::{KeySource, Secret};

/// Maximum number of attempts if the failure may pass. A server that is loading or overloaded, or
/// that says when to try again, is tried again until the time is up.
const ATTEMPTS: u32 = 3;
/// Wait before the second attempt, and the shortest wait that a server can ask for. Each later wait
/// is twice as long, up to [`LONGEST_WAIT`], unless the server says otherwise.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Longest wait between attempts if the server does not say when it is ready.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Maximum time to establish a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a refusal to read.
const LONGEST_REFUSAL: usize = 16 << 10;

/// The HTTP header that carries the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyHeader {
    /// `Authorization: Bearer`.
    Bearer,
    /// A header with this name.
    Named(&'static str),
}

/// A server and one of its models.
#[derive(Clone)]
pub(super) struct Endpoint {
    provider: String,
    model: String,
    source: KeySource,
    key_header: KeyHeader,
    headers: &'static [(&'static str, &'static str)],
    shared: Arc<Shared>,
}

/// The state that all models of one server share.
#[derive(Default)]
struct Shared {
    /// The key, once it is known. Locked while the key is fetched, because a command that asks
    /// for a passphrase must not run twice at the same time.
    key: Mutex<Option<Secret>>,
    /// HTTP client, created on first use because loading the system's certificates takes a while.
    client: OnceCell<Client>,
}

/// The failure of one attempt.
struct Failed {
    error: ProviderError,
    again: Again,
    /// True if the server closed a connection without an answer, as happens with idle connections.
    /// The request is then sent once more on a new connection.
    is_closed: bool,
}

impl From<ProviderError> for Failed {
    fn from(error: ProviderError) -> Self {
        Self { error, again: Again::Never, is_closed: false }
    }
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

    /// Returns the same server with another model.
    pub(super) fn with_model(&self, model: &str) -> Self {
        Self { model: model.to_owned(), ..self.clone() }
    }

    /// Sets the header that carries the key, and further headers to send with every request.
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
        ProviderError::new(kind, &*self.provider, &*self.model, what)
    }

    /// Sends a request without retrying.
    pub(super) async fn ask_only_once(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        until: Instant,
    ) -> Result<Response, ProviderError> {
        match timeout_at(until, self.ask_once(url, body)).await {
            Ok(asked) => asked.map(|(response, _)| response).map_err(|failed| failed.error),
            Err(_) => Err(self.late()),
        }
    }

    /// Sends a POST request with the JSON `body`, or a GET request if there is none. Retries until
    /// the server accepts, the failure is final, the attempts are used up, or the time is up. Also
    /// returns the key that was sent, because the server's messages may repeat it.
    pub(super) async fn ask(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        until: Instant,
        on_wait: &OnWait,
    ) -> Result<(Response, Option<Secret>), ProviderError> {
        let (mut wait, mut attempt, mut may_reopen) = (FIRST_WAIT, 0, true);
        let mut before = String::new();
        loop {
            let asked = timeout_at(until, self.ask_once(url, body.clone())).await;
            let Failed { error, again, is_closed } = match asked {
                Ok(Ok(answered)) => return Ok(answered),
                Ok(Err(failed)) => failed,
                Err(_) => {
                    let late = self.late();
                    let what = format!("{before}{}", late.what);
                    return Err(ProviderError { what, ..late });
                }
            };
            before = format!("{}; when asked again, ", error.what);
            if is_closed && may_reopen {
                may_reopen = false;
                continue;
            }
            attempt += 1;
            let goes_on = match again {
                Again::Never => false,
                Again::Soon => attempt < ATTEMPTS,
                Again::UntilReady => true,
            };
            let pause = error.retry_after.map_or(wait, |pause| pause.max(FIRST_WAIT));
            // The sum of now and the server's pause could overflow.
            let left = until.saturating_duration_since(Instant::now());
            if !goes_on || pause >= left {
                return Err(error);
            }
            // Leaves out the error's advice, which may be to try again.
            let ProviderError { provider, what, .. } = &error;
            let pause_s = pause.as_secs_f64();
            on_wait.tell(&format!("{provider}: {what}; trying again in {pause_s:.1} s"));
            sleep(pause).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Reads a whole answer of at most `limit` bytes.
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

    /// Returns the error of an answer that did not arrive in time.
    pub(super) fn late(&self) -> ProviderError {
        self.error(ErrorKind::Unavailable, "no answer came in time")
    }

    async fn ask_once(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(Response, Option<Secret>), Failed> {
        let key = self.key().await?;
        let client = self.shared.client.get_or_try_init(|| async { client(url) }).await;
        let client = client.map_err(|error| {
            let what = format!("cannot set up connections: {}", deepest(&error));
            self.error(ErrorKind::Unconfigured, what)
        })?;
        let request = match body {
            Some(body) => client.post(url).body(body),
            None => client.get(url),
        };
        let request = request.headers(self.headers(key.as_ref())?);
        let response = request.send().await.map_err(|error| {
            let is_closed = error.is_request() && !error.is_connect() && !error.is_timeout();
            Failed { error: self.broken(error), again: Again::Soon, is_closed }
        })?;
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
            let what = "the key has characters that a header cannot contain";
            let mut value = value.map_err(|_| self.error(ErrorKind::Unconfigured, what))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    async fn refused(&self, mut response: Response, key: Option<Secret>) -> Failed {
        let status = response.status().as_u16();
        let pause = response.headers().get(RETRY_AFTER).and_then(wanted_pause);
        let (mut body, mut is_cut) = (Vec::new(), true);
        while body.len() <= LONGEST_REFUSAL {
            // A refusal that breaks off is still useful.
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
        let refusal = Refusal::read(status, &body, pause, key.as_ref());
        let Refusal { kind, said, overflow, pause, again } = refusal;
        if kind == ErrorKind::Authentication {
            // The command or the variable may return another key next time.
            *self.shared.key.lock().await = None;
        }
        let told = if said.is_empty() { String::new() } else { format!(": {said}") };
        let error = self.error(kind, format!("it answered {status}{told}"));
        let error = ProviderError { retry_after: pause, overflow: overflow.map(Box::new), ..error };
        Failed { error, again, is_closed: false }
    }

    /// Returns the error of a failed connection. Leaves out reqwest's mention of the address, which
    /// is long.
    pub(super) fn broken(&self, error: reqwest::Error) -> ProviderError {
        let what = format!("the connection failed: {}", deepest(&error.without_url()));
        self.error(ErrorKind::Unavailable, what)
    }
}

/// Returns the innermost cause of an error, which is the most specific.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    deepest.to_string()
}

fn client(url: &str) -> reqwest::Result<Client> {
    // Only the first call in a process has an effect. All calls install the same cryptography.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = match url.starts_with("https:") {
        true => Client::builder(),
        // A local server must not depend on the system's certificates, which may not exist.
        false => Client::builder().tls_certs_only([]),
    };
    builder
        .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        // Redirects are not followed: a key is only for the server it was given for.
        .redirect(redirect::Policy::none())
        .build()
}
