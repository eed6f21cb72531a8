//! The known models, with the data that a window depends on: their limits, and the ratio of their
//! token counts to the counts of a public vocabulary.
//!
//! A model is found by the longest prefix of its name, since names continue with dates and
//! variants. This module reads no configuration: the user's own values come in as [`Override`]s.

mod table;

use std::sync::Arc;

use serde::Deserialize;

pub use self::table::Abilities;
pub use self::table::TABLE_DATE;
use self::table::{DEFAULT, Row, TABLE};
use super::calibration::Calibration;
use super::{Counter, Measure, TokenizerName};
use crate::names::names;

/// Largest share of a model's limit that a history should fill. Beyond it, pruning is due.
pub(crate) const TARGET_UTILISATION: f64 = 0.8;

/// The limit, factor, tokenizer and abilities that the user sets for some models. `None` keeps the built-in
/// value.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Override {
    /// Beginning of the models' names.
    pub prefix: String,
    /// Maximum number of tokens in a request. 0 counts as `None`.
    pub limit: Option<u64>,
    /// Factor from counts in the vocabulary of `tokenizer` to counts of the model. A value that is
    /// not finite or not above 0 counts as `None`.
    pub factor: Option<f64>,
    /// The nearest public vocabulary.
    pub tokenizer: Option<TokenizerName>,
    /// Whether they call tools.
    pub tools: Option<bool>,
    /// Whether they see pictures.
    pub pictures: Option<bool>,
    /// Whether they can reason more or less.
    pub effort: Option<bool>,
}

names! {
    /// Source of a model's token limit.
    LimitFrom {
        /// A default, because the model is unknown.
        Default => "default",
        /// The built-in table of models.
        Table => "table",
        /// The user's configuration.
        Configuration => "configuration",
        /// The model's server, when asked.
        Server => "server",
        /// The model's server, when it refused a request that was too long.
        Refusal => "refusal",
    }
}

/// A model, with its token limit and the values for counting its tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Name of the model, as the caller gave it.
    pub name: String,
    /// Maximum number of tokens in a request.
    pub limit: u64,
    /// Source of the limit.
    pub limit_from: LimitFrom,
    /// The nearest public vocabulary.
    pub tokenizer: TokenizerName,
    /// Factor from counts in the vocabulary of `tokenizer` to counts of the model.
    pub factor: f64,
    /// Further factor, learned by a [`Calibration`]; 1 without one.
    pub calibrated: f64,
    /// True if the vocabulary of `tokenizer` is the model's own, so that counts are exact.
    pub exact: bool,
    /// What the model can do.
    pub can: Abilities,
    /// True if the table, the user or the model's server gives values for the model. If not, the
    /// values are those of [`DEFAULT`].
    pub known: bool,
}

impl Model {
    /// Returns the model with this name, in any letter case. What neither the table nor `overrides`
    /// tells is taken from [`DEFAULT`]. The table ignores prefixes that vendors and routers add, as
    /// in `anthropic/claude-sonnet-4-5`. The user's prefixes are compared first with the whole
    /// name, then with the part after the last `/`.
    pub fn named(name: &str, overrides: &[Override]) -> Self {
        let whole = name.trim().to_lowercase();
        let bare = whole.rsplit('/').next().unwrap_or(&whole);
        let by_prefix = |row: &'static Row| row.prefixes.iter().map(move |prefix| (*prefix, row));
        let row = longest(TABLE.iter().flat_map(by_prefix), bare);
        let find =
            |name| longest(overrides.iter().map(|given| (given.prefix.as_str(), given)), name);
        let given = find(&whole).or_else(|| find(bare));
        let model = Self::of_row(name, row);
        given.map_or(model.clone(), |given| model.with_override(given))
    }

    /// Returns the model with the factor learned from its provider's reports. A model that has a
    /// public vocabulary of its own needs no correction.
    #[must_use]
    pub fn calibrated(self, calibration: &Calibration) -> Self {
        let calibrated = if self.exact { 1.0 } else { calibration.ratio() };
        Self { calibrated, ..self }
    }

