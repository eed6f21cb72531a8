//! Costs of texts and messages for a certain model: a counter, its factor, and the overhead of each
//! message.

use std::sync::Arc;

use super::Counter;

/// Number of tokens that a model adds to each message for its role. `OpenAI` documents this number
/// for its chat format; other vendors' numbers are close to it.
pub(crate) const ROLE_OVERHEAD: u64 = 4;

/// The measure of costs for a model. Stored counts are unscaled, so that they stay valid when the
/// model or its factor changes.
#[derive(Clone)]
pub struct Measure {
    counter: Arc<dyn Counter>,
    factor: f64,
    overhead: u64,
    exact: bool,
}

impl Measure {
    /// Creates a measure of the counter alone: unscaled counts, and [`ROLE_OVERHEAD`] for each
    /// message. An estimate has no overhead.
    pub fn plain(counter: Arc<dyn Counter>) -> Self {
        let estimate = counter.name() == "estimate";
        let overhead = if estimate { 0 } else { ROLE_OVERHEAD };
        Self { counter, factor: 1.0, overhead, exact: !estimate }
    }

    /// Returns the measure with [`ROLE_OVERHEAD`] for each message, whatever the counter.
    #[must_use]
    pub fn with_roles(self) -> Self {
        Self { overhead: ROLE_OVERHEAD, ..self }
    }

    /// Returns the measure for a model whose tokens are `factor` times those of the counter.
    /// `exact` tells whether the counter's vocabulary is the model's own.
    #[must_use]
    pub fn scaled(self, factor: f64, exact: bool) -> Self {
        Self { factor, exact, ..self }
    }

    /// Returns the cost of a text, in tokens.
    pub fn text(&self, text: &str) -> u64 {
        self.scale(self.counter.count(text))
    }

    /// Returns the cost of a message whose content and calls have `counted` tokens.
    pub fn message(&self, counted: u64) -> u64 {
        self.scale(counted) + self.overhead
    }

    /// Returns the cost of a message that consists of one text.
    pub fn note(&self, text: &str) -> u64 {
        self.message(self.counter.count_again(text, &|| true).unwrap_or_default())
    }

    /// Returns the underlying counter.
    pub fn counter(&self) -> &Arc<dyn Counter> {
        &self.counter
    }

    /// Returns whether the counts are the model's own rather than estimates.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns the factor by which counts are multiplied.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Returns the tokens that each message costs besides its content and calls.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }

    /// Returns the cost of `messages` messages whose contents and calls have `counted` tokens
    /// together. As costs are rounded up for each message, that of one after the other is higher by
    /// less than a token for each.
    pub fn messages(&self, messages: u64, counted: u64) -> u64 {
        self.scale(counted) + messages * self.overhead
    }

    /// Returns whether the other measure gives every text the same cost.
    pub fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.counter, &other.counter)
            && (self.factor, self.overhead) == (other.factor, other.overhead)
    }

    fn scale(&self, counted: u64) -> u64 {
        if self.factor == 1.0 { counted } else { (counted as f64 * self.factor).ceil() as u64 }
    }
}
