//! HTTP requests to one server: keys, retries, and the meaning of refusals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Certificate, Client, Response, StatusCode, Url, redirect};
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, timeout_at};

use super::attempts::{Attempts, Failed, LATE};
use super::chat::OnWait;
use super::error::{ErrorKind, ProviderError};
use super::refusal::{Again, Refusal, in_a_line, wanted_pause};
use super::secret::{KeySource, Secret};
use crate::visible::visible_path;

/// Maximum number of redirects to follow.
const MOST_REDIRECTS: usize = 5;
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
    /// File with further certificates to trust.
    ca_file: Option<PathBuf>,
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

impl Endpoint {
    pub(super) fn new(provider: String, model: String, source: KeySource) -> Self {
        Self {
            provider,
            model,
            source,
            key_header: KeyHeader::Bearer,
            headers: &[],
            ca_file: None,
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

    /// Sets the file with further certificates to trust.
    pub(super) fn trusting(self, ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, ..self }
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

    /// Sends a POST request with the JSON `body`, or a GET request if there is none, and tries again
    /// as [`Attempts`] says. Also returns the key that was sent, because the server's
    /// messages may repeat it.
    pub(super) async fn ask(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        until: Instant,
        on_wait: &OnWait,
    ) -> Result<(Response, Option<Secret>), ProviderError> {
        let mut attempts = Attempts::new(until);
        loop {
            let asked = timeout_at(until, self.ask_once(url, body.clone())).await;
            match asked.unwrap_or_else(|_| Err(self.late().into())) {
                Ok(answered) => return Ok(answered),
                Err(failed) => attempts.wait(failed, on_wait).await?,
            }
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
        self.error(ErrorKind::Unavailable, LATE)
    }

    /// Sends a request once. A key from a command that the server refuses is fetched again, and
    /// sent if it is another one.
    pub(super) async fn ask_once(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(Response, Option<Secret>), Failed> {
        let key = self.key().await?;
        match self.send(url, body.clone(), key.as_ref()).await {
            Err(Failed { status: Some(401), .. })
                if matches!(self.source, KeySource::Command(_)) => {}
            sent => return sent.map(|response| (response, key)),
        }
        let newer = self.key().await?;
        let sent = self.send(url, body, newer.as_ref()).await;
        sent.map(|response| (response, newer))
    }

    async fn send(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        key: Option<&Secret>,
    ) -> Result<Response, Failed> {
        let client = self.shared.client.get_or_try_init(|| async { self.client(url) }).await?;
        let request = match body {
            Some(body) => client.post(url).body(body),
            None => client.get(url),
        };
        let request = request.headers(self.headers(key)?);
        let response = request.send().await.map_err(|error| {
            let is_closed = error.is_request() && !error.is_connect() && !error.is_timeout();
            Failed { is_closed, ..Failed::from(self.broken(error)).with(Again::Soon) }
        })?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.refused(response, key, url).await),
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
        // A stream must not wait until a part of it is worth compressing. Answers that are
        // compressed all the same are read.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
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

    async fn refused(&self, mut response: Response, key: Option<&Secret>, url: &str) -> Failed {
        let status = response.status();
        let pause = wanted_pause(response.headers());
        let location = response.headers().get(LOCATION).and_then(|at| at.to_str().ok());
        let place = match (status.is_redirection(), location) {
            (true, Some(location)) => format!(", which points to {}", in_a_line(location, key)),
            _ if matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) => {
                format!(" at {}", url.split('?').next().unwrap_or_default())
            }
            _ => String::new(),
        };
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
        if let Some(key) = key.filter(|_| is_cut) {
            body = key.hidden_in_beginning(&body);
        }
        let status = status.as_u16();
        let refusal = Refusal::read(status, &body, pause, key);
        if refusal.kind == ErrorKind::Authentication {
            // The command or the variable may return another key next time.
            *self.shared.key.lock().await = None;
        }
        let told = if refusal.said.is_empty() { "" } else { ": " };
        let what = format!("it answered {status}{place}{told}{}", refusal.said);
        Failed { status: Some(status), ..self.failed(refusal, what) }
    }

    /// Returns the failure of a refusal, told as `what`.
    pub(super) fn failed(&self, refusal: Refusal, what: String) -> Failed {
        let error = ProviderError {
            retry_after: refusal.pause,
            overflow: refusal.overflow.map(Box::new),
            ..self.error(refusal.kind, what)
        };
        let (again, refusal) = (refusal.again, Some(Box::new(refusal)));
        Failed { error, again, is_closed: false, status: None, refusal }
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

impl Endpoint {
    fn client(&self, url: &str) -> Result<Client, ProviderError> {
        let wrong = |what: String| self.error(ErrorKind::Unconfigured, what);
        // Only the first call in a process has an effect. All calls install the same cryptography.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = match url.starts_with("https:") {
            true => Client::builder(),
            // A local server must not depend on the system's certificates, which may not exist.
            false => Client::builder().tls_certs_only([]),
        };
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        if let Some(file) = &self.ca_file {
            let failed = |why: String| wrong(format!("ca-file {}: {why}", visible_path(file)));
            let text = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
            let found =
                Certificate::from_pem_bundle(&text).map_err(|error| failed(deepest(&error)))?;
            if found.is_empty() {
                return Err(failed("it has no certificates".to_owned()));
            }
            builder = builder.tls_certs_merge(found);
        }
        let built = builder
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME)
            .redirect(redirect::Policy::custom(redirected))
            .build();
        built.map_err(|error| wrong(format!("cannot set up connections: {}", deepest(&error))))
    }
}

/// Follows a redirect that keeps method and body, and only on the same server: a key is only for
/// the server it was given for.
fn redirected(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
    let is_same = |one: &Url| one.origin() == attempt.url().origin();
    let follows = keeps.contains(&attempt.status())
        && attempt.previous().len() <= MOST_REDIRECTS
        && attempt.previous().iter().all(is_same);
    if follows { attempt.follow() } else { attempt.stop() }
}

/// Returns whether an address is on this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_named = host == "localhost" || host.ends_with(".localhost");
    is_named || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
