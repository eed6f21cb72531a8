//! Which models there are, as far as a window depends on it: how much they take, and how their
//! tokens relate to those of a public vocabulary.
//!
//! A model is found by the longest prefix of its name, since names go on with dates and variants.
//! It knows no configuration: what a user says otherwise is given as [`Override`]s.

use std::sync::Arc;

use super::calibration::Calibration;
use super::{Counter, Measure, TokenizerName};

/// How much a model takes of which nothing is known, in tokens.
pub const DEFAULT_LIMIT: u64 = 100_000;

/// How full of a model's limit a window should be at most; beyond it, pruning is called for.
pub const TARGET_UTILISATION: f64 = 0.8;

/// What is taken for a model of which nothing is known.
pub const DEFAULT: Row = public(&[], DEFAULT_LIMIT, TokenizerName::O200k).inexact();

/// Models by the beginnings of their names. Limits are the vendors' published ones, except that
/// `gpt-5` is held to the 128,000 that the design of pruning gives it. Factors are relative to
/// `o200k`; a calibration corrects them.
pub const TABLE: &[Row] = &[
    private(&["gemini-1.5-", "gemini-2.0-", "gemini-2.5-", "gemini-3"], 1_000_000, GEMINI),
    private(&["gemini"], DEFAULT_LIMIT, GEMINI),
    // Claude's tokenizer changed after 4.6; a name that says no version is taken for a new one,
    // since its counts are the larger ones.
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
];

const GEMINI: f64 = 1.3;
const CLAUDE: f64 = 1.55;
const CLAUDE_TO_4_6: f64 = 1.2;

/// Models whose names begin alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// What their names begin with, in lower case.
    pub prefixes: &'static [&'static str],
    /// How many tokens they take.
    pub limit: u64,
    /// The public vocabulary that comes nearest.
    pub tokenizer: TokenizerName,
    /// By how much their tokens are more than those of that vocabulary.
    pub factor: f64,
    /// Whether that vocabulary is their own.
    pub exact: bool,
}

/// What a user says of models otherwise than [`TABLE`]; what is `None` stays as it is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Override {
    /// What the models' names begin with.
    pub prefix: String,
    /// How many tokens they take; 0 is as good as `None`.
    pub limit: Option<u64>,
    /// By how much their tokens are more than those of the vocabulary; what is not finite and
    /// above 0 is as good as `None`.
    pub factor: Option<f64>,
    /// The vocabulary that comes nearest.
    pub tokenizer: Option<TokenizerName>,
}

/// A model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name, as it was asked for.
    pub name: String,
    /// How many tokens it takes.
    pub limit: u64,
    /// The public vocabulary that comes nearest.
    pub tokenizer: TokenizerName,
    /// By how much its tokens are more than those of that vocabulary.
    pub factor: f64,
    /// By how much more they have turned out to be; 1 without a [`Calibration`].
    pub calibrated: f64,
    /// Whether that vocabulary is its own, so that counts are no estimates.
    pub exact: bool,
    /// Whether the table or the user knows it; [`DEFAULT`] was used otherwise.
    pub known: bool,
}

impl Model {
    /// The model of this name, whatever its case. What vendors and routers put before a name,
    /// as in `anthropic/claude-sonnet-4-5`, does not matter to the table; the user's prefixes are
    /// compared with the whole name first.
    pub fn named(name: &str, overrides: &[Override]) -> Self {
        let whole = name.trim().to_lowercase();
        let bare = whole.rsplit('/').next().unwrap_or(&whole);
        let row = longest(TABLE.iter().flat_map(Row::by_prefix), bare);
        let said = |name| longest(overrides.iter().map(|said| (said.prefix.as_str(), said)), name);
        let said = said(&whole).or_else(|| said(bare));
        let model = Self::of_row(name, row);
        said.map_or(model.clone(), |said| model.but(said))
    }

    /// The same with the factor that its provider's reports have shown. A vocabulary of its own
    /// needs no correction.
    #[must_use]
    pub fn calibrated(self, calibration: &Calibration) -> Self {
        let calibrated = if self.exact { 1.0 } else { calibration.ratio() };
        Self { calibrated, ..self }
    }