    /// Returns the measure for this model, based on `counter`. The table's factor is for byte pairs
    /// only: an estimate stays a plain quarter of the characters until it is calibrated.
    pub fn measure(&self, counter: &Arc<dyn Counter>) -> Measure {
        let estimate = counter.name() == TokenizerName::Estimate.name();
        let factor = if estimate { self.calibrated } else { self.factor * self.calibrated };
        let exact = self.exact && counter.name() == self.tokenizer.name();
        Measure::plain(Arc::clone(counter)).scaled(factor, exact)
    }

    /// Returns the maximum number of tokens that a history should have: ⌊[`TARGET_UTILISATION`] ·
    /// limit⌋.
    pub fn target(&self) -> u64 {
        (self.limit as f64 * TARGET_UTILISATION).floor() as u64
    }

    fn of_row(name: &str, row: Option<&Row>) -> Self {
        let Row { limit, tokenizer, factor, exact, can, .. } = *row.unwrap_or(&DEFAULT);
        let (name, calibrated, known) = (name.to_owned(), 1.0, row.is_some());
        let limit_from = if known { LimitFrom::Table } else { LimitFrom::Default };
        Self { name, limit, limit_from, tokenizer, factor, calibrated, exact, can, known }
    }

    /// Applies the user's values. A vocabulary that the user names counts as the model's own,
    /// unless a factor says that it is not.
    fn with_override(self, given: &Override) -> Self {
        let given_factor = given.factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        let factor = given_factor.unwrap_or(self.factor);
        let named = given.tokenizer.is_some_and(|named| named != TokenizerName::Estimate);
        let untouched = given.tokenizer.is_none() && factor == self.factor;
        let exact = if untouched { self.exact } else { named && factor == 1.0 };
        let given_limit = given.limit.filter(|limit| *limit > 0);
        Self {
            limit: given_limit.unwrap_or(self.limit),
            limit_from: given_limit.map_or(self.limit_from, |_| LimitFrom::Configuration),
            tokenizer: given.tokenizer.unwrap_or(self.tokenizer),
            factor,
            exact,
            can: Abilities {
                tools: given.tools.or(self.can.tools),
                pictures: given.pictures.or(self.can.pictures),
                effort: given.effort.or(self.can.effort),
            },
            known: true,
            ..self
        }
    }
}

