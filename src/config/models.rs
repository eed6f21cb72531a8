//! Values that the user configures for models: `[[models]]` in the configuration file.

use serde::Deserialize;

use super::{ConfigError, Explained, FILE};
use crate::tokens::TokenizerName;
use crate::tokens::model::Override;

/// Range of a model's limit, in tokens. A smaller limit leaves no room for a window, and a larger
/// limit is a mistake.
const LIMITS: (u64, u64) = (256, 100_000_000);
/// Range of the factor that converts token counts with a public vocabulary into the model's own
/// counts.
const FACTORS: (f64, f64) = (0.1, 10.0);

/// Values that the user configures for all models whose names begin with `prefix`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ModelSettings {
    /// Beginning of the models' names.
    pub prefix: String,
    /// Size of the models' window in tokens.
    pub limit: Option<u64>,
    /// Factor that converts token counts with a public vocabulary into the model's own counts.
    pub factor: Option<f64>,
    /// Public vocabulary that is most similar to the model's own.
    pub tokenizer: Option<TokenizerName>,
}

pub(super) fn overrides(
    said: Vec<ModelSettings>,
    explained: &mut Vec<Explained>,
) -> Result<Vec<Override>, ConfigError> {
    let mut overrides: Vec<Override> = Vec::new();
    for model in said {
        let prefix = model.prefix.trim().to_lowercase();
        let twice = overrides.iter().any(|known| known.prefix == prefix);
        check(&model, &prefix, twice).map_err(|message| ConfigError::BadValue {
            name: "[[models]]",
            message: format!("{:?}: {message}", model.prefix),
            origin: FILE,
        })?;
        explained.push(Explained {
            name: "models",
            value: describe(&model, &prefix),
            source: FILE,
        });
        let ModelSettings { limit, factor, tokenizer, .. } = model;
        overrides.push(Override { prefix, limit, factor, tokenizer });
    }
    Ok(overrides)
}

fn check(model: &ModelSettings, prefix: &str, twice: bool) -> Result<(), String> {
    if prefix.is_empty() {
        return Err("prefix must be the beginning of a model's name".to_owned());
    }
    if twice {
        return Err("prefix is given twice; merge the two tables".to_owned());
    }
    let (least, most) = LIMITS;
    if let Some(limit) = model.limit.filter(|limit| !(least..=most).contains(limit)) {
        return Err(format!("limit must be from {least} to {most} tokens, got {limit}"));
    }
    let (least, most) = FACTORS;
    if let Some(factor) = model.factor.filter(|factor| !(least..=most).contains(factor)) {
        return Err(format!("factor must be from {least} to {most}, got {factor}"));
    }
    match (model.limit, model.factor, model.tokenizer) {
        (None, None, None) => Err("needs a limit, a factor or a tokenizer".to_owned()),
        _ => Ok(()),
    }
}

fn describe(model: &ModelSettings, prefix: &str) -> String {
    let limit = model.limit.map(|limit| format!("limit {limit}"));
    let factor = model.factor.map(|factor| format!("factor {factor}"));
    let tokenizer = model.tokenizer.map(|tokenizer| format!("tokenizer {tokenizer}"));
    let said: Vec<String> = [limit, factor, tokenizer].into_iter().flatten().collect();
    format!("{prefix}*: {}", said.join(", "))
}
