//! The error for a budget that does not hold what cannot be left out.

use std::fmt;

/// Number of messages that the error's text names.
const NAMED: usize = 5;

/// The error for a budget that does not even hold the messages that cannot be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetTooSmall {
    /// Smallest budget with which the same call succeeds, in tokens.
    pub needed: u64,
    /// Budget that was given, in tokens.
    pub budget: u64,
    /// Index of each message that cannot be left out, with the reason.
    pub messages: Vec<(usize, &'static str)>,
}

impl fmt::Display for BudgetTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, budget, messages } = self;
        write!(f, "a budget of {budget} tokens is too small: ")?;
        write!(f, "the messages that cannot be left out need {needed}")?;
        for (at, (index, reason)) in messages.iter().take(NAMED).enumerate() {
            write!(f, "{} message {index} ({reason})", if at == 0 { ":" } else { "," })?;
        }
        match messages.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

impl std::error::Error for BudgetTooSmall {}