/// Returns the value of the longest prefix with which `name` begins.
fn longest<'a, T>(rows: impl Iterator<Item = (&'a str, T)>, name: &str) -> Option<T> {
    let fitting = rows.filter(|(prefix, _)| name.starts_with(&prefix.to_lowercase()));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::model::table::DEFAULT_LIMIT;

    #[track_caller]
    fn check(name: &str, limit: u64, factor: f64, exact: bool) {
        let model = Model::named(name, &[]);
        assert_eq!((model.limit, model.factor, model.exact), (limit, factor, exact), "{name}");
        assert!(model.known, "{name}");
    }

    #[test]
    fn models_are_found_by_the_longest_prefix() {
        check("gemini-2.5-flash", 1_000_000, 1.3, false);
        check("models/gemini-2.5-pro", 1_000_000, 1.3, false);
        check("gemini-ultra", 100_000, 1.3, false);
        check("claude-4-5-sonnet", 200_000, 1.2, false);
        check("claude-3-5-sonnet-20241022", 200_000, 1.2, false);
        check("anthropic/claude-opus-4.6", 200_000, 1.2, false);
        check("claude-opus-4-7", 200_000, 1.55, false);
        check("Claude-Sonnet-5", 200_000, 1.55, false);
        check("gpt-5-mini", 128_000, 1.0, true);
        check("gpt-4o-mini", 128_000, 1.0, true);
        check("gpt-4.1", 1_000_000, 1.0, true);
        check("gpt-4-1106-preview", 128_000, 1.0, true);
        check("gpt-4-0613", 8_192, 1.0, true);
        check("llama3.2:3b", 131_072, 1.0, false);
        check("meta-llama/Llama-3.1-8B-Instruct", 131_072, 1.0, false);
        check("qwen3:8b", 32_768, 1.0, false);
        check("Qwen/Qwen3-Coder-30B", 262_144, 1.0, false);
        check("gemma-3-12b-it-q4_0.gguf", 131_072, 1.0, false);
        check("gemma2:9b", 8_192, 1.0, false);
        assert_eq!(Model::named("gpt-4-0613", &[]).tokenizer, TokenizerName::Cl100k);
    }

    #[test]
    fn an_unknown_model_is_the_default_and_says_so() {
        let model = Model::named("llama-9", &[]);
        assert_eq!((model.limit, model.known, model.exact), (DEFAULT_LIMIT, false, false));
        assert_eq!((model.name.as_str(), model.target()), ("llama-9", 80_000));
        assert_eq!(Model::named("", &[]).limit, DEFAULT_LIMIT);
    }

    #[test]
    fn the_users_values_override_the_table() {
        let says = |prefix: &str, limit, factor, tokenizer| Override {
            prefix: prefix.into(),
            limit,
            factor,
            tokenizer,
            ..Override::default()
        };
        let overrides = [
            says("claude", Some(1_000_000), None, None),
            says("claude-opus", Some(500_000), Some(1.4), None),
            says("local/", Some(8_000), None, Some(TokenizerName::Cl100k)),
        ];
        let sonnet = Model::named("claude-sonnet-4-5", &overrides);
        assert_eq!((sonnet.limit, sonnet.factor), (1_000_000, 1.2));
        let opus = Model::named("x/Claude-Opus-4-5", &overrides);
        assert_eq!((opus.limit, opus.factor, opus.exact), (500_000, 1.4, false));
        let local = Model::named("local/llama", &overrides);
        assert_eq!((local.limit, local.known, local.exact), (8_000, true, true));
        let measure = local.measure(&TokenizerName::Cl100k.counter());
        assert!(measure.is_exact());
    }

    #[test]
    fn a_measure_is_exact_only_in_the_models_own_vocabulary() {
        let gpt = Model::named("gpt-5", &[]);
        assert!(gpt.measure(&TokenizerName::O200k.counter()).is_exact());
        assert!(!gpt.measure(&TokenizerName::Cl100k.counter()).is_exact());
        let claude = Model::named("claude-sonnet-4-5", &[]);
        let measure = claude.measure(&TokenizerName::O200k.counter());
        assert_eq!((measure.is_exact(), measure.message(100)), (false, 124));
        let estimate = claude.measure(&TokenizerName::Estimate.counter());
        assert_eq!((estimate.is_exact(), estimate.message(100)), (false, 100));
    }

    #[test]
    fn a_calibration_changes_the_factor_of_inexact_models() {
        let mut calibration = Calibration::default();
        (0..100).for_each(|_| calibration.observe(10_000, 15_000));
        let claude = Model::named("claude-sonnet-4-5", &[]).calibrated(&calibration);
        let measure = claude.measure(&TokenizerName::O200k.counter());
        assert!((measure.factor() - 1.8).abs() < 1e-6);
        let gpt = Model::named("gpt-5", &[]).calibrated(&calibration);
        assert_eq!(gpt.measure(&TokenizerName::O200k.counter()).factor(), 1.0);
    }

    #[test]
    fn abilities_come_from_the_table_and_the_user() {
        let can = |name: &str, overrides: &[Override]| Model::named(name, overrides).can;
        let known = |tools, pictures, effort| Abilities {
            tools: Some(tools),
            pictures: Some(pictures),
            effort: Some(effort),
        };
        assert_eq!(can("claude-3-5-haiku-latest", &[]), known(true, true, false));
        assert_eq!(can("claude-3-7-sonnet-latest", &[]), known(true, true, true));
        assert_eq!(can("openai/o3-mini-high", &[]), known(true, false, true));
        assert_eq!(can("nobody-knows-it", &[]), Abilities::default());
        let says = Override { prefix: "o3".into(), effort: Some(false), ..Override::default() };
        assert_eq!(can("o3-mini", &[says]), known(true, false, false));
    }

    #[test]
    fn prefixes_are_unique_and_in_lower_case() {
        let mut prefixes: Vec<&str> =
            TABLE.iter().flat_map(|row| row.prefixes.iter().copied()).collect();
        let count = prefixes.len();
        prefixes.sort_unstable();
        prefixes.dedup();
        assert_eq!(prefixes.len(), count);
        assert!(prefixes.iter().all(|prefix| **prefix == prefix.to_lowercase()));
    }
}
