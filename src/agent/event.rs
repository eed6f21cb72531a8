//! The events of a turn, in the order in which they happen.

use super::Later;
use super::tools::Outcome;

/// Something that happens while a turn goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// A step of the turn, as a phrase for people.
    Status(String),
    /// The reason why the model is asked once more, as a phrase for people.
    Retry(String),
    /// More of the answer's text.
    Text(String),
    /// More of what the model says it thinks.
    Reasoning(String),
    /// The model calls a tool.
    ToolCall {
        /// Name of the tool.
        tool: String,
        /// Arguments, as JSON.
        arguments: String,
    },
    /// The call of a tool has an outcome.
    ToolResult {
        /// Name of the tool.
        tool: String,
        /// The outcome.
        outcome: Outcome,
        /// Text that the model is shown.
        text: String,
    },
    /// The turn waits until a person allows a call, through [`Approvals`](super::Approvals).
    Approval(Approval),
}

/// A question whether a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Number by which the question is answered.
    pub number: u64,
    /// Name of the tool.
    pub tool: String,
    /// Arguments, as JSON.
    pub arguments: String,
    /// Description of the call, in a line for people.
    pub phrase: String,
    /// Place outside the session's project that the call reaches, if it does.
    pub outside: Option<String>,
}

/// Receives the events of a turn.
pub trait EventSink: Send + Sync {
    /// Takes an event. Returns whether somebody hears of it.
    fn send(&self, event: TurnEvent) -> bool;

    /// Waits until there is room for more events, but not for ever.
    fn room(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Nobody hears the events.
impl EventSink for () {
    fn send(&self, _: TurnEvent) -> bool {
        false
    }
}
