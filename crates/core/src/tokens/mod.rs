//! Counts the tokens of a text, exactly or by estimate.
//!
//! This module depends only on texts and vocabularies, not on items, formats or budgets. Counting
//! is a pure function of the text. The vocabularies are part of the program, so nothing is read or
//! fetched.

#[cfg(feature = "tokenizers")]
mod bpe;
pub mod calibration;
mod measure;
pub mod model;

#[cfg(feature = "tokenizers")]
use std::sync::Arc;

use crate::names::names;

#[cfg(feature = "tokenizers")]
pub use bpe::Bpe;
pub use measure::Measure;

/// A counter of tokens. The same text always gives the same count.
pub trait Counter: Send + Sync {
    /// Returns the counter's name in the client protocol: `o200k`, `cl100k` or `estimate`.
    fn name(&self) -> &'static str;

    /// Counts the tokens of `text`; 0 for the empty text.
    fn count(&self, text: &str) -> u64;

    /// Like [`count`](Self::count), but returns `None` once the count is no longer wanted. Slow
    /// counters check `is_wanted` now and then.
    fn count_while(&self, text: &str, _is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        Some(self.count(text))
    }

    /// Like [`count_while`](Self::count_while), for a text most of whose lines were counted before.
    /// Slow counters remember the lines.
    fn count_again(&self, text: &str, is_wanted: &(dyn Fn() -> bool + Sync)) -> Option<u64> {
        self.count_while(text, is_wanted)
    }
}

names! {
    /// The name of a counter, as a configuration gives it.
    #[derive(Default)]
    TokenizerName {
        /// Byte pairs of `OpenAI`'s models since GPT-4o. Close enough for other current models.
        #[default]
        O200k => "o200k",
        /// Byte pairs of GPT-3.5 and GPT-4.
        Cl100k => "cl100k",
        /// A quarter of the characters: quick, needs no vocabulary, and errs by 7–15 % on code.
        Estimate => "estimate",
    }
}

#[cfg(feature = "tokenizers")]
impl TokenizerName {
    /// Creates the counter. This is cheap; a vocabulary is loaded by its first count.
    pub fn counter(self) -> Arc<dyn Counter> {
        match self {
            Self::O200k => Arc::new(Bpe::O200K),
            Self::Cl100k => Arc::new(Bpe::CL100K),
            Self::Estimate => Arc::new(Estimate),
        }
    }
}

/// A counter of one token for every four characters, rounded up: the rule of thumb that model
/// vendors give for English prose.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimate;

impl Counter for Estimate {
    fn name(&self) -> &'static str {
        TokenizerName::Estimate.name()
    }

    fn count(&self, text: &str) -> u64 {
        (text.chars().count() as u64).div_ceil(4)
    }
}

#[cfg(all(test, feature = "tokenizers"))]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_a_quarter_of_the_characters_rounded_up() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ééééé", 2)] {
            assert_eq!(Estimate.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn every_name_leads_to_its_counter() {
        for tokenizer in TokenizerName::ALL {
            let name = tokenizer.name();
            let counter = TokenizerName::from_name(name).map(TokenizerName::counter);
            assert_eq!(counter.map(|counter| counter.name()), Some(name));
            assert_eq!(serde_json::to_string(tokenizer).unwrap(), format!("\"{name}\""));
        }
        assert!(TokenizerName::from_name("gpt-4o").is_none());
    }
}
