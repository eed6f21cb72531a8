//! A provider as somebody describes it, and what that comes to once it is checked. It knows neither
//! the file that may hold the description nor the call that may bring it.

use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use serde::Deserialize;

use super::chat::Provider;
use super::scripted::Scripted;
use super::secret::{KeySource, Secret};
use super::{Family, HttpProvider};
use crate::visible::visible_path;

/// The kind that plays a file.
const SCRIPTED: &str = "scripted";

/// A provider as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProviderSettings {
    /// How people call it.
    pub name: String,
    /// What kind of server it is, or `scripted`.
    pub kind: String,
    /// The model's name there.
    pub model: String,
    /// The address; the usual one of its kind when absent.
    pub url: Option<String>,
    /// The key itself. A file must not hold it.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The command that prints the key.
    pub api_key_command: Option<String>,
    /// The file that is played.
    pub script: Option<PathBuf>,
    /// How many tokens Ollama is to make room for; its own default when absent.
    pub context: Option<u64>,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// What a million tokens of input cost, in any currency.
    pub price_input: Option<f64>,
    /// What a million tokens of output cost.
    pub price_output: Option<f64>,
}

/// A provider that can be asked.
#[derive(Debug, Clone)]
pub struct Configured {
    /// How people call it.
    pub name: String,
    /// The model's name there.
    pub model: String,
    /// What is asked.
    pub from: Origin,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// What a million tokens of input and of output cost, when both are known.
    pub price: Option<(f64, f64)>,
}

/// What a provider asks.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A server.
    Server {
        /// Of this kind.
        family: Family,
        /// At this address.
        url: String,
        /// With a key from here.
        key: KeySource,
        /// With room for so many tokens.
        context: Option<u64>,
    },
    /// This file.
    Script(PathBuf),
}

/// What is wrong with a description: the setting, and a phrase that goes on from its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {what}")]
pub struct BadSetting {
    /// The setting's name, as in the configuration file.
    pub setting: &'static str,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl ProviderSettings {
    /// What the description comes to. Nothing is opened or asked.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn checked(self) -> Result<Configured, BadSetting> {
        for (setting, text) in [("name", &self.name), ("model", &self.model)] {
            if text.trim().is_empty() {
                return Err(bad(setting, "must not be empty"));
            }
        }
        if self.max_tokens == Some(0) {
            return Err(bad("max-tokens", "must be 1 or more, got 0"));
        }
        let price = price(self.price_input, self.price_output)?;
        let (name, model, max_tokens) = (self.name.clone(), self.model.clone(), self.max_tokens);
        Ok(Configured { name, model, from: self.origin()?, max_tokens, price })
    }

    /// What is asked.
    fn origin(self) -> Result<Origin, BadSetting> {
        let Self { kind, url, context, api_key, api_key_env, api_key_command, script, .. } = self;
        match (Family::from_name(&kind), script) {
            (None, Some(script)) if kind == SCRIPTED => Ok(Origin::Script(script)),
            (None, None) if kind == SCRIPTED => {
                Err(bad("script", "is missing; the kind scripted needs one"))
            }
            (None, _) => {
                let kinds: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
                let kinds = kinds.join(", ");
                Err(bad("kind", format!("must be one of {kinds}, {SCRIPTED}, got {kind:?}")))
            }
            (Some(_), Some(_)) => Err(bad("script", "is only for the kind scripted")),
            (Some(family), None) => {
                url.as_deref().map_or(Ok(()), check_url)?;
                check_context(family, context)?;
                let key = match (key_source(api_key, api_key_env, api_key_command)?, &url) {
                    // A key of the environment is only for the server that it is known to be for.
                    (KeySource::None, None) => usual_key(family),
                    (key, _) => key,
                };
                let url = url.unwrap_or_else(|| family.usual_url().to_owned());
                Ok(Origin::Server { family, url, key, context })
            }
        }
    }
}

impl Configured {
    /// The provider. Nothing is sent, and no key is asked for.
    ///
    /// # Errors
    /// When the script cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Provider>, BadSetting> {
        match &self.from {
            Origin::Server { family, url, key, context } => {
                let (name, model, key) = (&self.name, &self.model, key.clone());
                let provider = HttpProvider::new(*family, name, url, model, key);
                Ok(Arc::new(provider.with_context(*context)))
            }
            Origin::Script(path) => {
                let wrong = |why: String| bad("script", format!("{}: {why}", visible_path(path)));
                Ok(Arc::new(Scripted::open(path, &self.model).map_err(wrong)?))
            }
        }
    }
}

