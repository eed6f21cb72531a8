//! Strategies: each chooses the part of a history to show within a number of tokens.
//!
//! A new strategy needs a module that implements [`Strategy`], and an entry in [`ALL`].

mod choice;
pub mod importance;
mod query;
mod rank;
pub mod selection;
pub mod sliding;
mod tiered;

use importance::Importance;
use sliding::Sliding;

pub use self::choice::{Aim, Fate, Projection, Score, Shown, Strategy, Verdict};

/// All strategies, in the order in which errors list them. The first is the default.
pub static ALL: &[&dyn Strategy] = &[&tiered::Tiered, &query::QueryStrategy, &Sliding, &Importance];

/// Returns the names of all strategies.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|strategy| strategy.name()).collect()
}

/// Finds the strategy with this name.
pub fn find(name: &str) -> Option<&'static dyn Strategy> {
    ALL.iter().copied().find(|strategy| strategy.name() == name)
}