    /// What texts and messages cost for it when `counter` has counted them. The factor is that of
    /// byte pairs: an estimate stays the plain quarter of the characters until it is calibrated.
    pub fn measure(&self, counter: &Arc<dyn Counter>) -> Measure {
        let estimate = counter.name() == TokenizerName::Estimate.name();
        let factor = if estimate { self.calibrated } else { self.factor * self.calibrated };
        let exact = self.exact && counter.name() == self.tokenizer.name();
        Measure::plain(Arc::clone(counter)).scaled(factor, exact)
    }

    /// How many tokens a history should have at most: ⌊[`TARGET_UTILISATION`] · limit⌋.
    pub fn target(&self) -> u64 {
        (self.limit as f64 * TARGET_UTILISATION).floor() as u64
    }

    fn of_row(name: &str, row: Option<&Row>) -> Self {
        let Row { limit, tokenizer, factor, exact, .. } = *row.unwrap_or(&DEFAULT);
        let known = row.is_some();
        Self { name: name.into(), limit, tokenizer, factor, calibrated: 1.0, exact, known }
    }

    /// A vocabulary that the user names is taken for the model's own, unless a factor says that it
    /// is not.
    fn but(self, said: &Override) -> Self {
        let said_factor = said.factor.filter(|factor| factor.is_finite() && *factor > 0.0);
        let factor = said_factor.unwrap_or(self.factor);
        let named = said.tokenizer.is_some_and(|named| named != TokenizerName::Estimate);
        let untouched = said.tokenizer.is_none() && factor == self.factor;
        let exact = if untouched { self.exact } else { named && factor == 1.0 };
        Self {
            limit: said.limit.filter(|limit| *limit > 0).unwrap_or(self.limit),
            tokenizer: said.tokenizer.unwrap_or(self.tokenizer),
            factor,
            exact,
            known: true,
            ..self
        }
    }
}

impl Row {
    fn by_prefix(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.prefixes.iter().map(move |prefix| (*prefix, self))
    }

    const fn inexact(self) -> Self {
        Self { exact: false, ..self }
    }
}

/// Models whose vocabulary is public.
const fn public(prefixes: &'static [&'static str], limit: u64, tokenizer: TokenizerName) -> Row {
    Row { prefixes, limit, tokenizer, factor: 1.0, exact: true }
}

/// Models whose vocabulary is not.
const fn private(prefixes: &'static [&'static str], limit: u64, factor: f64) -> Row {
    Row { prefixes, limit, tokenizer: TokenizerName::O200k, factor, exact: false }
}

/// What goes with the longest of the prefixes with which `name` begins.
fn longest<'a, T>(rows: impl Iterator<Item = (&'a str, T)>, name: &str) -> Option<T> {
    let fitting = rows.filter(|(prefix, _)| begins(name, prefix));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, row)| row)
}

fn begins(name: &str, prefix: &str) -> bool {
    name.starts_with(&prefix.to_lowercase())
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
    fn what_the_user_says_goes_before_the_table() {
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
    fn a_calibration_moves_the_factor_of_what_is_not_exact() {
        let mut calibration = Calibration::default();
        (0..100).for_each(|_| calibration.observe(10_000, 15_000));
        let claude = Model::named("claude-sonnet-4-5", &[]).calibrated(&calibration);
        let measure = claude.measure(&TokenizerName::O200k.counter());
        assert!((measure.factor() - 1.8).abs() < 1e-6);
        let gpt = Model::named("gpt-5", &[]).calibrated(&calibration);
        assert_eq!(gpt.measure(&TokenizerName::O200k.counter()).factor(), 1.0);
    }

    #[test]
    fn no_prefix_is_there_twice_and_all_are_lower_case() {
        let mut prefixes: Vec<&str> =
            TABLE.iter().flat_map(|row| row.prefixes.iter().copied()).collect();
        let count = prefixes.len();
        prefixes.sort_unstable();
        prefixes.dedup();
        assert_eq!(prefixes.len(), count);
        assert!(prefixes.iter().all(|prefix| **prefix == prefix.to_lowercase()));
    }
}
