//! The models that can be talked to: `[[providers]]` in the configuration file.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use super::embeddings::{check_url, key_source};
use super::{ConfigError, DEFAULTS, Explained, FILE};
use crate::provider::chat::Provider;
use crate::provider::scripted::Scripted;
use crate::provider::secret::KeySource;
use crate::provider::{Family, HttpProvider};

/// The kind that plays a file.
const SCRIPTED: &str = "scripted";

/// A provider as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The command that prints the key.
    pub api_key_command: Option<String>,
    /// The file that is played.
    pub script: Option<PathBuf>,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// What a million tokens of input cost, in any currency.
    pub price_input: Option<f64>,
    /// What a million tokens of output cost.
    pub price_output: Option<f64>,
}

/// A provider in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// How people call it.
    pub name: String,
    /// The model's name there.
    pub model: String,
    /// What is asked.
    pub from: From,
    /// How many tokens an answer may have.
    pub max_tokens: Option<u64>,
    /// What a million tokens of input and of output cost, when both are known.
    pub price: Option<(f64, f64)>,
}

/// What a provider asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// A server.
    Server {
        /// Of this kind.
        family: Family,
        /// At this address.
        url: String,
        /// With a key from here.
        key: KeySource,
    },
    /// This file.
    Script(PathBuf),
}

impl Configured {
    /// The provider. Nothing is sent, and no key is asked for.
    ///
    /// # Errors
    /// A phrase when the script cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Provider>, String> {
        match &self.from {
            From::Server { family, url, key } => {
                let (name, model, key) = (&self.name, &self.model, key.clone());
                Ok(Arc::new(HttpProvider::new(*family, name, url, model, key)))
            }
            From::Script(path) => {
                let wrong = |why: String| format!("the script {}: {why}", path.display());
                let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
                Ok(Arc::new(Scripted::new(&text, &self.model).map_err(wrong)?))
            }
        }
    }
}

impl std::fmt::Display for From {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server { family, url, key } => {
                write!(f, "{} at {url}, key {key}", family.name())
            }
            Self::Script(path) => write!(f, "the script {}", path.display()),
        }
    }
}

pub(super) fn providers(
    said: Vec<ProviderSettings>,
    explained: &mut Vec<Explained>,
) -> Result<Vec<Configured>, ConfigError> {
    if said.is_empty() {
        explained.push(Explained { name: "providers", value: "none".into(), source: DEFAULTS });
    }
    let mut providers: Vec<Configured> = Vec::new();
    for provider in said {
        let name = provider.name.clone();
        let known = providers.iter().any(|known| known.name == name);
        let twice = known.then(|| "name is there twice; give the other one another".to_owned());
        let configured = twice.map_or_else(|| checked(provider), Err);
        let configured = configured.map_err(|message| ConfigError::BadValue {
            name: "[[providers]]",
            message: format!("{name:?}: {message}"),
            origin: FILE,
        })?;
        let Configured { name, model, from, .. } = &configured;
        let value = format!("{name}: {model} of {from}");
        explained.push(Explained { name: "providers", value, source: FILE });
        providers.push(configured);
    }
    Ok(providers)
}

fn checked(said: ProviderSettings) -> Result<Configured, String> {
    let price = match (said.price_input, said.price_output) {
        (Some(input), Some(output)) if input >= 0.0 && output >= 0.0 => Some((input, output)),
        (None, None) => None,
        _ => return Err("needs both price-input and price-output, 0 or more, or neither".into()),
    };
    let ProviderSettings {
        name,
        kind,
        model,
        url,
        api_key_env,
        api_key_command,
        script,
        max_tokens,
        ..
    } = said;
    for (what, text) in [("name", &name), ("model", &model)] {
        if text.trim().is_empty() {
            return Err(format!("{what} must not be empty"));
        }
    }
    let from = match (Family::from_name(&kind), script) {
        (None, Some(script)) if kind == SCRIPTED => From::Script(script),
        (None, None) if kind == SCRIPTED => return Err("needs a script".to_owned()),
        (None, _) => {
            let kinds: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
            let kinds = kinds.join(", ");
            return Err(format!("kind must be one of {kinds}, {SCRIPTED}, got {kind:?}"));
        }
        (Some(_), Some(_)) => return Err(format!("only the kind {SCRIPTED} has a script")),
        (Some(family), None) => {
            url.as_deref().map_or(Ok(()), check_url)?;
            let key = key_source(api_key_env, api_key_command)?;
            let key = match (key, &url) {
                // A key of the environment is only for the server that it is known to be for.
                (KeySource::None, None) => usual_key(family),
                (key, _) => key,
            };
            let url = url.unwrap_or_else(|| family.usual_url().to_owned());
            From::Server { family, url, key }
        }
    };
    Ok(Configured { name, model, from, max_tokens, price })
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
