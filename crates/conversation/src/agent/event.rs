//! The events of a turn. They are sent in the order in which they happen.

use super::Later;
use super::approvals::ApprovalQuestion;
use super::tools::Outcome;

/// An event of a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "program"), non_exhaustive)]
pub enum TurnEvent {
    /// A note on the turn's progress, as a phrase to show to the user.
    Status(String),
    /// The reason why the model is asked again, as a phrase to show to the user.
    Retry(String),
    /// More of the answer's text.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The model calls a tool.
    ToolCall {
        /// Id of the call; its result has the same id.
        id: String,
        /// Name of the tool.
        tool: String,
        /// Arguments, as JSON.
        arguments: String,
    },
    /// A tool call has ended.
    ToolResult {
        /// Id of the call.
        id: String,
        /// Name of the tool.
        tool: String,
        /// The outcome.
        outcome: Outcome,
        /// Result that the model sees.
        text: String,
    },
    /// The turn waits until the user allows or refuses a call, through
    /// [`Conversation::approve`](crate::Conversation::approve).
    Approval(ApprovalQuestion),
}

/// Receives the events of a turn.
pub trait EventSink: Send + Sync {
    /// Sends an event. Returns whether anybody receives it.
    fn send(&self, event: TurnEvent) -> bool;

    /// Takes note that the user's message is in the log.
    fn begun(&self) {}

    /// Waits until there is room for more events. An implementation may limit the time.
    fn room(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Discards the events.
impl EventSink for () {
    fn send(&self, _: TurnEvent) -> bool {
        false
    }
}
