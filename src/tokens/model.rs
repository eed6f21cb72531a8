//! The known models, with the data that a window depends on: their limits, and the ratio of their
//! token counts to the counts of a public vocabulary.
//!
//! A model is found by the longest prefix of its name, since names continue with dates and
//! variants. This module reads no configuration: the user's own values come in as [`Override`]s.

use std::sync::Arc;

use serde::Deserialize;

use super::calibration::Calibration;
use super::{Counter, Measure, TokenizerName};
use crate::names::names;

/// Limit of an unknown model, in tokens.
pub(crate) const DEFAULT_LIMIT: u64 = 100_000;

/// Largest share of a model's limit that a history should fill. Beyond it, pruning is due.
pub(crate) const TARGET_UTILISATION: f64 = 0.8;

/// Limit, tokenizer and factor for an unknown model.
pub(crate) const DEFAULT: Row =
    Row { exact: false, ..public(&[], DEFAULT_LIMIT, TokenizerName::O200k) };

/// Models by the beginnings of their names. Limits are those that vendors publish, with two
/// exceptions: `gpt-5` has the 128,000 that pruning was designed for, and a Gemini model of an
/// unknown version has [`DEFAULT_LIMIT`]. Factors are relative to `o200k`; a calibration corrects
/// them.
pub(crate) const TABLE: &[Row] = &[
    private(&["gemini-1.5-", "gemini-2.0-", "gemini-2.5-", "gemini-3"], 1_000_000, GEMINI),
    private(&["gemini"], DEFAULT_LIMIT, GEMINI),
    // Claude's tokenizer changed after 4.6. A name without a version counts as a new one, since the
    // new tokenizer gives the larger counts.
    private(&["claude"], 200_000, CLAUDE),
    private(&["claude-1", "claude-2", "claude-instant"], 100_000, CLAUDE_TO_4_6),
    private(&["claude-2.1", "claude-3", "claude-4"], 200_000, CLAUDE_TO_4_6),
    private(&["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"], 200_000, CLAUDE_TO_4_6),
    private(&["claude-4-7", "claude-4-8", "claude-4-9"], 200_000, CLAUDE),
    private(&["claude-4.7", "claude-4.8", "claude-4.9"], 200_000, CLAUDE),
    private(&["claude-opus-4-7", "claude-opus-4-8", "claude-opus-4-9"], 200_000, CLAUDE),
    private(&["claude-opus-4.7", "claude-opus-4.8", "claude-opus-4.9"], 200_000, CLAUDE),
    private(&["claude-sonnet-4-7", "claude-sonnet-4-8", "claude-sonnet-4-9"], 200_000, CLAUDE),
    private(&["claude-sonnet-4.7", "claude-sonnet-4.8", "claude-sonnet-4.9"], 200_000, CLAUDE),
    private(&["claude-haiku-4-7", "claude-haiku-4-8", "claude-haiku-4-9"], 200_000, CLAUDE),
    private(&["claude-haiku-4.7", "claude-haiku-4.8", "claude-haiku-4.9"], 200_000, CLAUDE),
    public(&["gpt-5", "gpt-4o", "chatgpt-4o", "gpt-oss", "o1-mini"], 128_000, TokenizerName::O200k),
    public(&["gpt-4.1"], 1_000_000, TokenizerName::O200k),
    public(&["o1", "o3", "o4-mini"], 200_000, TokenizerName::O200k),
    public(&["gpt-4-turbo", "gpt-4-1106", "gpt-4-0125"], 128_000, TokenizerName::Cl100k),
    public(&["gpt-4-32k"], 32_768, TokenizerName::Cl100k),
    public(&["gpt-4"], 8_192, TokenizerName::Cl100k),
    public(&["gpt-3.5-turbo"], 16_385, TokenizerName::Cl100k),
    // Open models, with the limits that they were made for. A server often runs them with less, and
    // most servers tell.
    private(&["llama-3.1", "llama-3.2", "llama-3.3", "meta-llama-3.1"], 131_072, OPEN),
    private(&["llama3.1", "llama3.2", "llama3.3"], 131_072, OPEN),
    private(&["llama3", "llama-3", "meta-llama-3"], 8_192, OPEN),
    private(&["llama2", "llama-2"], 4_096, OPEN),
    private(&["qwen2.5", "qwen3"], 32_768, OPEN),
    private(&["qwen3-coder", "qwen3-next"], 262_144, OPEN),
    private(&["mistral-7b", "mixtral", "codestral-22b"], 32_768, OPEN),
    private(&["mistral-nemo", "mistral-large", "mistral-small3.1", "pixtral"], 131_072, OPEN),
    private(&["mistral-small-3.1", "mistral-small-3.2", "mistral-small3.2"], 131_072, OPEN),
    private(&["devstral"], 131_072, OPEN),
    private(&["gemma2", "gemma-2", "gemma-7b", "gemma:"], 8_192, OPEN),
    private(&["gemma3:1b", "gemma-3-1b", "gemma3n", "gemma-3n"], 32_768, OPEN),
    private(&["gemma3", "gemma-3"], 131_072, OPEN),
    private(&["phi4", "phi-4"], 16_384, OPEN),
    private(&["phi4-mini", "phi-4-mini"], 131_072, OPEN),
    private(&["deepseek-chat", "deepseek-reasoner"], 128_000, OPEN),
    private(&["command-r"], 128_000, OPEN),
    private(&["grok-3"], 131_072, OPEN),
    private(&["grok-4"], 256_000, OPEN),
];

const GEMINI: f64 = 1.3;
const CLAUDE: f64 = 1.55;
const CLAUDE_TO_4_6: f64 = 1.2;
/// Factor for models with a large vocabulary of their own.
const OPEN: f64 = 1.0;

/// Limit, tokenizer and factor for the models whose names begin with one of `prefixes`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// Beginnings of the models' names, in lower case.
    pub prefixes: &'static [&'static str],
    /// Maximum number of tokens in a request.
    pub limit: u64,
    /// The nearest public vocabulary.
    pub tokenizer: TokenizerName,
    /// Factor from counts in the vocabulary of `tokenizer` to counts of the model.
    pub factor: f64,
    /// True if the vocabulary of `tokenizer` is the model's own.
    pub exact: bool,
}

/// The limit, factor and tokenizer that the user sets for some models. `None` keeps the built-in
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
        let Row { limit, tokenizer, factor, exact, .. } = *row.unwrap_or(&DEFAULT);
        let (name, calibrated, known) = (name.to_owned(), 1.0, row.is_some());
        let limit_from = if known { LimitFrom::Table } else { LimitFrom::Default };
        Self { name, limit, limit_from, tokenizer, factor, calibrated, exact, known }
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
            known: true,
            ..self
        }
    }
}

/// Creates a row for models that have a public vocabulary.
const fn public(prefixes: &'static [&'static str], limit: u64, tokenizer: TokenizerName) -> Row {
    Row { prefixes, limit, tokenizer, factor: 1.0, exact: true }
}

/// Creates a row for models that have no public vocabulary.
const fn private(prefixes: &'static [&'static str], limit: u64, factor: f64) -> Row {
    Row { prefixes, limit, tokenizer: TokenizerName::O200k, factor, exact: false }
}

/// Returns the value of the longest prefix with which `name` begins.
fn longest<'a, T>(rows: impl Iterator<Item = (&'a str, T)>, name: &str) -> Option<T> {
    let fitting = rows.filter(|(prefix, _)| name.starts_with(&prefix.to_lowercase()));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

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
