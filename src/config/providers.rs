//! The models that sessions can use: `[[providers]]` in the configuration file.

use super::{ConfigError, DEFAULTS, ExplainedSetting, FILE, bad_table};
use crate::provider::settings::{CheckedProvider, ProviderSettings};

pub(super) fn providers(
    said: Vec<ProviderSettings>,
    explained: &mut Vec<ExplainedSetting>,
) -> Result<Vec<CheckedProvider>, ConfigError> {
    if said.is_empty() {
        explained.push(ExplainedSetting {
            name: "providers",
            value: "none".into(),
            source: DEFAULTS,
        });
    }
    let mut providers: Vec<CheckedProvider> = Vec::new();
    for provider in said {
        let name = provider.name.clone();
        let bad = |message: &str| bad_table("[[providers]]", format!("{name:?}: {message}"));
        if providers.iter().any(|known| known.name == name) {
            return Err(bad("name is given twice; give each provider its own name"));
        }
        if provider.api_key.is_some() {
            return Err(bad("api-key must not be in a file; use api-key-env or api-key-command"));
        }
        let configured = provider.checked().map_err(|wrong| bad(&wrong.to_string()))?;
        let CheckedProvider { name, model, from, .. } = &configured;
        let value = format!("{name}: {model} of {from}");
        explained.push(ExplainedSetting { name: "providers", value, source: FILE });
        let at = if configured.default { 0 } else { providers.len() };
        providers.insert(at, configured);
    }
    Ok(providers)
}
