//! Limits, factors and tokenizers that the user sets for models: `[[models]]` in the configuration
//! file.

use super::{ConfigError, DEFAULTS, ExplainedSetting, FILE, bad_table};
use crate::tokens::model::{Override, TABLE_DATE};

/// Range of a model's limit, in tokens. A smaller limit leaves no room for a window, and a larger
/// limit is a mistake.
const LIMITS: (u64, u64) = (256, 100_000_000);
/// Range of the factor that converts token counts with a public vocabulary into the model's own
/// counts.
const FACTORS: (f64, f64) = (0.1, 10.0);

pub(super) fn overrides(
    said: Vec<Override>,
    explained: &mut Vec<ExplainedSetting>,
) -> Result<Vec<Override>, ConfigError> {
    let mut overrides: Vec<Override> = Vec::new();
    for model in said {
        let prefix = model.prefix.trim().to_lowercase();
        let twice = overrides.iter().any(|known| known.prefix == prefix);
        check(&model, &prefix, twice)
            .map_err(|message| bad_table("[[models]]", format!("{:?}: {message}", model.prefix)))?;
        let model = Override { prefix, ..model };
        explained.push(ExplainedSetting { name: "models", value: describe(&model), source: FILE });
        overrides.push(model);
    }
    let value = format!("the built-in table of {TABLE_DATE}");
    explained.push(ExplainedSetting { name: "models", value, source: DEFAULTS });
    Ok(overrides)
}

fn check(model: &Override, prefix: &str, twice: bool) -> Result<(), String> {
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
    let can = [model.tools, model.pictures, model.effort];
    match (model.limit, model.factor, model.tokenizer) {
        (None, None, None) if can.iter().all(Option::is_none) => {
            Err("needs a limit, a factor or a tokenizer, or tools, pictures or effort".to_owned())
        }
        _ => Ok(()),
    }
}

fn describe(model: &Override) -> String {
    let limit = model.limit.map(|limit| format!("limit {limit}"));
    let factor = model.factor.map(|factor| format!("factor {factor}"));
    let tokenizer = model.tokenizer.map(|tokenizer| format!("tokenizer {tokenizer}"));
    let can = [("tools", model.tools), ("pictures", model.pictures), ("effort", model.effort)];
    let can = can.into_iter().filter_map(|(name, can)| Some(format!("{name} {}", can?)));
    let said: Vec<String> = [limit, factor, tokenizer].into_iter().flatten().chain(can).collect();
    format!("{}*: {}", model.prefix, said.join(", "))
}
