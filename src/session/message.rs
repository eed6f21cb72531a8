//! Messages: their text, role and cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::names;

/// One message of a session's log. It never changes: pins and visibility belong to the session's
/// state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Place in the log, from 1; `msg-N` on the wire. Never changes.
    pub number: u64,
    /// Author of the message.
    pub role: Role,
    /// The text, verbatim.
    pub content: Arc<str>,
    /// Time in Unix seconds. Never earlier than that of the message before it.
    pub timestamp: i64,
    /// Phase of the work in which the message was written.
    pub phase: Option<Phase>,
    /// Tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Never left out of a window if true.
    pub pinned: bool,
    /// Number of tokens of the content and the calls, without the overhead that a model adds for
    /// the role, by the counter named in `counted_by`. Counted once, when the message is made.
    pub tokens: u64,
    /// Name of the counter: `o200k`, `cl100k` or `estimate`.
    pub counted_by: &'static str,
    /// Topics of the text that affect its importance. Found once, when the message is made.
    pub signals: Signals,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct ToolCall {
    /// Id by which the result refers to the call.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as the model wrote them, JSON by convention.
    #[serde(default)]
    pub arguments: String,
}

/// Topics of a message's text that affect its importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// Mentions an error, a failure, an exception or a panic.
    pub error: bool,
    /// Mentions a success or a completion.
    pub success: bool,
    /// Creates, updates or deletes files.
    pub operation: bool,
    /// Has more than a thousand characters.
    pub long: bool,
}

names! {
    /// The author of a message.
    Role {
        /// Instructions.
        System => "system",
        /// The person.
        User => "user",
        /// The model.
        Assistant => "assistant",
        /// A tool that answers a call.
        Tool => "tool",
    }
}

names! {
    /// A phase of the work. It decides which sections a window must have.
    Phase {
        /// Deciding what to build.
        Planning => "planning",
        /// Designing types and signatures.
        Interface => "interface",
        /// Writing the code, unit by unit.
        Implementation => "implementation",
        /// Running the tests until none fails.
        Testing => "testing",
    }
}
