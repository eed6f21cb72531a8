//! Provider settings: as written by the user, and after checking. This module does not depend on
//! the configuration file or the method call that supplies the settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use super::chat::Provider;
use super::origin::{Origin, SCRIPTED, Serving};
use super::scripted::Scripted;
use super::secret::{KeySource, Secret};
use super::{Family, HttpProvider, Times};
use crate::visible::visible_path;

/// Returns the kinds of providers.
pub(crate) fn kinds() -> Vec<&'static str> {
    Family::ALL.iter().map(|family| family.name()).chain([SCRIPTED]).collect()
}

/// A provider as the user describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ProviderSettings {
    /// Name of the provider.
    pub name: String,
    /// Kind of the server, or `scripted`.
    pub kind: String,
    /// Name of the model on the server.
    pub model: String,
    /// Address; by default, the usual address of the kind.
    pub url: Option<String>,
    /// The key itself. Not allowed in a file.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Environment variable that contains the key.
    pub api_key_env: Option<String>,
    /// Command that prints the key.
    pub api_key_command: Option<String>,
    /// Script to play.
    pub script: Option<PathBuf>,
    /// Limit of the model in tokens, which Ollama is also asked for; by default, the server tells.
    pub context: Option<u64>,
    /// File with certificates to trust besides the system's, as PEM.
    pub ca_file: Option<PathBuf>,
    /// Maximum time for an answer to begin, in seconds.
    pub first_byte: Option<u64>,
    /// Maximum time between two parts of an answer, in seconds.
    pub silence: Option<u64>,
    /// True if answers begin within reasoning that ends with `</think>`. Reasoning between tags at
    /// the beginning of an answer is found without this setting.
    pub thinks: Option<bool>,
    /// Maximum number of tokens in an answer.
    pub max_tokens: Option<u64>,
    /// Price of a million input tokens, in any currency.
    pub price_input: Option<f64>,
    /// Price of a million output tokens, in the same currency.
    pub price_output: Option<f64>,
}

/// Maximum time in seconds: a day.
const LONGEST_TIME: u64 = 24 * 60 * 60;

impl Serving {
    fn check(&self) -> Result<(), BadSetting> {
        for (setting, time) in [("first-byte", self.first_byte), ("silence", self.silence)] {
            if time.is_some_and(|time| !(1..=LONGEST_TIME).contains(&time)) {
                return Err(bad(setting, format!("must be from 1 to {} seconds", LONGEST_TIME)));
            }
        }
        match &self.ca_file {
            Some(file) if !file.is_absolute() => {
                Err(bad("ca-file", "must be an absolute file name"))
            }
            _ => Ok(()),
        }
    }

    fn times(&self) -> Times {
        let usual = Times::default();
        let time = |said: Option<u64>, usual| said.map_or(usual, Duration::from_secs);
        let begin = time(self.first_byte, usual.begin);
        Times { begin, silence: time(self.silence, usual.silence), ..usual }
    }
}

/// A provider whose settings have been checked.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Name of the provider.
    pub name: String,
    /// Name of the model on the server.
    pub model: String,
    /// Source of the provider's answers.
    pub from: Origin,
    /// Maximum number of tokens in an answer.
    pub max_tokens: Option<u64>,
    /// Prices of a million input and output tokens, if known.
    pub price: Option<(f64, f64)>,
}

/// An invalid setting: its name, and the rest of the sentence that begins with the name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {what}")]
pub struct BadSetting {
    /// Name of the setting, as in the configuration file.
    pub setting: &'static str,
    /// The problem and what to do.
    pub what: String,
}

