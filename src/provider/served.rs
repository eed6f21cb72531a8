//! Models on servers: any [`Family`] over HTTP, decoded as the answer arrives.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::Answer;
use super::chat::{Limit, OnWait, Provider, Reply, Request, StreamEvent};
use super::error::{ErrorKind, ProviderError};
use super::family::{Broken, Decoder, Family};
use super::http::Endpoint;
use super::limits::{Place, places};
use super::lines::Unframer;
use super::normal::normal;
use super::overflow::Overflow;
use super::secret::{KeySource, Secret};
use super::{MAX_ANSWER_BYTES, MAX_MODEL_LIST_BYTES};

/// Maximum length of an answer in bytes. A stream has about two hundred bytes for each token.
const LONGEST_ANSWER: usize = 64 << 20;
/// Maximum number of commas and opening brackets in one piece, which bounds the memory for its
/// JSON.
const MOST_DATA: usize = 500_000;

/// Time limit for getting a list of models or the limit of a model.
const LIST_TIME: Duration = Duration::from_secs(20);

/// Time to wait for the connection to end after a complete answer.
const FAREWELL: Duration = Duration::from_millis(50);

/// Time limits for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Maximum time for an answer to begin, over all attempts. A local server may have to load the
    /// model first.
    pub begin: Duration,
    /// Maximum time between two parts of an answer.
    pub silence: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { begin: Duration::from_secs(180), silence: Duration::from_secs(120) }
    }
}

/// A model on a server.
pub struct HttpProvider {
    endpoint: Arc<Endpoint>,
    family: Family,
    base: String,
    times: Times,
    /// Window size in tokens that the server should provide.
    context: Option<u64>,
    /// True once the model has refused a temperature: several models accept only their default.
    takes_no_temperature: AtomicBool,
}

impl HttpProvider {
    /// Creates a provider. `name` is for messages; `base` is the address, such as
    /// [`Family::usual_url`].
    pub fn new(family: Family, name: &str, base: &str, model: &str, key: KeySource) -> Self {
        let endpoint = Endpoint::new(name.to_owned(), model.to_owned(), key)
            .with_headers(family.key_header(), family.headers());
        let (endpoint, base) = (Arc::new(endpoint), base.to_owned());
        let takes_no_temperature = AtomicBool::new(false);
        let times = Times::default();
        Self { endpoint, family, base, times, context: None, takes_no_temperature }
    }

    /// Requests a window of this many tokens. Only Ollama supports such a request; without one,
    /// Ollama silently cuts off everything beyond its default window.
    #[must_use]
    pub fn with_context(self, context: Option<u64>) -> Self {
        Self { context, ..self }
    }

    /// Sets the time limits.
    #[must_use]
    pub fn waiting(self, times: Times) -> Self {
        Self { times, ..self }
    }
}

impl Provider for HttpProvider {
    fn name(&self) -> &str {
        self.endpoint.provider()
    }

    fn model(&self) -> &str {
        self.endpoint.model()
    }

    fn with_model(&self, model: &str) -> Arc<dyn Provider> {
        Arc::new(Self {
            endpoint: Arc::new(self.endpoint.with_model(model)),
            family: self.family,
            base: self.base.clone(),
            times: self.times,
            context: self.context,
            takes_no_temperature: AtomicBool::new(false),
        })
    }

    fn payload(&self, request: &Request) -> String {
        let mut request = normal(request, self.family.form());
        if self.takes_no_temperature.load(Ordering::Relaxed) {
            request.temperature = None;
        }
        let model = self.endpoint.model();
        self.family.body(&self.base, model, &request, self.context).to_string()
    }

    fn models(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.list())
    }

    fn limit(&self) -> Answer<'_, Option<Limit>> {
        Box::pin(self.find_limit())
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn Reply>> {
        Box::pin(async move {
            let url = self.family.address(&self.base, self.endpoint.model());
            let until = Instant::now() + self.times.begin;
            let body = || Some(self.payload(request).into_bytes());
            let ask = || self.endpoint.ask(&url, body(), until, &request.on_wait);
            let mut answered = ask().await;
            if answered.as_ref().is_err_and(|error| self.is_about_temperature(error, request)) {
                self.takes_no_temperature.store(true, Ordering::Relaxed);
                answered = ask().await;
            }
            let (response, key) = answered?;
            let reply: Box<dyn Reply> = Box::new(HttpReply {
                endpoint: Arc::clone(&self.endpoint),
                response: Some(response),
                key,
                unframer: Unframer::new(self.family.framing()),
                decoder: self.family.decoder(jiff::Timestamp::now().as_millisecond()),
                pieces: VecDeque::new(),
                silence: self.times.silence,
                bytes: 0,
                said: 0,
                failure: None,
                stopped: false,
            });
            Ok(reply)
        })
    }
}

impl HttpProvider {
    fn is_about_temperature(&self, error: &ProviderError, request: &Request) -> bool {
        request.temperature.is_some()
            && error.kind == ErrorKind::BadRequest
            && error.what.to_lowercase().contains("temperature")
            && !self.takes_no_temperature.load(Ordering::Relaxed)
    }

    /// Asks each address that may report a limit until one does.
    async fn find_limit(&self) -> Result<Option<Limit>, ProviderError> {
        let model = self.endpoint.model();
        let until = Instant::now() + LIST_TIME;
        for Place { url, body, read } in places(self.family, &self.base, model) {
            let body = body.map(|body| body.to_string().into_bytes());
            let answer = match self.endpoint.ask_only_once(&url, body, until).await {
                Ok(response) => self.endpoint.whole(response, MAX_MODEL_LIST_BYTES, until).await?,
                Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
                Err(_) => continue,
            };
            let said = serde_json::from_slice(&answer).unwrap_or_default();
            if let Some(limit) = read(&said, model) {
                return Ok(Some(limit));
            }
        }
        Ok(None)
    }

