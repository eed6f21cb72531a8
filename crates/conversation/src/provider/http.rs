//! HTTP requests to one server: keys, retries, and the meaning of refusals.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use reqwest::{Client, ClientBuilder, Proxy, StatusCode, Url, redirect};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::attempts::{Attempts, FailedAttempt, LATE};
use super::chat::OnWait;
use super::error::{ErrorKind, ProviderError};
use super::network::{Answered, Connections, CurrentConnections};
use super::origin::{NO_PROXY, Serving};
use super::refusal::{RetryPolicy, ServerRefusal, in_a_line, wanted_pause};
use super::secret::{KeySource, RequestSecrets, Secret};
use super::trusted;
use crate::visible::visible_path;

/// Maximum number of redirects to follow.
const MOST_REDIRECTS: usize = 5;
/// Maximum time to establish a connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a refusal to read.
const LONGEST_REFUSAL: usize = 16 << 10;

/// A server and one of its models.
#[derive(Clone)]
pub(super) struct Endpoint {
    provider: String,
    model: String,
    source: KeySource,
    /// Header that carries the key.
    key_header: String,
    /// Headers that the interface needs.
    headers: &'static [(&'static str, &'static str)],
    serving: Arc<Serving>,
    shared: Arc<SharedServer>,
}

/// What is sent with each request and shown nowhere.
#[derive(Clone, Default)]
struct SentSecrets {
    key: Option<Secret>,
    /// Values of the user's headers, by the names.
    headers: Vec<(String, Secret)>,
}

impl SentSecrets {
    fn secrets(&self) -> RequestSecrets {
        RequestSecrets::new(self.headers.iter().map(|(_, value)| value).chain(&self.key))
    }
}

/// The state that all models of one server share.
#[derive(Default)]
struct SharedServer {
    /// The key and the values of headers, once they are known. Locked while they are fetched,
    /// because a command that asks for a passphrase must not run twice at the same time.
    sent: Mutex<Option<SentSecrets>>,
    /// Connections, made on first use because loading the system's certificates takes a while.
    connections: CurrentConnections,
}

impl Endpoint {
    pub(super) fn new(provider: String, model: String, source: KeySource) -> Self {
        Self {
            provider,
            model,
            source,
            key_header: AUTHORIZATION.as_str().to_owned(),
            headers: &[],
            serving: Arc::default(),
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
        key_header: &str,
        headers: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self { key_header: key_header.to_owned(), headers, ..self }
    }

    /// Sets how the server is asked.
    pub(super) fn serving(self, serving: Arc<Serving>) -> Self {
        let key_header = serving.key_header.clone().unwrap_or(self.key_header);
        Self { key_header, serving, ..self }
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
    ) -> Result<Answered, ProviderError> {
        match timeout_at(until, self.ask_once(url, body)).await {
            Ok(asked) => asked.map(|(response, _)| response).map_err(|failed| failed.error),
            Err(_) => Err(self.late()),
        }
    }

    /// Sends a POST request with the JSON `body`, or a GET request if there is none, and tries again
    /// as [`Attempts`] says. Also returns the secrets that were sent, because the server's
    /// messages may repeat them.
    pub(super) async fn ask(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        until: Instant,
        on_wait: &OnWait,
    ) -> Result<(Answered, RequestSecrets), ProviderError> {
        let mut attempts = Attempts::new(until, self.serving.retries);
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
        mut response: Answered,
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

    /// Sends a request once. If the server refuses a key, and the key or a header comes from a
    /// command, all are fetched again and sent.
    pub(super) async fn ask_once(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
    ) -> Result<(Answered, RequestSecrets), FailedAttempt> {
        let sent = self.sent().await?;
        match self.send(url, body.clone(), &sent).await {
            Err(FailedAttempt { status: Some(401), .. }) if self.has_command() => {}
            answered => return answered.map(|response| (response, sent.secrets())),
        }
        let newer = self.sent().await?;
        let answered = self.send(url, body, &newer).await;
        answered.map(|response| (response, newer.secrets()))
    }

    fn has_command(&self) -> bool {
        let headers = self.serving.headers.iter().map(|(_, source)| source);
        headers.chain([&self.source]).any(|source| matches!(source, KeySource::Command(_)))
    }

    async fn send(
        &self,
        url: &str,
        body: Option<Vec<u8>>,
        sent: &SentSecrets,
    ) -> Result<Answered, FailedAttempt> {
        let headers = self.headers(sent)?;
        let current = &self.shared.connections;
        let connections = current.get(|| self.connections(url))?;
        let asked = current.ask(&connections, |client| {
            let request = match body {
                Some(body) => client.post(url).body(body),
                None => client.get(url),
            };
            request.headers(headers).send()
        });
        let response = asked.await.map_err(|error| {
            let is_closed = error.is_request() && !error.is_connect() && !error.is_timeout();
            FailedAttempt {
                is_closed,
                ..FailedAttempt::from(self.broken(error)).with(RetryPolicy::Soon)
            }
        })?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(self.refused(response, &sent.secrets(), url).await),
        }
    }

    async fn sent(&self) -> Result<SentSecrets, ProviderError> {
        let mut known = self.shared.sent.lock().await;
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let failed = |why: String| self.error(ErrorKind::Unconfigured, why);
        let mut sent =
            SentSecrets { key: self.source.key().await.map_err(failed)?, headers: Vec::new() };
        for (name, source) in &self.serving.headers {
            let value = source.fetch(&format!("header {name}: command")).await;
            sent.headers.extend(value.map_err(failed)?.map(|value| (name.clone(), value)));
        }
        Ok(known.insert(sent).clone())
    }

    fn headers(&self, sent: &SentSecrets) -> Result<HeaderMap, ProviderError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // A stream must not wait until a part of it is worth compressing. Answers that are
        // compressed all the same are read.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in self.headers {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let is_bearer = self.key_header == AUTHORIZATION.as_str();
        let key = sent.key.iter().map(|key| match is_bearer {
            true => (&self.key_header, format!("Bearer {}", key.reveal())),
            false => (&self.key_header, key.reveal().to_owned()),
        });
        let own = sent.headers.iter().map(|(name, value)| (name, value.reveal().to_owned()));
        for (name, text) in key.chain(own) {
            let wrong = || {
                let what = format!(
                    "the value of the header {name} has characters that a header cannot have"
                );
                self.error(ErrorKind::Unconfigured, what)
            };
            let mut value = HeaderValue::from_str(&text).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
        }
        Ok(headers)
    }

