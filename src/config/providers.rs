//! The models that sessions can use: `[[providers]]` in the configuration file.

use super::{ConfigError, DEFAULTS, Explained, FILE};
use crate::provider::settings::{Configured, ProviderSettings};

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
        let twice =
            known.then(|| "name is given twice; give each provider its own name".to_owned());
        let checked = || provider.checked().map_err(|wrong| wrong.to_string());
        let configured =
            twice.map_or_else(checked, Err).map_err(|message| ConfigError::BadValue {
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
