//! Models on servers: any [`Family`] over HTTP, decoded as the answer arrives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};

use super::abilities::listed;
use super::address::{ServerAddress, key_header};
use super::attempts::{Attempts, FailedAttempt};
use super::chat::{AnswerStream, ChatProvider, Limit, OnWait, Request};
use super::error::{ErrorKind, ProviderError};
use super::family::{AnswerReader, Family};
use super::http::Endpoint;
use super::learned::{LearnedChanges, MOST_CHANGES};
use super::limits::{LimitAddress, places};
use super::listed::ModelListing;
use super::normal::{MessageForm, normal};
use super::origin::Serving;
use super::reply::{FROM, HttpReply, Times};
use super::secret::KeySource;
use super::{Answer, MAX_MODEL_LIST_BYTES};

/// Time limit for getting a list of models or the limit of a model.
const LIST_TIME: Duration = Duration::from_secs(20);

/// A model on a server.
#[derive(Clone)]
pub struct HttpProvider {
    endpoint: Arc<Endpoint>,
    family: Family,
    url: String,
    address: ServerAddress,
    times: Times,
    serving: Arc<Serving>,
    known: Arc<Mutex<LearnedOfServer>>,
}

/// What the server's answers have taught, for all its models.
#[derive(Default)]
struct LearnedOfServer {
    /// True if the address needs the version.
    needs_version: bool,
    /// By the name of the model.
    models: HashMap<String, LearnedChanges>,
}

impl HttpProvider {
    /// Creates a provider. `name` is for messages; `url` is the address, such as
    /// [`Family::usual_url`].
    pub fn new(family: Family, name: &str, url: &str, model: &str, key: KeySource) -> Self {
        let endpoint = Endpoint::new(name.to_owned(), model.to_owned(), key)
            .with_headers(key_header(family, url, None), family.facts().headers);
        let (endpoint, address) = (Arc::new(endpoint), ServerAddress::new(family, url, None));
        let (url, times, known) = (url.to_owned(), Times::default(), Arc::default());
        Self { endpoint, family, url, address, times, serving: Arc::default(), known }
    }

    /// Sets how the server is asked.
    #[must_use]
    pub fn serving(self, serving: Serving) -> Self {
        let (usual, version) = (Times::default(), serving.api_version.as_deref());
        let seconds = |said: Option<u64>, usual| said.map_or(usual, Duration::from_secs);
        let times = Times {
            begin: seconds(serving.first_byte, usual.begin),
            silence: seconds(serving.silence, usual.silence),
            ..usual
        };
        let address = ServerAddress::new(self.family, &self.url, version);
        let header = key_header(self.family, &self.url, version);
        let serving = Arc::new(serving);
        let endpoint =
            Endpoint::clone(&self.endpoint).with_headers(header, self.family.facts().headers);
        let endpoint = Arc::new(endpoint.serving(Arc::clone(&serving)));
        Self { endpoint, address, times, serving, ..self }
    }

    /// Sets the time limits.
    #[must_use]
    pub fn waiting(self, times: Times) -> Self {
        Self { times, ..self }
    }
}

impl ChatProvider for HttpProvider {
    fn name(&self) -> &str {
        self.endpoint.provider()
    }

    fn model(&self) -> &str {
        self.endpoint.model()
    }

    fn with_model(&self, model: &str) -> Arc<dyn ChatProvider> {
        Arc::new(Self { endpoint: Arc::new(self.endpoint.with_model(model)), ..self.clone() })
    }

    fn takes_pdf(&self) -> bool {
        let facts = self.family.facts();
        // Most servers that imitate OpenAI's do not.
        let by_kind = || facts.takes_pdf.unwrap_or(self.url == facts.usual_url);
        self.learned().takes_pdf().unwrap_or_else(by_kind)
    }

    fn payload(&self, request: &Request) -> String {
        self.body(request).to_string()
    }

