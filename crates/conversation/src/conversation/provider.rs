//! Models for conversations.

use std::fmt;
#[cfg(feature = "providers")]
use std::path::PathBuf;
use std::sync::Arc;
#[cfg(feature = "providers")]
use std::time::Duration;

use super::Error;
use crate::agent::{AvailableModel, Rooms};
use crate::provider::AnswerOrigin;
use crate::provider::chat::ChatProvider;
use crate::provider::scripted::Scripted;
#[cfg(feature = "providers")]
use crate::provider::{
    chat::Effort,
    secret::Secret,
    settings::{Header, ProviderSettings},
};

/// Default name and model of a script.
const SCRIPTED: &str = "scripted";

/// A model to talk to, with a name, a limit on the length of answers, and prices.
#[derive(Clone)]
pub struct Provider {
    source: ProviderSource,
    name: String,
    max_tokens: Option<u64>,
    price: Option<(f64, f64)>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Provider").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone)]
enum ProviderSource {
    Script(String),
    Program(Arc<dyn ChatProvider>),
    #[cfg(feature = "providers")]
    Server(Box<Server>),
}

impl Provider {
    /// Creates a provider that takes its answers from a script and needs no network. The
    /// [`scripted`](crate::provider::scripted) module explains the format.
    pub fn scripted(script: impl Into<String>) -> Self {
        Self::of(SCRIPTED, ProviderSource::Script(script.into()))
    }

    /// Creates a provider from your own implementation, under the name that it gives itself.
    pub fn custom(provider: impl ChatProvider + 'static) -> Self {
        let name = provider.name().to_owned();
        Self::of(&name, ProviderSource::Program(Arc::new(provider)))
    }

    fn of(name: &str, source: ProviderSource) -> Self {
        Self { source, name: name.to_owned(), max_tokens: None, price: None }
    }

    /// Sets the name by which turns can choose the provider.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the maximum number of tokens in an answer.
    #[must_use]
    pub fn max_tokens(self, max_tokens: u64) -> Self {
        Self { max_tokens: Some(max_tokens), ..self }
    }

    /// Sets the price of a million input tokens and of a million output tokens, from which the
    /// costs in replies are computed.
    #[must_use]
    pub fn price(self, input: f64, output: f64) -> Self {
        Self { price: Some((input, output)), ..self }
    }

    /// Opens the provider. Sends nothing.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub(super) fn open(self) -> Result<AvailableModel, Error> {
        let Self { source, name, max_tokens, price } = self;
        let wrong = |what: String| Error::Setting(format!("provider {name:?}: {what}"));
        if max_tokens == Some(0) {
            return Err(wrong("max_tokens must be 1 or more, got 0".to_owned()));
        }
        let is_price = |price: &f64| price.is_finite() && *price >= 0.0;
        if price.is_some_and(|(input, output)| !is_price(&input) || !is_price(&output)) {
            return Err(wrong("prices must be 0 or more".to_owned()));
        }
        let (provider, from): (Arc<dyn ChatProvider>, _) = match source {
            ProviderSource::Script(script) => {
                (Arc::new(Scripted::new(&script, SCRIPTED).map_err(wrong)?), AnswerOrigin::Program)
            }
            ProviderSource::Program(provider) => (provider, AnswerOrigin::Program),
            #[cfg(feature = "providers")]
            ProviderSource::Server(server) => {
                let Server { settings, retries, asks_limit } = *server;
                let (price_input, price_output) = price.unzip();
                let settings = ProviderSettings {
                    name: name.clone(),
                    answer_tokens: max_tokens,
                    price_input,
                    price_output,
                    ..settings
                };
                let mut checked = settings.checked().map_err(|error| wrong(error.to_string()))?;
                if let AnswerOrigin::Server { serving, .. } = &mut checked.from {
                    (serving.retries, serving.keeps_limit) = (retries, !asks_limit);
                }
                let opened =
                    AvailableModel::open(&checked).map_err(|error| wrong(error.to_string()))?;
                (opened.provider, opened.from)
            }
        };
        Ok(AvailableModel { name, provider, max_tokens, price, from, rooms: Rooms::default() })
    }
}

/// A model server: its kind, address and key.
///
/// ```
/// use contexture::{Conversation, Server};
///
/// let local = Server::ollama("llama3.2");
/// let remote = Server::openai("gpt-5").url("https://models.example/v1").api_key_env("MODELS_KEY");
/// let builder = Conversation::builder("tla").provider(local).provider(remote);
/// # drop(builder);
/// ```
#[cfg(feature = "providers")]
#[derive(Debug, Clone)]
pub struct Server {
    settings: ProviderSettings,
    retries: Option<u32>,
    asks_limit: bool,
}

