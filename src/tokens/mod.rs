//! How many tokens a text has, exactly or by estimate.
//!
//! It knows texts and vocabularies, and nothing of items, formats or budgets. Counting is a pure
//! function of the text; the vocabularies are part of the program, so nothing is read or fetched.

mod bpe;
pub mod calibration;
mod measure;
pub mod model;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use bpe::Bpe;
pub use calibration::Calibration;
pub use measure::{Measure, ROLE_OVERHEAD};
pub use model::Model;

/// Counts the tokens of texts, the same text always alike.
pub trait Counter: Send + Sync {
    /// The wire name of what is counted: `o200k`, `cl100k` or `estimate`.
    fn name(&self) -> &'static str;

    /// How many tokens `text` has; 0 for the empty text.
    fn count(&self, text: &str) -> u64;
}

/// The counter with this wire name; `None` for a name that is not in [`TokenizerName::ALL`].
pub fn counter(name: &str) -> Option<Arc<dyn Counter>> {
    TokenizerName::from_name(name).map(TokenizerName::counter)
}

/// Which counter to use, as a configuration names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenizerName {
    /// The byte pairs of `OpenAI`'s models since GPT-4o; near enough for other current models.
    #[default]
    O200k,
    /// The byte pairs of GPT-3.5 and GPT-4.
    Cl100k,
    /// A quarter of the characters: quick, needs no vocabulary, errs by 7–15 % on code.
    Estimate,
}

impl std::fmt::Display for TokenizerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl TokenizerName {
    /// Every name, in the order in which errors list them.
    pub const ALL: &'static [Self] = &[Self::O200k, Self::Cl100k, Self::Estimate];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Estimate => "estimate",
        }
    }

    /// The tokenizer with this wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tokenizer| tokenizer.name() == name)
    }

    /// The counter itself. Making it costs nothing; a vocabulary is loaded by its first count.
    pub fn counter(self) -> Arc<dyn Counter> {
        match self {
            Self::O200k => Arc::new(Bpe::O200K),
            Self::Cl100k => Arc::new(Bpe::CL100K),
            Self::Estimate => Arc::new(Estimate),
        }
    }
}

/// One token for every four characters, rounded up: the rule of thumb that model vendors give for
/// English prose.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_a_quarter_of_the_characters_rounded_up() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ééééé", 2)] {
            assert_eq!(Estimate.count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn every_name_leads_to_the_counter_that_bears_it() {
        for tokenizer in TokenizerName::ALL {
            let name = tokenizer.name();
            assert_eq!(counter(name).map(|counter| counter.name()), Some(name));
            assert_eq!(serde_json::to_string(tokenizer).unwrap(), format!("\"{name}\""));
        }
        assert!(counter("gpt-4o").is_none());
    }
}