    fn models(&self) -> Answer<'_, Vec<ModelListing>> {
        Box::pin(self.list())
    }

    fn limit(&self) -> Answer<'_, Option<Limit>> {
        Box::pin(self.find_limit())
    }

    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>> {
        Box::pin(async move {
            let until = Instant::now() + self.times.begin;
            let mut attempts = Attempts::new(until, self.serving.retries);
            loop {
                match self.begin(request, until).await {
                    Ok(reply) => return Ok(Box::new(reply) as Box<dyn AnswerStream>),
                    Err(failed) => attempts.wait(failed, &request.on_wait).await?,
                }
            }
        })
    }
}

impl HttpProvider {
    fn known(&self) -> MutexGuard<'_, LearnedOfServer> {
        // A panic cannot leave what is known inconsistent: each change is one assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learned(&self) -> LearnedChanges {
        self.known().models.get(self.endpoint.model()).cloned().unwrap_or_default()
    }

    fn address(&self) -> ServerAddress {
        match self.known().needs_version {
            true => self.address.with_version(),
            false => self.address.clone(),
        }
    }

    /// Returns the name of this model of this server, to tell apart who sent opaque data.
    fn origin(&self) -> String {
        let named = format!("{}\n{}\n{}", self.family.name(), self.url, self.endpoint.model());
        let digest = Sha256::digest(named.as_bytes());
        digest.iter().take(8).fold(String::new(), |name, byte| name + &format!("{byte:02x}"))
    }

    fn body(&self, request: &Request) -> Value {
        let (learned, origin) = (self.learned(), self.origin());
        let mut request = request.clone();
        for said in &mut request.messages {
            said.opaque.take_if(|opaque| opaque[FROM] != *origin);
        }
        let serving = &self.serving;
        request.temperature = request.temperature.or(serving.temperature);
        request.top_p = request.top_p.or(serving.top_p);
        request.effort = request.effort.or(serving.effort);
        learned.change(&mut request);
        let form = MessageForm { takes_calls: learned.takes_calls(&request), ..self.family.form() };
        let mut request = normal(&request, form);
        learned.change_normal(&mut request);
        let model = self.endpoint.model();
        let mut body = self.family.body(&self.url, model, &request, serving.context);
        serving.extra.iter().for_each(|(name, value)| add(&mut body[name], value));
        learned.change_body(&mut body);
        body
    }

    /// Asks, and waits until the answer has begun. Learns from refusals, and asks again in the form
    /// that the server wants.
    async fn begin(&self, request: &Request, until: Instant) -> Result<HttpReply, FailedAttempt> {
        let mut changes = 0;
        loop {
            let body = self.body(request);
            let failed = match self.begin_with(&body, until).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let phrase = self.learn(&failed, &body).filter(|_| changes < MOST_CHANGES);
            let Some(phrase) = phrase else { return Err(failed) };
            changes += 1;
            let ProviderError { provider, what, .. } = &failed.error;
            request.on_wait.tell(&format!("{provider}: {what}; {phrase}"));
        }
    }

    fn learn(&self, failed: &FailedAttempt, body: &Value) -> Option<&'static str> {
        let refusal = failed.refusal.as_ref()?;
        let mut known = self.known();
        let model = self.endpoint.model().to_owned();
        if let Some(phrase) =
            known.models.entry(model).or_default().learn(self.family, refusal, body)
        {
            return Some(phrase);
        }
        let is_nowhere =
            matches!(failed.status, Some(404 | 405)) && !refusal.words.contains("model");
        let is_new = is_nowhere && self.address.may_lack_version() && !known.needs_version;
        known.needs_version |= is_new;
        is_new.then_some("asking again with /v1 in the address")
    }

    async fn begin_with(&self, body: &Value, until: Instant) -> Result<HttpReply, FailedAttempt> {
        let url = self.address().chat(self.endpoint.model());
        let asked = self.endpoint.ask_once(&url, Some(body.to_string().into_bytes()));
        let (response, secrets) = timeout_at(until, asked)
            .await
            .map_err(|_| FailedAttempt::from(self.endpoint.late()))??;
        let stamp = jiff::Timestamp::now().as_millisecond();
        let reader = AnswerReader::new(self.family, stamp, self.serving.thinks);
        let mut reply = HttpReply::new(
            Arc::clone(&self.endpoint),
            self.origin(),
            response,
            secrets,
            reader,
            self.times,
        );
        reply.begin(until).await?;
        Ok(reply)
    }

    /// Notes what a list of models says of this one.
    fn note_abilities(&self, models: &[ModelListing]) {
        let own = models.iter().find(|listed| listed.name == self.endpoint.model());
        if let Some(ModelListing { name, pdf: Some(takes), .. }) = own {
            self.known().models.entry(name.clone()).or_default().pdf = Some(*takes);
        }
    }

    /// Asks each address that may report a limit until one does.
    async fn find_limit(&self) -> Result<Option<Limit>, ProviderError> {
        let model = self.endpoint.model();
        let until = Instant::now() + LIST_TIME;
        for LimitAddress { url, body, read } in places(self.family, &self.address(), model) {
            let body = body.map(|body| body.to_string().into_bytes());
            let answer = match self.endpoint.ask_only_once(&url, body, until).await {
                Ok(response) => self.endpoint.whole(response, MAX_MODEL_LIST_BYTES, until).await?,
                Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
                Err(_) => continue,
            };
            let (family, named) = (self.family, model.to_owned());
            let (models, limit) = apart(answer, move |said| {
                (listed(family, said).ok().flatten(), read(said, &named))
            })
            .await
            .unwrap_or_default();
            self.note_abilities(&models.unwrap_or_default());
            if limit.is_some() {
                return Ok(limit);
            }
        }
        Ok(None)
    }

    async fn list(&self) -> Result<Vec<ModelListing>, ProviderError> {
        let until = Instant::now() + LIST_TIME;
        let (address, on_wait) = (self.address(), OnWait::default());
        let mut asked = self.endpoint.ask(&address.models(), None, until, &on_wait).await;
        if address.may_lack_version()
            && let Err(ProviderError { kind: ErrorKind::BadRequest, .. }) = &asked
        {
            let other = address.with_version().models();
            asked = self.endpoint.ask(&other, None, until, &on_wait).await.or(asked);
        }
        let (response, secrets) = asked?;
        let answer = self.endpoint.whole(response, MAX_MODEL_LIST_BYTES, until).await?;
        let family = self.family;
        let wrong = |what: String| self.endpoint.error(ErrorKind::Malformed, what);
        let models = apart(answer, move |said| listed(family, said)).await.unwrap_or(Ok(None));
        let mut models = models
            .map_err(wrong)?
            .ok_or_else(|| wrong("the answer is not a list of models".to_owned()))?;
        models.iter_mut().for_each(|model| model.name = secrets.hidden_whole(&model.name));
        self.note_abilities(&models);
        match address.is_deployed() {
            true => Ok(vec![ModelListing::named(self.endpoint.model())]),
            false => Ok(models),
        }
    }
}

/// Parses and reads an answer on another thread, since a long one takes a while. Returns `None` if
/// the program ends.
async fn apart<T: Send + 'static>(
    answer: Vec<u8>,
    read: impl FnOnce(&Value) -> T + Send + 'static,
) -> Option<T> {
    let work = move || read(&serde_json::from_slice(&answer).unwrap_or_default());
    tokio::task::spawn_blocking(work).await.ok()
}

/// Adds a value to a member. The members of an object are added one by one; any other value
/// replaces the old one.
fn add(member: &mut Value, value: &Value) {
    match (member, value) {
        (Value::Object(known), Value::Object(more)) => {
            for (name, value) in more {
                add(known.entry(name).or_insert(Value::Null), value);
            }
        }
        (member, value) => *member = value.clone(),
    }
}