#[cfg(feature = "providers")]
impl Server {
    /// Creates the settings for an Anthropic model. The key is read from the environment variable
    /// `ANTHROPIC_API_KEY` unless another source or a [`url`](Self::url) is set.
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::of("anthropic", model)
    }

    /// Creates the settings for a Gemini model from Google. The key is read from the environment
    /// variable `GEMINI_API_KEY` unless another source or a [`url`](Self::url) is set.
    pub fn gemini(model: impl Into<String>) -> Self {
        Self::of("gemini", model)
    }

    /// Creates the settings for a model that Ollama serves, on this machine unless a
    /// [`url`](Self::url) is set.
    pub fn ollama(model: impl Into<String>) -> Self {
        Self::of("ollama", model)
    }

    /// Creates the settings for an `OpenAI` model, asked by the Responses API, which some models
    /// need. Key and address are as for [`openai`](Self::openai).
    pub fn responses(model: impl Into<String>) -> Self {
        Self::of("responses", model)
    }

    /// Creates the settings for an `OpenAI` model, or a model on any server with the same
    /// interface. The key is read from the environment variable `OPENAI_API_KEY` unless another
    /// source or a [`url`](Self::url) is set.
    pub fn openai(model: impl Into<String>) -> Self {
        Self::of("openai", model)
    }

    fn of(kind: &str, model: impl Into<String>) -> Self {
        let settings = ProviderSettings {
            name: kind.to_owned(),
            kind: kind.to_owned(),
            model: model.into(),
            ..ProviderSettings::default()
        };
        Self { settings, retries: None, asks_limit: true }
    }

    /// Sets the address, such as `http://localhost:8080/v1`. With an address, no key is read from
    /// the environment unless [`api_key_env`](Self::api_key_env) names a variable.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.settings.base_url = Some(url.into());
        self
    }

    /// Sets the key itself. The key is kept only in memory and is never printed.
    #[must_use]
    pub fn api_key(mut self, key: &str) -> Self {
        self.settings.api_key = Secret::new(key);
        self
    }

    /// Sets the environment variable that contains the key.
    #[must_use]
    pub fn api_key_env(mut self, variable: impl Into<String>) -> Self {
        self.settings.api_key_env = Some(variable.into());
        self
    }

    /// Sets how much the model reasons before it answers.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.settings.effort = Some(effort);
        self
    }

    /// Sets the command that prints the key. It runs when the key is needed, and once more after the
    /// server refused the key.
    #[must_use]
    pub fn api_key_command(mut self, command: impl Into<String>) -> Self {
        self.settings.api_key_command = Some(command.into());
        self
    }

    /// Sets the header that carries the key, in place of the usual one.
    #[must_use]
    pub fn key_header(mut self, name: impl Into<String>) -> Self {
        self.settings.key_header = Some(name.into());
        self
    }

    /// Adds a header to each request. Its value is never printed.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: &str) -> Self {
        let headers = self.settings.headers.get_or_insert_default();
        headers.push(Header::given(name.into(), Secret::new(value)));
        self
    }

    /// Adds members to the body of each request. An object is added member by member.
    #[must_use]
    pub fn extra(mut self, members: &serde_json::Map<String, serde_json::Value>) -> Self {
        self.settings.extra = serde_json::to_string(members).ok();
        self
    }

    /// Sets the maximum time for an answer to begin, over all attempts, from 1 second to a day; ten
    /// minutes by default. Parts of a second do not count.
    #[must_use]
    pub fn first_byte(mut self, time: Duration) -> Self {
        self.settings.first_byte = Some(time.as_secs());
        self
    }

    /// Sets the maximum time between two parts of an answer, from 1 second to a day; two minutes by
    /// default. Parts of a second do not count.
    #[must_use]
    pub fn silence(mut self, time: Duration) -> Self {
        self.settings.silence = Some(time.as_secs());
        self
    }

    /// Sets how often a request is sent again while the server is busy or fails; by default, twice,
    /// and a server that says when to try again as often as the time allows.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Says whether the server may be asked for the limit of its model, before the first request;
    /// true by default. Without asking, the limit is that of [`context`](Self::context), or the one
    /// that is known for a model of this name.
    #[must_use]
    pub fn asks_limit(mut self, asks: bool) -> Self {
        self.asks_limit = asks;
        self
    }

    /// Sets the share of the likeliest tokens from which the model picks, above 0 and at most 1.
    #[must_use]
    pub fn top_p(mut self, share: f64) -> Self {
        self.settings.top_p = Some(share);
        self
    }

    /// Trusts the certificates in this file, as PEM, besides those that the system trusts.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.ca_file = Some(file.into());
        self
    }

    /// Sets the address of a proxy, or `none` for no proxy. By default, the environment says it.
    #[must_use]
    pub fn proxy(mut self, address: impl Into<String>) -> Self {
        self.settings.proxy = Some(address.into());
        self
    }

    /// Sets the limit of the model in tokens, if the server does not tell it. Ollama is also asked
    /// for a window of this size.
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.settings.context = Some(tokens);
        self
    }
}

#[cfg(feature = "providers")]
impl From<Server> for Provider {
    fn from(server: Server) -> Self {
        Self::of(&server.settings.name.clone(), ProviderSource::Server(Box::new(server)))
    }
}