    async fn refused(
        &self,
        mut response: Answered,
        secrets: &RequestSecrets,
        url: &str,
    ) -> FailedAttempt {
        let status = response.status();
        let pause = wanted_pause(response.headers());
        let location = response.headers().get(LOCATION).and_then(|at| at.to_str().ok());
        let place = match (status.is_redirection(), location) {
            (true, Some(location)) => format!(", which points to {}", in_a_line(location, secrets)),
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
        if is_cut {
            body = secrets.hidden_in_beginning(&body);
        }
        let status = status.as_u16();
        let refusal = ServerRefusal::read(status, &body, pause, secrets);
        if refusal.kind == ErrorKind::Authentication {
            // The command or the variable may return another key next time.
            *self.shared.sent.lock().await = None;
        }
        let told = if refusal.said.is_empty() { "" } else { ": " };
        let what = format!("it answered {status}{place}{told}{}", refusal.said);
        FailedAttempt { status: Some(status), ..self.failed(refusal, what) }
    }

    /// Returns the failure of a refusal, told as `what`.
    pub(super) fn failed(&self, refusal: ServerRefusal, what: String) -> FailedAttempt {
        let error = ProviderError {
            retry_after: refusal.pause,
            overflow: refusal.overflow.map(Box::new),
            ..self.error(refusal.kind, what)
        };
        let (again, refusal) = (refusal.again, Some(Box::new(refusal)));
        FailedAttempt { error, again, is_closed: false, status: None, refusal }
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
    fn connections(&self, url: &str) -> Result<Connections, ProviderError> {
        let wrong = |what: String| self.error(ErrorKind::Unconfigured, what);
        let file = self.serving.ca_file.as_deref();
        let named = file.map_or(Ok(Vec::new()), |file| {
            let failed = |why| wrong(format!("ca-file {}: {why}", visible_path(file)));
            trusted::read(file).map_err(failed)
        })?;
        // A local server must not depend on the system's certificates, which may not exist.
        let config = match url.starts_with("https:") {
            true => trusted::config(named),
            false => trusted::none(),
        };
        let config = config.map_err(|error| wrong(deepest(&error)))?;
        let built = self
            .with_proxy(Client::builder().tls_backend_preconfigured(config), url)
            .map_err(wrong)?
            .user_agent(concat!("contexture/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIME)
            .redirect(redirect::Policy::custom(redirected))
            .build();
        let failed = |why: String| wrong(format!("cannot set up connections: {why}"));
        let client = built.map_err(|error| failed(deepest(&error)))?;
        Connections::open(client).map_err(|error| failed(error.to_string()))
    }

    /// Sets the proxy that the user gives. What the environment says does not apply to servers on
    /// this machine.
    fn with_proxy(&self, builder: ClientBuilder, url: &str) -> Result<ClientBuilder, String> {
        match self.serving.proxy.as_deref() {
            Some(NO_PROXY) => Ok(builder.no_proxy()),
            Some(proxy) => match Proxy::all(proxy) {
                Ok(proxy) => Ok(builder.proxy(proxy)),
                Err(error) => Err(format!("proxy {proxy}: {}", deepest(&error))),
            },
            None if is_loopback(url) => Ok(builder.no_proxy()),
            None => Ok(builder),
        }
    }
}

/// Follows a redirect only if it keeps the method and the body, and leads to the same server. A key
/// is only for the server that it was given for.
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
