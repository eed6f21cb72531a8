//! What texts and messages cost for a certain model: a counter, its factor, and what each message
//! costs beside its text.

use std::sync::Arc;

use super::Counter;

/// What a model adds to each message for its role, in tokens: `OpenAI`'s documented figure for its
/// chat format, and near those of others.
pub const ROLE_OVERHEAD: u64 = 4;

/// Says what things cost for a model. Counts are kept unscaled, so that they stay good when the
/// model or its factor changes.
#[derive(Clone)]
pub struct Measure {
    counter: Arc<dyn Counter>,
    factor: f64,
    overhead: u64,
    exact: bool,
}

impl Measure {
    /// The counter alone: its counts as they are, and for each message [`ROLE_OVERHEAD`], which
    /// an estimate leaves out.
    pub fn plain(counter: Arc<dyn Counter>) -> Self {
        let estimate = counter.name() == "estimate";
        let overhead = if estimate { 0 } else { ROLE_OVERHEAD };
        Self { counter, factor: 1.0, overhead, exact: !estimate }
    }

    /// The same for a model whose tokens are `factor` times those of the counter. `exact` says
    /// whether the counter's vocabulary is the model's own.
    #[must_use]
    pub fn scaled(self, factor: f64, exact: bool) -> Self {
        Self { factor, exact, ..self }
    }

    /// What a text costs.
    pub fn text(&self, text: &str) -> u64 {
        self.scale(self.counter.count(text))
    }

    /// What a message costs whose content and calls have `counted` tokens.
    pub fn message(&self, counted: u64) -> u64 {
        self.scale(counted) + self.overhead
    }

    /// What a message of one text costs.
    pub fn note(&self, text: &str) -> u64 {
        self.message(self.counter.count(text))
    }

    /// The counter behind it.
    pub fn counter(&self) -> &Arc<dyn Counter> {
        &self.counter
    }

    /// Whether the counts are those of the model itself, rather than estimates.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// By how much the counter's counts are multiplied.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    fn scale(&self, counted: u64) -> u64 {
        if self.factor == 1.0 { counted } else { (counted as f64 * self.factor).ceil() as u64 }
    }
}
