//! How results look on the wire.

use crate::context::item::{Item, Metadata, State};
use crate::engine::{Listed, View};
use crate::ids::{ItemId, MessageId};
use crate::session::message::{Message, ToolCall};
use crate::store::SetSummary;
use crate::value::Value;

/// An amount of money with [`MONEY_DIGITS`] significant digits: sums of floating-point numbers have
/// more, which mean nothing.
pub(super) fn money(amount: f64) -> Value {
    let printed = format!("{amount:.*e}", MONEY_DIGITS - 1);
    Value::Float(printed.parse().unwrap_or(amount))
}

/// How many significant digits an amount of money has.
const MONEY_DIGITS: usize = 6;

/// An item with its standing.
pub(super) fn item(view: &View, state: State, brief: bool) -> Vec<(Box<str>, Value)> {
    let Item { id, kind, content, metadata, timestamp, tokens, counted_by, live, .. } = &*view.item;
    let mut map = vec![entry("id", id.to_string()), entry("type", keyword(kind.name()))];
    if !brief {
        map.push(entry("content", &**content));
    }
    map.extend([
        entry("metadata", metadata_map(metadata)),
        entry("timestamp", Value::Int(*timestamp)),
        entry("tokens", figure(*tokens)),
        entry("token-counter", keyword(counted_by)),
        entry("bytes", figure(content.len() as u64)),
        entry("pinned", Value::Bool(view.pinned)),
        entry("live", Value::Bool(*live)),
        entry("state", keyword(state.name())),
    ]);
    map
}

/// A line of the list of managers.
pub(super) fn manager(listed: &Listed) -> Value {
    let summary = &listed.summary;
    Value::Map(vec![
        entry("manager", &*summary.name),
        entry("count", figure(summary.count)),
        entry("pinned", figure(summary.pinned)),
        entry("tokens", figure(summary.tokens)),
        entry("bytes", figure(summary.bytes)),
        entry("max-items", figure(listed.max_items as u64)),
        entry("newest", summary.newest.map_or(Value::Nil, Value::Int)),
    ])
}

/// A line of the list of sets.
pub(super) fn set(summary: &SetSummary) -> Value {
    Value::Map(vec![
        entry("name", &*summary.name),
        entry("count", figure(summary.count)),
        entry("tokens", figure(summary.tokens)),
        entry("created", Value::Int(summary.created)),
    ])
}

/// A message of a session.
pub(crate) fn message(message: &Message) -> Value {
    let mut map = vec![
        entry("id", MessageId(message.number)),
        entry("role", keyword(message.role.name())),
        entry("content", &*message.content),
        entry("timestamp", Value::Int(message.timestamp)),
        entry("phase", message.phase.map_or(Value::Nil, |phase| keyword(phase.name()))),
        entry("tokens", figure(message.tokens)),
        entry("token-counter", keyword(message.counted_by)),
        entry("pinned", message.pinned),
    ];
    if !message.tool_calls.is_empty() {
        map.push(entry("tool-calls", tool_calls(&message.tool_calls)));
    }
    if let Some(id) = &message.tool_call_id {
        map.push(entry("tool-call-id", &**id));
    }
    Value::Map(map)
}

/// The tools that a message calls.
pub(crate) fn tool_calls(calls: &[ToolCall]) -> Value {
    Value::List(calls.iter().map(tool_call).collect())
}

fn tool_call(call: &ToolCall) -> Value {
    Value::Map(vec![
        entry("id", &*call.id),
        entry("name", &*call.name),
        entry("arguments", &*call.arguments),
    ])
}

/// Numbers of items as their ids.
pub(super) fn ids(numbers: &[u64]) -> Value {
    Value::List(numbers.iter().map(|number| ItemId(*number).into()).collect())
}

/// One entry of a map.
pub(crate) fn entry(name: &str, value: impl Into<Value>) -> (Box<str>, Value) {
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

fn metadata_map(metadata: &Metadata) -> Value {
    match metadata.0.as_slice() {
        [] => Value::Nil,
        entries => Value::Map(entries.to_vec()),
    }
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
