//! A turn that is under way.

use std::collections::HashMap;

use crate::agent::notes::Managed;
use crate::agent::tools::CalledTool;
use crate::context::render::report::ItemVerdict;
use crate::engine::{AskedWindow, Material, TurnDone};
use crate::provider::ProviderError;
use crate::provider::chat::Usage;

/// How often the model is asked in one turn at most: once, and again after each answer that calls
/// tools. The calls of the last are refused, and it is asked once more for an answer without any.
pub(super) const MAX_ROUNDS: u64 = 8;

/// What providers want to have back with their answers, such as signatures of thoughts, by message.
pub(super) type Opaque = HashMap<u64, serde_json::Value>;

/// A turn that is under way.
pub(super) struct Begun {
    pub(super) turn: TurnDone,
    /// What the next window is built from, if it was read already.
    pub(super) material: Option<Material>,
    /// The cost of the last answer, to be stored with it.
    pub(super) asked: Option<AskedWindow>,
    /// What became of the managing of its history.
    pub(super) managed: Option<Managed>,
    /// How often the model was asked.
    pub(super) rounds: u64,
    /// What it called.
    pub(super) ran: Vec<CalledTool>,
    /// The message of the last answer that called tools.
    pub(super) answer: Option<u64>,
    /// What the provider wants to have back with its answers in this turn, by message.
    pub(super) opaque: Opaque,
    /// What all its answers took.
    pub(super) usage: Usage,
    /// What they cost, as far as each cost is known.
    pub(super) cost: Option<f64>,
    /// What the last window had.
    pub(super) window_tokens: u64,
    /// What became of the items in it.
    pub(super) items: Vec<ItemVerdict>,
    /// The last refusal of a window that was too long for the model.
    pub(super) refused: Option<Refused>,
    /// Whether the session sets how many tokens a window may have.
    pub(super) is_budget_set: bool,
    /// How many tokens the model takes, as far as is known.
    pub(super) limit: u64,
}

impl Begun {
    /// Whether the model is asked for an answer that calls nothing.
    pub(super) fn is_last_word(&self) -> bool {
        self.rounds > MAX_ROUNDS
    }

    /// Adds what a request and its answer took.
    pub(super) fn spend(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.zip(cost).map(|(before, cost)| before + cost);
    }
}

/// What a refusal of a window has come to.
pub(super) struct Refused {
    /// The server's words.
    pub(super) error: ProviderError,
    /// How many tokens the next window may have.
    pub(super) max_tokens: u64,
}
