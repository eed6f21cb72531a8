//! Chooses which messages of a history a model sees, within a budget of tokens.
//!
#![doc = include_str!("../README.md")]
#![deny(unnameable_types)]

mod error;
mod message;
mod normal;
mod window;

use std::sync::Arc;

use contexture_core::curation::strategy;
use contexture_core::tokens::{Counter, Estimate};

pub use self::error::BudgetTooSmall;
pub use self::message::{Call, Message};
pub use self::window::{Part, Window};
pub use contexture_core::session::message::Role;
#[cfg(feature = "tokenizers")]
pub use contexture_core::tokens::TokenizerName as Tokenizer;

/// Returns options for choosing the messages of a history that a model sees, in at most `budget`
/// tokens. Nothing is stored, and the history stays as it is.
///
/// # Examples
///
/// ```
#[doc = include_str!("../examples/curate.rs")]
/// ```
pub fn curate<M: Message>(history: &[M], budget: u64) -> Curate<'_, M> {
    Curate {
        history,
        budget,
        counter: Arc::new(Estimate),
        strategy: Strategy::default(),
        query: None,
        is_last: false,
        is_normal: false,
    }
}

/// The options for choosing messages from a history.
#[derive(Clone)]
#[must_use = "nothing is chosen until `window` is called"]
pub struct Curate<'a, M> {
    history: &'a [M],
    budget: u64,
    counter: Arc<dyn Counter>,
    strategy: Strategy,
    query: Option<String>,
    is_last: bool,
    is_normal: bool,
}

/// A way of choosing messages. The default chooses anew only when the room is full, so that prompt
/// caches stay valid.
#[derive(Clone, Copy)]
pub struct Strategy(&'static dyn strategy::Strategy);

impl Strategy {
    /// Returns all strategies; the first is the default.
    pub fn all() -> impl Iterator<Item = Self> {
        strategy::ALL.iter().map(|it| Self(*it))
    }

    /// Returns the strategy with this name.
    pub fn named(name: &str) -> Option<Self> {
        strategy::find(name).map(Self)
    }

    /// Returns the name of the strategy.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns what the strategy keeps, as a phrase.
    pub fn keeps(self) -> &'static str {
        self.0.keeps()
    }
}

impl Default for Strategy {
    fn default() -> Self {
        Self(strategy::ALL[0])
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl<M: Message> Curate<'_, M> {
    /// Sets the function that counts the tokens of a text. The default is a quarter of the
    /// characters. Each message costs four tokens more for its role.
    pub fn counter(self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        Self { counter: Arc::new(OwnCounter(count)), ..self }
    }

    /// Sets the vocabulary by which tokens are counted.
    #[cfg(feature = "tokenizers")]
    pub fn tokenizer(self, tokenizer: Tokenizer) -> Self {
        Self { counter: tokenizer.counter(), ..self }
    }

    /// Sets the way of choosing.
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Sets the current question. Messages that help to answer it come first.
    pub fn query(self, query: impl Into<String>) -> Self {
        Self { query: Some(query.into()), ..self }
    }

    /// Says that no longer history follows this one. Then no room is kept free for the messages to
    /// come.
    pub fn last(self) -> Self {
        Self { is_last: true, ..self }
    }

    /// Puts the window into the form that strict servers want. Results directly follow their calls.
    /// A call without a result gets one. Results without a call, and system messages after the first
    /// messages, become messages of the user. Neighbours of the same role stay apart.
    pub fn normalized(self) -> Self {
        Self { is_normal: true, ..self }
    }

    /// Chooses the messages. The same history and options always give the same window.
    ///
    /// # Errors
    /// [`BudgetTooSmall`] if the messages that cannot be left out cost more than the budget.
    pub fn window(self) -> Result<Window, BudgetTooSmall> {
        window::window(&self)
    }
}

impl<M> std::fmt::Debug for Curate<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Curate");
        shown.field("messages", &self.history.len()).field("budget", &self.budget);
        shown.field("strategy", &self.strategy).field("query", &self.query);
        shown.field("is_last", &self.is_last).field("is_normal", &self.is_normal).finish()
    }
}

/// A counter of the program's own.
struct OwnCounter<F>(F);

impl<F: Fn(&str) -> u64 + Send + Sync> Counter for OwnCounter<F> {
    fn name(&self) -> &'static str {
        "own"
    }

    fn count(&self, text: &str) -> u64 {
        (self.0)(text)
    }
}

#[cfg(test)]
mod tests;
