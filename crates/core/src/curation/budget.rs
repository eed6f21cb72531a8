//! The number of tokens that a window may have, and the error for a number that is too small.

use super::report::ReportPart;
use super::section::Section;
use crate::wording::counted;

/// Maximum number of tokens to use, even if the context window has more: with more tokens, quality
/// drops and costs rise.
const PRACTICAL_LIMIT: u64 = 100_000;
/// Number of tokens left for the response.
pub const RESERVED: u64 = 4_000;

/// Returns the number of tokens that a window may have for a model that takes `window` tokens: at
/// most 96,000. Leaves [`RESERVED`] tokens for the response, or half of `window` if that is less.
pub fn usable(window: u64) -> u64 {
    let usable = window.min(PRACTICAL_LIMIT);
    usable - RESERVED.min(usable / 2)
}

/// The error for a budget that does not even hold the parts that cannot be left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a budget of {} is too small: the parts that cannot be left out need {needed}: {}",
    counted(*.max_tokens, "token"),
    largest(.parts)
)]
pub struct WindowBudgetTooSmall {
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
    pub what: ReportPart,
    /// Reason why the part cannot be left out.
    pub reason: &'static str,
    /// Cost in tokens.
    pub tokens: u64,
}

/// Maximum number of parts that the error message names.
const NAMED: usize = 5;

/// Lists the largest parts with their sizes; of equally large parts, the earlier comes first.
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
        assert_eq!(usable(1_000_000), 96_000);
        assert_eq!(usable(50_000), 46_000);
        assert_eq!(usable(5_000), 2_500);
    }

    #[test]
    fn the_error_names_the_largest_parts() {
        let part = |number, tokens| Irreducible {
            section: Section::Messages,
            what: ReportPart::Messages(vec![number]),
            reason: "pinned",
            tokens,
        };
        let mut parts: Vec<Irreducible> = (1..=7).map(|number| part(number, number)).collect();
        let system =
            Irreducible { section: Section::SystemPrompt, what: ReportPart::Text, ..part(0, 90) };
        parts.insert(0, system);
        let error = WindowBudgetTooSmall { needed: 118, max_tokens: 9, parts };
        let expected = "a budget of 9 tokens is too small: the parts that cannot be left out need 118: \
                        system-prompt (pinned, 90 tokens), msg-7 (pinned, 7 tokens), \
                        msg-6 (pinned, 6 tokens), msg-5 (pinned, 5 tokens), \
                        msg-4 (pinned, 4 tokens), and 3 more";
        assert_eq!(error.to_string(), expected);
    }
}