impl ProviderSettings {
    /// Checks the settings. Opens and sends nothing.
    ///
    /// # Errors
    /// The first invalid setting.
    pub(crate) fn checked(self) -> Result<Configured, BadSetting> {
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

    /// Determines the source of answers.
    fn origin(self) -> Result<Origin, BadSetting> {
        let serving = Serving {
            ca_file: self.ca_file,
            first_byte: self.first_byte,
            silence: self.silence,
            thinks: self.thinks.unwrap_or(false),
        };
        let Self { kind, url, context, api_key, api_key_env, api_key_command, script, .. } = self;
        match (Family::from_name(&kind), script) {
            (None, _) if kind == SCRIPTED && serving != Serving::default() => {
                Err(bad("first-byte", "and silence, thinks and ca-file are only for servers"))
            }
            (None, Some(script)) if kind == SCRIPTED => Ok(Origin::Script(script)),
            (None, None) if kind == SCRIPTED => {
                Err(bad("script", "is missing; providers of the kind scripted need it"))
            }
            (None, _) => {
                Err(bad("kind", format!("must be one of {}, got {kind:?}", kinds().join(", "))))
            }
            (Some(_), Some(_)) => Err(bad("script", "is only for the kind scripted")),
            (Some(family), None) => {
                url.as_deref().map_or(Ok(()), check_url)?;
                check_context(context)?;
                serving.check()?;
                let key = match (key_source(api_key, api_key_env, api_key_command)?, &url) {
                    // A key from the environment is used only with the server it is meant for.
                    (KeySource::None, None) => usual_key(family),
                    (key, _) => key,
                };
                let url = url.unwrap_or_else(|| family.usual_url().to_owned());
                Ok(Origin::Server { family, url, key, context, serving })
            }
        }
    }
}

impl Configured {
    /// Opens the provider. Sends nothing and fetches no key.
    ///
    /// # Errors
    /// [`BadSetting`] if the script cannot be used, or if the program itself gives the answers.
    pub fn open(&self) -> Result<Arc<dyn Provider>, BadSetting> {
        match &self.from {
            Origin::Server { family, url, key, context, serving } => {
                let (name, model, key) = (&self.name, &self.model, key.clone());
                let provider = HttpProvider::new(*family, name, url, model, key)
                    .with_context(*context)
                    .waiting(serving.times())
                    .thinking(serving.thinks)
                    .trusting(serving.ca_file.clone());
                Ok(Arc::new(provider))
            }
            Origin::Script(path) => {
                let wrong = |why: String| bad("script", format!("{}: {why}", visible_path(path)));
                Ok(Arc::new(Scripted::open(path, &self.model).map_err(wrong)?))
            }
            Origin::Program => Err(bad("kind", "names no server")),
        }
    }
}

/// Determines the source of the key. Only one source may be given.
///
/// # Errors
/// [`BadSetting`] if several sources of the key are given, or a setting is empty.
pub(crate) fn key_source(
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
        (None, _, _) => Err(bad(
            "api-key-env",
            "cannot be combined with api-key-command; keep only one of them",
        )),
        _ => Err(bad(
            "api-key",
            "cannot be combined with api-key-env or api-key-command; keep only one of them",
        )),
    }
}

/// Checks that a text is a usable address without a key in it.
///
/// # Errors
/// [`BadSetting`] with the problem, which does not repeat the address, since that may contain a
/// key.
pub(crate) fn check_url(url: &str) -> Result<(), BadSetting> {
    let wrong =
        |what: &str| Err(bad("url", format!("must {what}, such as \"http://localhost:11434/v1\"")));
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return wrong("begin with http:// or https://") };
    let address = match Url::parse(url) {
        Ok(address) if !rest.starts_with('/') => address,
        Ok(_) => return wrong("be an address with a host"),
        Err(why) => return wrong(&format!("be an address ({why})")),
    };
    if rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) {
        return Err(bad(
            "url",
            "must not contain a user name or a key; give the key in its own setting",
        ));
    }
    // Addresses are shown and logged.
    let secret = ["key", "token", "secret", "password", "sig"];
    let is_secret = |name: &str| secret.iter().any(|secret| name.to_lowercase().contains(secret));
    if address.query_pairs().any(|(name, _)| is_secret(&name)) {
        return Err(bad("url", "must not contain a key; give the key in its own setting"));
    }
    // The parser drops surrounding blanks, and tabs and newlines anywhere.
    let spaced = url.contains(|c: char| c.is_whitespace() || c.is_control());
    match spaced || address.fragment().is_some() {
        true => wrong("be an address without spaces or fragments"),
        false => Ok(()),
    }
}

fn bad(setting: &'static str, what: impl Into<String>) -> BadSetting {
    BadSetting { setting, what: what.into() }
}

/// Accepted window sizes in tokens. A smaller value is not a useful window; a larger one is a
/// mistake.
const CONTEXTS: std::ops::RangeInclusive<u64> = 256..=100_000_000;

fn check_context(context: Option<u64>) -> Result<(), BadSetting> {
    match context {
        None => Ok(()),
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

/// Returns the source from which the vendor's own programs read the key: an environment variable,
/// or none for Ollama.
fn usual_key(family: Family) -> KeySource {
    let variable = match family {
        Family::Openai => "OPENAI_API_KEY",
        Family::Anthropic => "ANTHROPIC_API_KEY",
        Family::Gemini => "GEMINI_API_KEY",
        Family::Ollama => return KeySource::None,
    };
    KeySource::Environment(variable.to_owned())
}
