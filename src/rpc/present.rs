//! Converts results to the form in which clients get them.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::context::render::report::{ItemFate, ItemVerdict};
use crate::ids::{ItemId, MessageId};
use crate::session::message::{Message, Phase, Role, ToolCall};
use crate::value::Keyword;

/// An amount of money, serialized with [`MONEY_DIGITS`] significant digits. Sums of floating-point
/// numbers have more, which mean nothing.
#[derive(Clone, Copy, JsonSchema)]
#[schemars(inline)]
pub(super) struct Money(pub(super) f64);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(amount) = *self;
        let printed = format!("{amount:.*e}", MONEY_DIGITS - 1);
        serializer.serialize_f64(printed.parse().unwrap_or(amount))
    }
}

/// Number of significant digits in an amount of money.
const MONEY_DIGITS: usize = 6;

/// A message of a session, as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub(crate) struct MessageShown<'a> {
    /// Id of the message, `msg-N`: its place in the log.
    id: MessageId,
    /// Author of the message.
    role: Role,
    /// The text.
    content: &'a str,
    /// Time in Unix seconds.
    timestamp: i64,
    /// Phase of the work in which the message was written.
    phase: Option<Phase>,
    /// Tokens of the content and the calls.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
    /// True if the message is never left out of a window.
    pinned: bool,
    /// Tool calls of an assistant's message; absent if there are none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [ToolCall],
    /// Id of the call that a tool's message answers; absent in others.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// Why the message is not in view: rolled back, pruned or summarized; absent if it is in view.
    /// Only in `get-messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) out: Option<&'static str>,
    /// Fate of the message; only in an exported session, which clients get as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(super) fate: Option<&'static str>,
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
            out: None,
            fate: None,
        }
    }
}

/// The outcome for an item in a rendering.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ItemVerdict")]
pub(super) struct Decided {
    /// Id of the item.
    id: ItemId,
    /// Outcome for the item.
    #[schemars(extend("enum" = ["kept", "cut", "dropped"]))]
    fate: Keyword<&'static str>,
    /// Number of lines that were kept; only for an item that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_kept: Option<u64>,
    /// Number of lines of the item; only for an item that was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_total: Option<u64>,
    /// Tokens of the item in the rendering.
    tokens: u64,
    /// Reason for the outcome.
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

pub(super) fn verdicts(items: &[ItemVerdict]) -> Vec<Decided> {
    items.iter().cloned().map(Decided::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn money_has_the_digits_that_mean_something() {
        let money = |amount| Value::of(&Money(amount));
        assert_eq!(money(0.1 + 0.2), Value::Float(0.3));
        assert_eq!(money(0.0), Value::Float(0.0));
        assert_eq!(money(0.000_012_345_678_9), Value::Float(0.000_012_345_7));
        assert_eq!(money(1234.5), Value::Float(1234.5));
    }
}
