//! Messages: their text, role and cost.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::names;

/// A message of a session's log. Only `pinned` can change; whether the message is in view belongs
/// to the session's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Place in the log, from 1; `msg-N` in the client protocol. Never changes.
    pub number: u64,
    /// Author of the message.
    pub role: Role,
    /// The text, verbatim.
    pub content: Arc<str>,
    /// Time in Unix seconds. Never earlier than the time of the previous message.
    pub timestamp: i64,
    /// Phase of the work in which the message was written.
    pub phase: Option<Phase>,
    /// Tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// True if the message is never left out of a window. Copied from the session's state.
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
    /// True if the text mentions an error, a failure, an exception or a panic.
    pub error: bool,
    /// True if the text mentions a success or a completion.
    pub success: bool,
    /// True if the text has `create:`, `update:` or `delete:`, or a call names a tool that changes
    /// files.
    pub operation: bool,
    /// True if the text has more than a thousand characters.
    pub long: bool,
}

names! {
    /// The author of a message.
    Role {
        /// Instructions.
        System => "system",
        /// The user.
        User => "user",
        /// The model.
        Assistant => "assistant",
        /// A tool that answers a call.
        Tool => "tool",
    }
}

names! {
    /// A phase of the work. The phase decides which sections a window must have and may have.
    Phase {
        /// Deciding what to build.
        Planning => "planning",
        /// Designing types and signatures.
        Interface => "interface",
        /// Writing the code, unit by unit.
        Implementation => "implementation",
        /// Running the tests until all pass.
        Testing => "testing",
    }
}
