//! What a message of any type tells of itself.

use std::borrow::Cow;

use contexture_core::session::message::{Message as Logged, Role, Signals, ToolCall};

/// A message of any type.
///
/// Only the author and the text are needed. Programs whose models call tools also tell of calls and
/// results, which then stay together.
pub trait Message {
    /// Returns the author.
    fn role(&self) -> Role;

    /// Returns the text, which includes that of results. A message without a text has an empty one.
    fn text(&self) -> Cow<'_, str>;

    /// Returns the calls of tools that the message asks for.
    fn calls(&self) -> Vec<Call<'_>> {
        Vec::new()
    }

    /// Returns the ids of the calls that the message answers. A message with results counts as one
    /// of a tool, whatever its role.
    fn answers(&self) -> Vec<Cow<'_, str>> {
        Vec::new()
    }

    /// Returns whether the message is never left out.
    fn is_pinned(&self) -> bool {
        false
    }

    /// Returns the number of tokens of the message, without those for its role. `count` counts the
    /// tokens of a text. A message with pictures, or with a known count, returns its count here.
    fn tokens(&self, count: &dyn Fn(&str) -> u64) -> u64 {
        let of_call = |call: Call<'_>| count(&call.name) + count(&call.arguments);
        count(&self.text()) + self.calls().into_iter().map(of_call).sum::<u64>()
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<'a> {
    /// Id by which the result refers to the call.
    pub id: Cow<'a, str>,
    /// Name of the tool.
    pub name: Cow<'a, str>,
    /// Arguments, as JSON by convention.
    pub arguments: Cow<'a, str>,
}

impl<'a> Call<'a> {
    /// Creates a call.
    pub fn new(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        arguments: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// Returns an id for a call, given the index of its message and its place in it. A program's own ids
/// may repeat.
pub(crate) fn id((message, place): (usize, usize)) -> String {
    format!("{message}.{place}")
}

/// Returns the message with index `at` in the form that strategies choose from. It has no number
/// yet.
pub(crate) fn logged(
    message: &impl Message,
    at: usize,
    role: Role,
    content: &str,
    answers: Option<String>,
    tokens: u64,
) -> Logged {
    let call = |(place, call): (usize, Call<'_>)| ToolCall {
        id: id((at, place)),
        name: call.name.into_owned(),
        arguments: call.arguments.into_owned(),
    };
    let tool_calls: Vec<ToolCall> = message.calls().into_iter().enumerate().map(call).collect();
    Logged {
        number: 0,
        role,
        content: content.into(),
        timestamp: 0,
        phase: None,
        signals: Signals::of(role, content, &tool_calls),
        tool_calls,
        tool_call_id: answers,
        opaque: None,
        pinned: message.is_pinned(),
        tokens,
        counted_by: "own",
    }
}