impl Origin {
    /// The kind, as in the configuration file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Server { family, .. } => family.name(),
            Self::Script(_) => SCRIPTED,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server { family, url, key, .. } => {
                write!(f, "{} at {url}, key {key}", family.name())
            }
            Self::Script(path) => write!(f, "the script {}", visible_path(path)),
        }
    }
}

/// Where a key comes from, which is told in one way.
///
/// # Errors
/// When it is told in more than one, or by nothing.
pub fn key_source(
    given: Option<Secret>,
    variable: Option<String>,
    command: Option<String>,
) -> Result<KeySource, BadSetting> {
    for (setting, text) in [("api-key-env", &variable), ("api-key-command", &command)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(bad(setting, "must not be empty"));
        }
    }
    match (given, variable, command) {
        (None, None, None) => Ok(KeySource::None),
        (Some(key), None, None) => Ok(KeySource::Given(key)),
        (None, Some(name), None) => Ok(KeySource::Environment(name)),
        (None, None, Some(command)) => Ok(KeySource::Command(command)),
        (None, _, _) => Err(bad("api-key-env", "is given beside api-key-command; keep one")),
        _ => Err(bad("api-key", "is given beside api-key-env or api-key-command; keep one")),
    }
}

/// Whether a text is an address that can be asked and that holds no key.
///
/// # Errors
/// What is wrong with it; the text itself is not repeated, since it may hold a key.
pub fn check_url(url: &str) -> Result<(), BadSetting> {
    let wrong =
        |what: &str| Err(bad("url", format!("must {what}, such as \"http://localhost:11434/v1\"")));
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return wrong("begin with http:// or https://") };
    let address = match Url::parse(url) {
        Ok(address) if !rest.starts_with('/') => address,
        Ok(_) => return wrong("be an address with a host"),
        Err(why) => return wrong(&format!("be an address ({why})")),
    };
    if host_part(rest).contains('@') {
        return Err(bad("url", "must hold no user and no key; there are settings for the key"));
    }
    // A parser drops blanks at the ends, and tabs and newlines anywhere.
    let spaced = url.contains(|c: char| c.is_whitespace() || c.is_control());
    match spaced || address.query().is_some() || address.fragment().is_some() {
        true => wrong("be an address without spaces and parameters"),
        false => Ok(()),
    }
}

fn host_part(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn bad(setting: &'static str, what: impl Into<String>) -> BadSetting {
    BadSetting { setting, what: what.into() }
}

/// What is below is no window, and what is above a slip.
const CONTEXTS: std::ops::RangeInclusive<u64> = 256..=100_000_000;

fn check_context(family: Family, context: Option<u64>) -> Result<(), BadSetting> {
    match context {
        None => Ok(()),
        Some(_) if family != Family::Ollama => {
            Err(bad("context", "is only for the kind ollama; for windows there is [[models]]"))
        }
        Some(context) if CONTEXTS.contains(&context) => Ok(()),
        Some(context) => {
            let (least, most) = (CONTEXTS.start(), CONTEXTS.end());
            Err(bad("context", format!("must be from {least} to {most} tokens, got {context}")))
        }
    }
}

fn price(input: Option<f64>, output: Option<f64>) -> Result<Option<(f64, f64)>, BadSetting> {
    let sound = |price: &f64| price.is_finite() && *price >= 0.0;
    match (input, output) {
        (None, None) => Ok(None),
        (Some(input), Some(output)) if sound(&input) && sound(&output) => Ok(Some((input, output))),
        _ => Err(bad("price-input", "and price-output must both be 0 or more, or both be absent")),
    }
}

/// The variable that the programs of a kind's vendor take the key from.
fn usual_key(family: Family) -> KeySource {
    let variable = match family {
        Family::Openai => "OPENAI_API_KEY",
        Family::Anthropic => "ANTHROPIC_API_KEY",
        Family::Gemini => "GEMINI_API_KEY",
        Family::Ollama => return KeySource::None,
    };
    KeySource::Environment(variable.to_owned())
}
