//! Strategies: each chooses what of a history is shown within a number of tokens.
//!
//! A strategy is one file that implements [`Strategy`] and one line in [`ALL`].

pub mod importance;
mod query;
mod rank;
pub mod selection;
mod show;
pub mod sliding;
mod tiered;

use importance::Importance;
use sliding::Sliding;

use super::unit::History;

/// Chooses what of a history is shown.
pub trait Strategy: Sync {
    /// Its name on the wire.
    fn name(&self) -> &'static str;

    /// What it does, in a sentence, for the documentation.
    fn doc(&self) -> &'static str;

    /// Chooses. The result costs at most [`Aim::budget`]; every unit of the history is in
    /// [`Projection::verdicts`], and those that can never be left out are shown unchanged.
    /// The caller has made sure that those alone fit.
    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection;
}

/// What a strategy works towards.
#[derive(Debug, Clone, Copy)]
pub struct Aim<'a> {
    /// How many tokens the projection may cost.
    pub budget: u64,
    /// What is being asked, when something is.
    pub query: Option<&'a str>,
}

/// What is shown of a history.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Projection {
    /// What is shown, in its order.
    pub shown: Vec<Shown>,
    /// Of each unit of the history, in order, what became of it.
    pub verdicts: Vec<Verdict>,
}

/// Something that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A message as it is: its index in the history.
    Whole(usize),
    /// A message with another content that says where the original is.
    Shortened {
        /// The message's index in the history.
        index: usize,
        /// What stands in place of its content.
        content: String,
        /// What the message now costs.
        tokens: u64,
    },
    /// A note of the system in place of what is left out.
    Note {
        /// The note.
        content: String,
        /// What it costs.
        tokens: u64,
    },
}

/// What became of a unit, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What became of it.
    pub fate: Fate,
    /// Why, in a few words.
    pub reason: &'static str,
    /// Its score with its named parts, from strategies that score; the parts sum up to it unless
    /// a cap is named among them.
    pub score: Option<Score>,
}

/// What became of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Shown as it is.
    Kept,
    /// Shown with shortened content.
    Shortened,
    /// Not shown.
    Dropped,
}

/// A score and what it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The score.
    pub total: f64,
    /// Its parts by name.
    pub parts: Vec<(&'static str, f64)>,
}

/// Every strategy, in the order in which errors list them; the first is the default.
pub static ALL: &[&dyn Strategy] = &[&tiered::Tiered, &query::Query, &Sliding, &Importance];

/// The strategy with this name.
pub fn find(name: &str) -> Option<&'static dyn Strategy> {
    ALL.iter().copied().find(|strategy| strategy.name() == name)
}
