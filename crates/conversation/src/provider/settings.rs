//! Provider settings: as written by the user, and after checking. The configuration file and the
//! method `configure-provider` both read [`ProviderSettings`].

mod asking;

use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use serde::Deserialize;

pub use self::asking::{Header, Headers};
use super::chat::{ChatProvider, Effort};
use super::origin::{AnswerOrigin, SCRIPTED, Serving};
#[cfg(feature = "schema")]
use super::reply::{BEGIN_SECONDS, SILENCE_SECONDS};
use super::scripted::Scripted;
use super::secret::{KeySource, Secret};
use super::{Family, HttpProvider};
use crate::visible::visible_path;

/// The address that errors give as an example.
pub const EXAMPLE: &str = "http://localhost:11434/v1";
/// Maximum length of a provider's name in bytes.
const LONGEST_NAME: usize = 1024;

/// Returns the kinds of providers.
pub fn kinds() -> Vec<&'static str> {
    Family::ALL.iter().map(|family| family.name()).chain([SCRIPTED]).collect()
}

/// A provider as the user describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ConfigureParams"))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProviderSettings {
    /// Your name for the provider.
    pub name: String,
    /// Kind of the server, or `:scripted`.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = kinds())))]
    pub kind: String,
    /// Name of the model on the server.
    pub model: String,
    /// Address of the server; defaults to the usual one for the kind.
    pub base_url: Option<String>,
    /// The key itself; never stored, logged or shown. Not in a file.
    pub api_key: Option<Secret>,
    /// Environment variable of Contexture that contains the key. Not for clients over TCP.
    pub api_key_env: Option<String>,
    /// Command that prints the key; Contexture runs it when it needs the key, and once more after
    /// the server refused a key. Not for clients over TCP.
    pub api_key_command: Option<String>,
    /// Name of the header that carries the key, such as `authorization` or `api-key`; defaults to
    /// the usual one for the kind.
    pub key_header: Option<String>,
    /// Further headers of each request. Each has a `name` and its value: a text in `value`, an
    /// environment variable in `env`, or the output of a `command`. The latter two are not for
    /// clients over TCP. Values are never stored, logged or shown.
    pub headers: Option<Headers>,
    /// Version of Azure's interface, such as `2024-10-21`. The model is then the name of a
    /// deployment.
    pub api_version: Option<String>,
    /// How much the model reasons before it answers.
    pub effort: Option<Effort>,
    /// Sampling temperature, from 0 to 2; for `:anthropic`, to 1.
    pub temperature: Option<f64>,
    /// Share of the likeliest tokens from which the model picks, above 0 and at most 1.
    pub top_p: Option<f64>,
    /// Further members of the body of each request, as the JSON text of an object.
    pub extra: Option<String>,
    /// Absolute name of a file with the script that a scripted model plays, at most 16 MiB. Not for
    /// clients over TCP.
    pub script: Option<PathBuf>,
    /// Limit of the model in tokens; defaults to what its server tells. Ollama is also asked for a
    /// window of this size.
    pub context: Option<u64>,
    /// Absolute name of a file with certificates to trust besides the system's, as PEM. Not for
    /// clients over TCP.
    pub ca_file: Option<PathBuf>,
    /// Address of a proxy for the requests, or `none` for no proxy; defaults to what the
    /// environment of Contexture says.
    pub proxy: Option<String>,
    /// Maximum time for an answer to begin, in seconds.
    #[cfg_attr(feature = "schema", schemars(description = format!(
        "Maximum time for an answer to begin, in seconds; defaults to {BEGIN_SECONDS}."
    )))]
    pub first_byte: Option<u64>,
    /// Maximum time between two parts of an answer, in seconds.
    #[cfg_attr(feature = "schema", schemars(description = format!(
        "Maximum time between two parts of an answer, in seconds; defaults to {SILENCE_SECONDS}."
    )))]
    pub silence: Option<u64>,
    /// The server's answers begin within reasoning that ends with `</think>`. Reasoning between
    /// tags at the beginning of an answer is found without this setting.
    pub thinks: Option<bool>,
    /// Maximum number of tokens in an answer.
    pub answer_tokens: Option<u64>,
    /// Price of a million input tokens, in US dollars.
    pub price_input: Option<f64>,
    /// Price of a million output tokens, in US dollars.
    pub price_output: Option<f64>,
    /// Make this provider the default.
    pub default: Option<bool>,
}

