//! Where the hub is that people share sessions on: `[hub]` in the configuration file.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, DEFAULTS, ExplainedSetting, FILE, bad_table};
use crate::hub::HubAddress;
use crate::provider::settings::key_source;

/// Default maximum time that a search waits for the hub, in seconds.
const DEFAULT_TIMEOUT: f64 = 2.0;
/// Range of that time, in seconds.
const TIMEOUTS: (f64, f64) = (0.1, 60.0);

/// The settings as they are written in the configuration file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HubSettings {
    /// Address of a PostgreSQL database, such as `postgres://ann@db.example.org/team`.
    pub url: String,
    /// Name of an environment variable that contains the password.
    pub password_env: Option<String>,
    /// Command that prints the password.
    pub password_command: Option<String>,
    /// Maximum time that a search waits for the hub, in seconds.
    pub timeout: Option<f64>,
}

pub(super) fn hub(
    said: Option<HubSettings>,
    explained: &mut Vec<ExplainedSetting>,
) -> Result<Option<HubAddress>, ConfigError> {
    let Some(said) = said else {
        explained.push(ExplainedSetting { name: "hub", value: "none".into(), source: DEFAULTS });
        return Ok(None);
    };
    let source = if said.timeout.is_some() { FILE } else { DEFAULTS };
    let address = checked(said).map_err(|message| bad_table("[hub]", message))?;
    let rows = [
        ("hub.url", address.to_string(), FILE),
        ("hub.password", address.password.to_string(), FILE),
        ("hub.timeout", format!("{} s", address.time.as_secs_f64()), source),
    ];
    explained.extend(rows.map(|(name, value, source)| ExplainedSetting { name, value, source }));
    Ok(Some(address))
}

fn checked(said: HubSettings) -> Result<HubAddress, String> {
    let HubSettings { url, password_env, password_command, timeout } = said;
    let password = key_source(None, password_env, password_command)
        .map_err(|wrong| wrong.to_string().replace("api-key", "password"))?;
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    let (least, most) = TIMEOUTS;
    if !(least..=most).contains(&timeout) {
        return Err(format!("timeout must be from {least} to {most} seconds, got {timeout}"));
    }
    HubAddress::new(&url, password, Duration::from_secs_f64(timeout))
}
