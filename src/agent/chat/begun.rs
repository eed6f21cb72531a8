//! A turn that is under way.

use std::collections::HashMap;

use crate::agent::notes::TurnNotes;
use crate::agent::tools::CalledTool;
use crate::context::render::report::ItemVerdict;
use crate::engine::{AskedWindow, Material, TurnDone};
use crate::provider::ProviderError;
use crate::provider::chat::Usage;

/// Maximum number of times that the model is asked in one turn: once, and again after each answer that
/// calls tools. The calls of the last are refused, and it is asked once more for an answer without any.
pub(super) const MAX_ROUNDS: u64 = 8;

/// Data that providers want back with their answers, such as signatures of thoughts, by message.
pub(super) type Opaque = HashMap<u64, serde_json::Value>;

/// A turn that is under way.
pub(super) struct Begun {
    pub(super) turn: TurnDone,
    /// Material for the next window, if it was read already.
    pub(super) material: Option<Material>,
    /// The cost of the last answer, to be stored with it.
    pub(super) asked: Option<AskedWindow>,
    /// Outcome of taking notes on its history.
    pub(super) managed: Option<TurnNotes>,
    /// Number of times that the model was asked.
    pub(super) rounds: u64,
    /// Tool calls of the model.
    pub(super) ran: Vec<CalledTool>,
    /// The message of the last answer that called tools.
    pub(super) answer: Option<u64>,
    /// Data that the provider wants back with its answers in this turn, by message.
    pub(super) opaque: Opaque,
    /// Tokens of all its answers together.
    pub(super) usage: Usage,
    /// Cost of its answers; `None` if that of one is unknown.
    pub(super) cost: Option<f64>,
    /// Tokens in the last window.
    pub(super) window_tokens: u64,
    /// Verdicts on the items in it.
    pub(super) items: Vec<ItemVerdict>,
    /// The last refusal of a window that was too long for the model.
    pub(super) refused: Option<Refused>,
    /// True if the session limits the tokens of a window.
    pub(super) is_budget_set: bool,
    /// Maximum number of tokens that the model takes, as far as it is known.
    pub(super) limit: u64,
}

impl Begun {
    /// Returns whether the model is asked for an answer that calls nothing.
    pub(super) fn is_last_word(&self) -> bool {
        self.rounds > MAX_ROUNDS
    }

    /// Adds what a request and its answer took.
    pub(super) fn spend(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.zip(cost).map(|(before, cost)| before + cost);
    }
}

/// Outcome of a refused window.
pub(super) struct Refused {
    /// The server's words.
    pub(super) error: ProviderError,
    /// Maximum number of tokens in the next window.
    pub(super) max_tokens: u64,
}
