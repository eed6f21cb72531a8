//! Converts results to their form on the wire.

use serde::Serialize;

use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::ids::{ItemId, MessageId};
use crate::session::message::{Message, Phase, Role, ToolCall};
use crate::value::{Key, Keyword, Value};

/// Rounds an amount of money to [`MONEY_DIGITS`] significant digits. Sums of floating-point numbers
/// have more, which mean nothing.
pub(super) fn money(amount: f64) -> Value {
    let printed = format!("{amount:.*e}", MONEY_DIGITS - 1);
    Value::Float(printed.parse().unwrap_or(amount))
}

/// Number of significant digits in an amount of money.
const MONEY_DIGITS: usize = 6;

/// A message of a session in the form for clients.
#[derive(Serialize)]
pub(crate) struct MessageShown<'a> {
    id: MessageId,
    role: Role,
    content: &'a str,
    timestamp: i64,
    phase: Option<Phase>,
    tokens: u64,
    token_counter: Keyword<&'static str>,
    pinned: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// True if it is in view; `None` where that does not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_view: Option<bool>,
    /// Fate of the message, in a transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<&'static str>,
}

impl MessageShown<'_> {
    pub(super) fn in_view(self, in_view: bool) -> Self {
        Self { in_view: Some(in_view), ..self }
    }

    pub(super) fn with_fate(self, fate: Option<&'static str>) -> Self {
        Self { fate, ..self }
    }
}

impl<'a> From<&'a Message> for MessageShown<'a> {
    fn from(message: &'a Message) -> Self {
        Self {
            id: MessageId(message.number),
            role: message.role,
            content: &message.content,
            timestamp: message.timestamp,
            phase: message.phase,
            tokens: message.tokens,
            token_counter: Keyword(message.counted_by),
            pinned: message.pinned,
            tool_calls: &message.tool_calls,
            tool_call_id: message.tool_call_id.as_deref(),
            in_view: None,
            fate: None,
        }
    }
}

/// Returns a message of a session in the form for clients.
pub(crate) fn message(message: &Message) -> Value {
    Value::of(&MessageShown::from(message))
}

/// The outcome for an item in a rendering.
#[derive(Serialize)]
pub(super) struct Decided {
    id: ItemId,
    fate: Keyword<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_kept: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_total: Option<u64>,
    tokens: u64,
    reason: String,
}

impl From<ItemVerdict> for Decided {
    fn from(ItemVerdict { id, tokens, fate, reason }: ItemVerdict) -> Self {
        let (fate, lines) = match fate {
            ItemFate::Kept => ("kept", None),
            ItemFate::Dropped => ("dropped", None),
            ItemFate::Cut { lines_kept, lines_total } => ("cut", Some((lines_kept, lines_total))),
        };
        let (lines_kept, lines_total) = lines.unzip();
        Self { id, fate: Keyword(fate), lines_kept, lines_total, tokens, reason }
    }
}

/// Returns the outcome for an item in a rendering, as data.
pub(super) fn verdict(verdict: &ItemVerdict) -> Value {
    Value::of(&Decided::from(verdict.clone()))
}

/// Returns the tool calls of a message, as data.
pub(crate) fn tool_calls(calls: &[ToolCall]) -> Value {
    Value::of(calls)
}

/// One entry of a map.
pub(crate) fn entry(name: &str, value: impl Into<Value>) -> (Key, Value) {
    (name.into(), value.into())
}

/// An enumerated value.
pub(crate) fn keyword(name: &str) -> Value {
    Value::Keyword(name.into())
}

/// A count.
pub(crate) fn figure(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_digits_that_mean_something() {
        assert_eq!(money(0.1 + 0.2), Value::Float(0.3));
        assert_eq!(money(0.0), Value::Float(0.0));
        assert_eq!(money(0.000_012_345_678_9), Value::Float(0.000_012_345_7));
        assert_eq!(money(1234.5), Value::Float(1234.5));
    }
}
