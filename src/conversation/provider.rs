//! Models for conversations.

use std::fmt;
use std::sync::Arc;

use super::Error;
use crate::agent::{Configured, Rooms};
use crate::provider::Origin;
use crate::provider::chat::Provider as ChatProvider;
use crate::provider::scripted::Scripted;
#[cfg(feature = "providers")]
use crate::provider::{chat::Effort, secret::Secret, settings::ProviderSettings};

/// Default name and model of a script.
const SCRIPTED: &str = "scripted";

/// A model to talk to, with a name, a limit on the length of answers, and prices.
#[derive(Clone)]
pub struct Provider {
    source: Source,
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
enum Source {
    Script(String),
    Program(Arc<dyn ChatProvider>),
    #[cfg(feature = "providers")]
    Server(Box<ProviderSettings>),
}

impl Provider {
    /// Creates a provider that takes its answers from a script and needs no network. The
    /// [`scripted`](crate::provider::scripted) module explains the format.
    pub fn scripted(script: impl Into<String>) -> Self {
        Self::of(SCRIPTED, Source::Script(script.into()))
    }

    /// Creates a provider from your own implementation, under the name that it gives itself.
    pub fn custom(provider: impl ChatProvider + 'static) -> Self {
        let name = provider.name().to_owned();
        Self::of(&name, Source::Program(Arc::new(provider)))
    }

    fn of(name: &str, source: Source) -> Self {
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
    pub(super) fn open(self) -> Result<Configured, Error> {
        let Self { source, name, max_tokens, price } = self;
        let wrong = |what: String| Error::Setting(format!("provider {name:?}: {what}"));
        let (provider, from): (Arc<dyn ChatProvider>, _) = match source {
            Source::Script(script) => {
                (Arc::new(Scripted::new(&script, SCRIPTED).map_err(wrong)?), Origin::Program)
            }
            Source::Program(provider) => (provider, Origin::Program),
            #[cfg(feature = "providers")]
            Source::Server(settings) => {
                let (price_input, price_output) = price.unzip();
                let settings = ProviderSettings {
                    name: name.clone(),
                    answer_tokens: max_tokens,
                    price_input,
                    price_output,
                    ..*settings
                };
                let checked = settings.checked().map_err(|error| wrong(error.to_string()))?;
                let opened =
                    Configured::open(&checked).map_err(|error| wrong(error.to_string()))?;
                (opened.provider, opened.from)
            }
        };
        Ok(Configured { name, provider, max_tokens, price, from, rooms: Rooms::default() })
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
pub struct Server(ProviderSettings);

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
        Self(ProviderSettings {
            name: kind.to_owned(),
            kind: kind.to_owned(),
            model: model.into(),
            ..ProviderSettings::default()
        })
    }

    /// Sets the address, such as `http://localhost:8080/v1`. With an address, no key is read from
    /// the environment unless [`api_key_env`](Self::api_key_env) names a variable.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.0.base_url = Some(url.into());
        self
    }

    /// Sets the key itself. The key is kept only in memory and is never printed.
    #[must_use]
    pub fn api_key(mut self, key: &str) -> Self {
        self.0.api_key = Secret::new(key);
        self
    }

    /// Sets the environment variable that contains the key.
    #[must_use]
    pub fn api_key_env(mut self, variable: impl Into<String>) -> Self {
        self.0.api_key_env = Some(variable.into());
        self
    }

    /// Sets how much the model reasons before it answers.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.0.effort = Some(effort);
        self
    }

    /// Sets the limit of the model in tokens, if the server does not tell it. Ollama is also asked
    /// for a window of this size.
    #[must_use]
    pub fn context(mut self, tokens: u64) -> Self {
        self.0.context = Some(tokens);
        self
    }
}

#[cfg(feature = "providers")]
impl From<Server> for Provider {
    fn from(Server(settings): Server) -> Self {
        Self::of(&settings.name.clone(), Source::Server(Box::new(settings)))
    }
}
