//! Settings of the service that computes vectors for texts: `[embeddings]` in the configuration
//! file.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, DEFAULTS, ExplainedSetting, FILE, bad_table};
use crate::provider::secret::KeySource;
use crate::provider::settings::{BadSetting, EXAMPLE, check_address, key_source};

/// Default maximum time that a call waits for a vector, in seconds.
const DEFAULT_TIMEOUT: f64 = 2.0;
/// Range of the maximum time that a call waits for a vector, in seconds.
const TIMEOUTS: (f64, f64) = (0.1, 60.0);

/// The settings as they are written in the configuration file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct EmbeddingSettings {
    /// Address of the service, such as `http://localhost:11434/v1`.
    pub url: String,
    /// Name of the model, as the service knows it.
    pub model: String,
    /// Name of an environment variable that contains the API key.
    pub api_key_env: Option<String>,
    /// Command that prints the API key.
    pub api_key_command: Option<String>,
    /// Maximum time that a call waits for a vector, in seconds.
    pub timeout: Option<f64>,
}

/// The settings in effect, checked and with defaults filled in.
#[derive(Debug, Clone)]
pub(crate) struct Embeddings {
    /// Address of the service.
    pub url: String,
    /// Name of the model, as the service knows it.
    pub model: String,
    /// Source of the API key.
    pub key: KeySource,
    /// Maximum time that a call waits for a vector.
    pub timeout: Duration,
}

pub(super) fn embeddings(
    said: Option<EmbeddingSettings>,
    explained: &mut Vec<ExplainedSetting>,
) -> Result<Option<Embeddings>, ConfigError> {
    let Some(said) = said else {
        explained.push(ExplainedSetting {
            name: "embeddings",
            value: "off".into(),
            source: DEFAULTS,
        });
        return Ok(None);
    };
    let source = if said.timeout.is_some() { FILE } else { DEFAULTS };
    let settings = checked(said).map_err(|message| bad_table("[embeddings]", message))?;
    let timeout = format!("{} s", settings.timeout.as_secs_f64());
    let rows = [
        ("embeddings.url", settings.url.clone(), FILE),
        ("embeddings.model", settings.model.clone(), FILE),
        ("embeddings.key", settings.key.to_string(), FILE),
        ("embeddings.timeout", timeout, source),
    ];
    explained.extend(rows.map(|(name, value, source)| ExplainedSetting { name, value, source }));
    Ok(Some(settings))
}

fn checked(said: EmbeddingSettings) -> Result<Embeddings, String> {
    let EmbeddingSettings { url, model, api_key_env, api_key_command, timeout } = said;
    let said = |wrong: BadSetting| wrong.to_string();
    check_address("url", &url, EXAMPLE).map_err(said)?;
    if model.trim().is_empty() {
        return Err("model must not be empty".to_owned());
    }
    let key = key_source(None, api_key_env, api_key_command).map_err(said)?;
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    let (least, most) = TIMEOUTS;
    if !(least..=most).contains(&timeout) {
        return Err(format!("timeout must be from {least} to {most} seconds, got {timeout}"));
    }
    Ok(Embeddings { url, model, key, timeout: Duration::from_secs_f64(timeout) })
}