/// A provider whose settings have been checked.
#[derive(Debug, Clone)]
pub struct CheckedProvider {
    /// Name of the provider.
    pub name: String,
    /// Name of the model on the server.
    pub model: String,
    /// Source of the provider's answers.
    pub from: AnswerOrigin,
    /// Maximum number of tokens in an answer.
    pub max_tokens: Option<u64>,
    /// Prices of a million input and output tokens, if known.
    pub price: Option<(f64, f64)>,
    /// True for the provider to use when none is named.
    pub default: bool,
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
    /// Returns the first setting that reads this machine's files or environment, or runs a command.
    /// Clients on other machines must not give such a setting.
    pub fn of_this_machine(&self) -> Option<&'static str> {
        let reads = |headers: &Headers| headers.has_outside_values();
        let given = [
            ("api-key-env", self.api_key_env.is_some()),
            ("api-key-command", self.api_key_command.is_some()),
            ("headers", self.headers.as_ref().is_some_and(reads)),
            ("script", self.script.is_some()),
            ("ca-file", self.ca_file.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Checks the settings. Opens and sends nothing.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn checked(self) -> Result<CheckedProvider, BadSetting> {
        for (setting, text) in [("name", &self.name), ("model", &self.model)] {
            if text.trim().is_empty() {
                return Err(bad(setting, "must not be empty"));
            }
            if text.len() > LONGEST_NAME {
                return Err(bad(setting, format!("must have at most {LONGEST_NAME} bytes")));
            }
        }
        if self.answer_tokens == Some(0) {
            return Err(bad("answer-tokens", "must be 1 or more, got 0"));
        }
        let price = price(self.price_input, self.price_output)?;
        let (name, model, max_tokens) = (self.name.clone(), self.model.clone(), self.answer_tokens);
        let default = self.default.unwrap_or(false);
        Ok(CheckedProvider { name, model, from: self.origin()?, max_tokens, price, default })
    }

    /// Determines the source of answers.
    fn origin(self) -> Result<AnswerOrigin, BadSetting> {
        match (Family::from_name(&self.kind), &self.script) {
            (None, _) if self.kind != SCRIPTED => {
                let (kinds, kind) = (kinds().join(", "), self.kind);
                Err(bad("kind", format!("must be one of {kinds}, got {kind:?}")))
            }
            (None, None) => {
                Err(bad("script", "is missing; providers of the kind scripted need it"))
            }
            (None, Some(script)) => match self.of_a_server() {
                None => Ok(AnswerOrigin::Script(script.clone())),
                Some(setting) => Err(bad(setting, "is only for servers")),
            },
            (Some(_), Some(_)) => Err(bad("script", "is only for the kind scripted")),
            (Some(family), None) => {
                if let Some(url) = &self.base_url {
                    check_address("base-url", url, EXAMPLE)?;
                }
                check_context(self.context)?;
                let serving = self.serving(family)?;
                let url = self.base_url;
                let key = key_source(self.api_key, self.api_key_env, self.api_key_command)?;
                let key_header = serving.key_header.as_deref().unwrap_or(family.facts().key_header);
                let has_it = serving.headers.iter().any(|(name, _)| name == key_header);
                let key = match (key, &url) {
                    // A key from the environment is used only with the server it is meant for.
                    (KeySource::None, None) if !has_it => usual_key(family),
                    (KeySource::None, _) => KeySource::None,
                    _ if has_it => {
                        let what = format!("must not have {key_header}, which carries the key");
                        return Err(bad("headers", what));
                    }
                    (key, _) => key,
                };
                let url = url.unwrap_or_else(|| family.usual_url().to_owned());
                Ok(AnswerOrigin::Server { family, url, key, serving: Box::new(serving) })
            }
        }
    }
}

impl CheckedProvider {
    /// Opens the provider. Sends nothing and fetches no key.
    ///
    /// # Errors
    /// [`BadSetting`] if the script cannot be used, or if the program itself gives the answers.
    pub fn open(&self) -> Result<Arc<dyn ChatProvider>, BadSetting> {
        match &self.from {
            AnswerOrigin::Server { family, url, key, serving } => {
                let (name, model, key) = (&self.name, &self.model, key.clone());
                let provider = HttpProvider::new(*family, name, url, model, key);
                Ok(Arc::new(provider.serving(Serving::clone(serving))))
            }
            AnswerOrigin::Script(path) => {
                let wrong = |why: String| bad("script", format!("{}: {why}", visible_path(path)));
                Ok(Arc::new(Scripted::open(path, &self.model).map_err(wrong)?))
            }
            AnswerOrigin::Program => Err(bad("kind", "names no server")),
        }
    }
}

/// Determines the source of the key. Only one source may be given.
///
/// # Errors
/// [`BadSetting`] if several sources of the key are given, or a setting is empty.
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

/// Checks that a text is a usable address without a key in it. `such_as` is an example.
///
/// # Errors
/// [`BadSetting`] with the problem, which does not repeat the address, since that may contain a
/// key.
pub fn check_address(setting: &'static str, url: &str, such_as: &str) -> Result<(), BadSetting> {
    let wrong = |what: &str| Err(bad(setting, format!("must {what}, such as {such_as:?}")));
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return wrong("begin with http:// or https://") };
    let address = match Url::parse(url) {
        Ok(address) if !rest.starts_with('/') => address,
        Ok(_) => return wrong("be an address with a host"),
        Err(why) => return wrong(&format!("be an address ({why})")),
    };
    if rest.split(['/', '?', '#']).next().is_some_and(|host| host.contains('@')) {
        return Err(bad(
            setting,
            "must not contain a user name or a key; give the key in its own setting",
        ));
    }
    // Addresses are shown and logged.
    let secret = ["key", "token", "secret", "password", "sig"];
    let is_secret = |name: &str| secret.iter().any(|secret| name.to_lowercase().contains(secret));
    if address.query_pairs().any(|(name, _)| is_secret(&name)) {
        return Err(bad(setting, "must not contain a key; give the key in its own setting"));
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
/// or none.
fn usual_key(family: Family) -> KeySource {
    let variable = family.facts().usual_key;
    variable.map_or(KeySource::None, |variable| KeySource::Environment(variable.to_owned()))
}
