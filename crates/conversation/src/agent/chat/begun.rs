//! A turn that is under way.

use crate::agent::notes::TurnNotes;
use crate::agent::summary::DescriptionOutcome;
use crate::agent::tools::CalledTool;
use crate::context::render::report::ItemVerdict;
use crate::engine::{AskedWindow, Material, TurnDone};
use crate::provider::ProviderError;
use crate::provider::chat::{ShownAttachment, Usage};

/// Maximum number of requests with tools in one turn. Tool calls in the answer to the last of these
/// requests are refused, and one more request asks for an answer without calls.
pub const MAX_ROUNDS: u64 = 8;

/// A turn in progress.
pub(super) struct TurnState {
    pub(super) turn: TurnDone,
    /// The messages and items for the next window, if they were already read.
    pub(super) material: Option<Material>,
    /// Usage and cost of the last answer, to be stored with the answer.
    pub(super) asked: Option<AskedWindow>,
    /// Outcome of asking a model to describe the messages that a summary replaces.
    pub(super) described: Option<DescriptionOutcome>,
    /// Outcome of note-taking for the turn.
    pub(super) managed: Option<TurnNotes>,
    /// Number of requests to the model, not counting retries with smaller windows.
    pub(super) rounds: u64,
    /// Tool calls that the model has made.
    pub(super) ran: Vec<CalledTool>,
    /// Number of the message with the last answer that called tools.
    pub(super) answer: Option<u64>,
    /// Tokens of all requests and answers so far.
    pub(super) usage: Usage,
    /// Cost of all requests and answers so far; `None` if a part of it is unknown.
    pub(super) cost: Option<f64>,
    /// Tokens in the last window.
    pub(super) window_tokens: u64,
    /// Outcome of each item that was offered for the last window.
    pub(super) items: Vec<ItemVerdict>,
    /// Pictures that the last window shows.
    pub(super) pictures: Vec<ShownAttachment>,
    /// The last refusal of a window that was too long for the model.
    pub(super) refused: Option<RefusedWindow>,
    /// True if the request or the session's settings limit the tokens of a window.
    pub(super) is_budget_set: bool,
    /// Token limit of the model when the last window was built; 0 before the first window.
    pub(super) limit: u64,
    /// Version of the session after the question was logged; once the turn has ended, the version
    /// after the final answer was logged.
    pub(super) version: u64,
}

impl TurnState {
    /// Adds the usage and the cost of a request and its answer.
    pub(super) fn spend(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage = self.usage.plus(usage);
        self.cost = self.cost.zip(cost).map(|(before, cost)| before + cost);
    }
}

/// A refusal of a window that was too long.
pub(super) struct RefusedWindow {
    /// The error with which the server refused.
    pub(super) error: ProviderError,
    /// Maximum number of tokens in the next window.
    pub(super) max_tokens: u64,
}
