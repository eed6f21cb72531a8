//! What makes vectors of texts: `[embeddings]` in the configuration file.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, DEFAULTS, Explained, FILE};
use crate::provider::secret::KeySource;

/// How long a call waits for a vector, in seconds: the default, and from what to what it can be.
const DEFAULT_TIMEOUT: f64 = 2.0;
const TIMEOUTS: (f64, f64) = (0.1, 60.0);

/// The settings as they are written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// The address of the interface, such as `http://localhost:11434/v1`.
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// The command that prints the key.
    pub api_key_command: Option<String>,
    /// How long a call waits, in seconds.
    pub timeout: Option<f64>,
}

/// The settings in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embeddings {
    /// The address of the interface.
    pub url: String,
    /// The model's name there.
    pub model: String,
    /// Where the key comes from.
    pub key: KeySource,
    /// How long a call waits.
    pub timeout: Duration,
}

pub(super) fn embeddings(
    said: Option<EmbeddingSettings>,
    explained: &mut Vec<Explained>,
) -> Result<Option<Embeddings>, ConfigError> {
    let Some(said) = said else {
        explained.push(Explained { name: "embeddings", value: "off".into(), source: DEFAULTS });
        return Ok(None);
    };
    let source = if said.timeout.is_some() { FILE } else { DEFAULTS };
    let settings = checked(said).map_err(|message| ConfigError::BadValue {
        name: "[embeddings]",
        message,
        origin: FILE,
    })?;
    let timeout = format!("{} s", settings.timeout.as_secs_f64());
    let rows = [
        ("embeddings.url", settings.url.clone(), FILE),
        ("embeddings.model", settings.model.clone(), FILE),
        ("embeddings.key", settings.key.to_string(), FILE),
        ("embeddings.timeout", timeout, source),
    ];
    explained.extend(rows.map(|(name, value, source)| Explained { name, value, source }));
    Ok(Some(settings))
}

fn checked(said: EmbeddingSettings) -> Result<Embeddings, String> {
    let EmbeddingSettings { url, model, api_key_env, api_key_command, timeout } = said;
    check_url(&url)?;
    if model.trim().is_empty() {
        return Err("model must not be empty".to_owned());
    }
    let key = key_source(api_key_env, api_key_command)?;
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    let (least, most) = TIMEOUTS;
    if !(least..=most).contains(&timeout) {
        return Err(format!("timeout must be from {least} to {most} seconds, got {timeout}"));
    }
    Ok(Embeddings { url, model, key, timeout: Duration::from_secs_f64(timeout) })
}

/// Where a key comes from, which is told in one of two ways.
pub(super) fn key_source(
    variable: Option<String>,
    command: Option<String>,
) -> Result<KeySource, String> {
    for (name, text) in [("api-key-env", &variable), ("api-key-command", &command)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(format!("{name} must not be empty"));
        }
    }
    match (variable, command) {
        (Some(_), Some(_)) => Err("has both api-key-env and api-key-command; keep one".to_owned()),
        (Some(name), None) => Ok(KeySource::Environment(name)),
        (None, Some(command)) => Ok(KeySource::Command(command)),
        (None, None) => Ok(KeySource::None),
    }
}

pub(super) fn check_url(url: &str) -> Result<(), String> {
    let example = "such as \"http://localhost:11434/v1\"";
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Err(format!("url must begin with http:// or https://, {example}"));
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err("url must hold no user and no key; use api-key-command for it".to_owned());
    }
    let spaced = url.contains(|c: char| c.is_whitespace() || c.is_control());
    match host.is_empty() || spaced || rest.contains(['?', '#']) {
        true => Err(format!("url must be an address without spaces and parameters, {example}")),
        false => Ok(()),
    }
}
