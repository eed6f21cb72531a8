//! A message: what was said, by whom, and what it costs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::names;

/// One message of a session's log. It is never changed; whether it is pinned later, or in view,
/// is the session's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its place in the log, from 1; `msg-N` on the wire. The same for ever.
    pub number: u64,
    /// Who said it.
    pub role: Role,
    /// The text, verbatim.
    pub content: Arc<str>,
    /// Unix seconds; never before that of the message before it.
    pub timestamp: i64,
    /// The phase of the work in which it was said.
    pub phase: Option<Phase>,
    /// The tools that an assistant's message calls.
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Whether it is never to be left out.
    pub pinned: bool,
    /// How many tokens the content and the calls have, without what a model adds for the role, by
    /// the counter named in `counted_by`. Counted once, when the message is made.
    pub tokens: u64,
    /// The counter's name: `o200k`, `cl100k` or `estimate`.
    pub counted_by: &'static str,
    /// What its text speaks of; found once, when the message is made.
    pub signals: Signals,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolCall {
    /// By which its result names it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them, JSON by custom.
    #[serde(default)]
    pub arguments: String,
}

/// What a message's text speaks of, as far as its importance depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signals {
    /// It speaks of an error, a failure, an exception or a panic.
    pub error: bool,
    /// It speaks of a success or a completion.
    pub success: bool,
    /// It creates, updates or deletes files.
    pub operation: bool,
    /// It has more than a thousand characters.
    pub long: bool,
}

names! {
    /// Who says a message.
    Role {
        /// Instructions.
        System => "system",
        /// The person.
        User => "user",
        /// The model.
        Assistant => "assistant",
        /// A tool, answering a call.
        Tool => "tool",
    }
}

names! {
    /// A phase of the work; it decides which sections a window must have.
    Phase {
        /// What is to be built.
        Planning => "planning",
        /// Its types and signatures.
        Interface => "interface",
        /// Its code, unit by unit.
        Implementation => "implementation",
        /// Its tests, until none fails.
        Testing => "testing",
    }
}
