//! The number of tokens that a window may have, and the error for a number that is too small.

use super::report::What;
use super::section::Section;
use crate::wording::counted;

/// Default size of a model's context window, in tokens.
pub(crate) const WINDOW: u64 = 200_000;
/// Default maximum number of tokens to use, even if the context window has more: with more tokens,
/// quality drops and costs rise.
pub(crate) const PRACTICAL_LIMIT: u64 = 100_000;
/// Default number of tokens left for the response.
pub(crate) const RESERVED: u64 = 4_000;

/// The number of tokens that a window may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    window: u64,
    practical: u64,
    reserved: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { window: WINDOW, practical: PRACTICAL_LIMIT, reserved: RESERVED }
    }
}

impl Budget {
    /// Returns this budget for a model that takes `window` tokens. The reserve for the response
    /// becomes at most half of the tokens that may be used.
    #[must_use]
    pub(crate) fn within(self, window: u64) -> Self {
        let usable = window.min(self.practical);
        Self { window, reserved: self.reserved.min(usable / 2), ..self }
    }

    /// Returns the number of tokens that a window may have: 96,000 by default.
    pub(crate) fn usable(&self) -> u64 {
        self.window.min(self.practical).saturating_sub(self.reserved)
    }
}

/// The error for a budget that does not even hold the parts that cannot be left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a budget of {} is too small: the parts that cannot be left out need {needed}: {}",
    counted(*.max_tokens, "token"),
    largest(.parts)
)]
pub struct BudgetTooSmall {
    /// Smallest budget with which the same request succeeds, in tokens.
    pub needed: u64,
    /// Budget that was given, in tokens.
    pub max_tokens: u64,
    /// Parts that cannot be left out, in the order of the window.
    pub parts: Vec<Irreducible>,
}

/// A part of a window that cannot be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irreducible {
    /// Section of the part.
    pub section: Section,
    /// The part itself.
    pub what: What,
    /// Reason why the part cannot be left out.
    pub reason: &'static str,
    /// Cost in tokens.
    pub tokens: u64,
}

/// Maximum number of parts that the error message names.
const NAMED: usize = 5;

/// Lists the largest parts with their sizes. If parts are equally large, the earlier one comes
/// first.
fn largest(parts: &[Irreducible]) -> String {
    let mut by_size: Vec<&Irreducible> = parts.iter().collect();
    by_size.sort_by_key(|part| std::cmp::Reverse(part.tokens));
    let name = |part: &&Irreducible| {
        let what = part.what.label(part.section);
        format!("{what} ({}, {})", part.reason, counted(part.tokens, "token"))
    };
    let mut named: Vec<String> = by_size.iter().take(NAMED).map(name).collect();
    if parts.len() > NAMED {
        named.push(format!("and {} more", parts.len() - NAMED));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_leaves_96000() {
        assert_eq!(Budget::default().usable(), 96_000);
        assert_eq!(Budget::default().within(1_000_000).usable(), 96_000);
        assert_eq!(Budget::default().within(50_000).usable(), 46_000);
        assert_eq!(Budget::default().within(5_000).usable(), 2_500);
    }

    #[test]
    fn the_error_names_the_largest_parts() {
        let part = |number, tokens| Irreducible {
            section: Section::Messages,
            what: What::Messages(vec![number]),
            reason: "pinned",
            tokens,
        };
        let mut parts: Vec<Irreducible> = (1..=7).map(|number| part(number, number)).collect();
        let system =
            Irreducible { section: Section::SystemPrompt, what: What::Text, ..part(0, 90) };
        parts.insert(0, system);
        let error = BudgetTooSmall { needed: 118, max_tokens: 9, parts };
        let expected = "a budget of 9 tokens is too small: the parts that cannot be left out need 118: \
                        system-prompt (pinned, 90 tokens), msg-7 (pinned, 7 tokens), \
                        msg-6 (pinned, 6 tokens), msg-5 (pinned, 5 tokens), \
                        msg-4 (pinned, 4 tokens), and 3 more";
        assert_eq!(error.to_string(), expected);
    }
}