    async fn list(&self) -> Result<Vec<String>, ProviderError> {
        let url = self.family.models_address(&self.base);
        let until = Instant::now() + LIST_TIME;
        let (response, _) = self.endpoint.ask(&url, None, until, &OnWait::default()).await?;
        let answer = self.endpoint.whole(response, MAX_MODEL_LIST_BYTES, until).await?;
        let said = serde_json::from_slice(&answer).unwrap_or_default();
        self.family.models(&said).ok_or_else(|| {
            self.endpoint.error(ErrorKind::Malformed, "the answer is not a list of models")
        })
    }
}

struct HttpReply {
    endpoint: Arc<Endpoint>,
    /// The connection; `None` once nothing more will be read, which closes it.
    response: Option<Response>,
    /// Key that was sent, to be removed from the server's error messages.
    key: Option<Secret>,
    unframer: Unframer,
    decoder: Box<dyn Decoder>,
    pieces: VecDeque<StreamEvent>,
    silence: Duration,
    bytes: usize,
    /// Number of bytes of text, reasoning and calls so far; at most [`MAX_ANSWER_BYTES`].
    said: usize,
    failure: Option<ProviderError>,
    /// True once the answer is complete, even if the connection is still open.
    stopped: bool,
}

impl Reply for HttpReply {
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>> {
        Box::pin(async move {
            loop {
                // Pieces that came before a failure are returned first.
                if let Some(piece) = self.pieces.pop_front() {
                    return Ok(Some(piece));
                }
                if let Some(failure) = &self.failure {
                    return Err(failure.clone());
                }
                if self.response.is_none() {
                    return Ok(None);
                }
                if let Err(failure) = self.read().await {
                    self.response = None;
                    self.failure = Some(failure);
                }
            }
        })
    }
}

impl HttpReply {
    async fn read(&mut self) -> Result<(), ProviderError> {
        let Some(response) = &mut self.response else { return Ok(()) };
        if self.stopped {
            // A connection that is read to its end can be reused.
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            let _ = timeout(FAREWELL, rest).await;
            self.response = None;
            return Ok(());
        }
        let chunk = timeout(self.silence, response.chunk()).await.map_err(|_| {
            let what = format!("nothing more came for {} s", self.silence.as_secs_f64());
            self.endpoint.error(ErrorKind::Unavailable, what)
        })?;
        let chunk = chunk.map_err(|error| self.endpoint.broken(error))?;
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len());
        if self.bytes > LONGEST_ANSWER {
            let what = format!("the answer has more than {LONGEST_ANSWER} bytes");
            return Err(self.endpoint.error(ErrorKind::Malformed, what));
        }
        self.decode(chunk.as_deref())
    }

    /// Decodes a part of the answer, or its end.
    fn decode(&mut self, chunk: Option<&[u8]>) -> Result<(), ProviderError> {
        let mut pieces = Vec::new();
        let mut broken = None;
        let decoder = &mut *self.decoder;
        let mut take = |text: &str| {
            decode_text(decoder, text, &mut pieces).map_err(|failure| {
                let what = failure.what.clone();
                broken = Some(failure);
                what
            })
        };
        let read = match chunk {
            Some(chunk) => self.unframer.push(chunk, &mut take),
            None => self.unframer.end(&mut take),
        };
        let outcome = read.map_err(|what| broken.unwrap_or(Broken::malformed(what)));
        let outcome = match (outcome, chunk) {
            (Ok(()), None) if !decoder.closed(&mut pieces) => {
                let what = "the answer broke off in the middle".to_owned();
                Err(Broken { kind: ErrorKind::Unavailable, what })
            }
            (outcome, _) => outcome,
        };
        self.said += pieces.iter().map(StreamEvent::said).sum::<usize>();
        self.stopped = pieces.iter().any(|piece| matches!(piece, StreamEvent::Stopped(_)));
        if chunk.is_none() {
            self.response = None;
        }
        self.pieces.extend(pieces);
        if outcome.is_ok() && self.said > MAX_ANSWER_BYTES {
            let what = format!(
                "the answer has more than {MAX_ANSWER_BYTES} bytes of text, reasoning and calls"
            );
            return Err(self.endpoint.error(ErrorKind::Malformed, what));
        }
        outcome.map_err(|Broken { kind, what }| {
            let overflow = Overflow::read(&what).filter(|_| kind == ErrorKind::ContextTooLong);
            let what = self.key.as_ref().map_or(what.clone(), |key| key.hidden_in(&what));
            ProviderError { overflow: overflow.map(Box::new), ..self.endpoint.error(kind, what) }
        })
    }
}

fn decode_text(
    decoder: &mut dyn Decoder,
    text: &str,
    pieces: &mut Vec<StreamEvent>,
) -> Result<(), Broken> {
    if decoder.is_end(text, pieces) {
        return Ok(());
    }
    let data = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if data > MOST_DATA {
        let what = format!("a piece of the answer has more than {MOST_DATA} values");
        return Err(Broken::malformed(what));
    }
    let said: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        Broken::malformed(format!("a piece of the answer is not JSON: {error}"))
    })?;
    decoder.take(&said, pieces)
}
