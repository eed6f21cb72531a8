//! Pieces of tool calls, as the interfaces of servers write them.

use serde_json::Value;

use crate::provider::family::shape::{
    Shaped, first, has_one, index, kind, mended, mended_value, unknown, word,
};

/// Arguments in a piece of a call.
#[derive(Debug)]
pub(in super::super) enum ArgumentsPiece {
    /// More of the JSON text.
    More(String),
    /// All of them, as JSON.
    Whole(Value),
}

/// A piece of a call.
#[derive(Debug)]
pub(in super::super) struct CallPiece {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: ArgumentsPiece,
    /// Data to send back with the call.
    pub(super) extra: Value,
}

/// Reads arguments: JSON text, an object, or nothing. PHP writes an empty object as `[]`.
pub(in super::super) fn arguments(value: &Value) -> Shaped<ArgumentsPiece> {
    match value {
        Value::Null => Ok(ArgumentsPiece::More(String::new())),
        Value::String(text) => Ok(ArgumentsPiece::More(text.clone())),
        Value::Object(_) => Ok(ArgumentsPiece::Whole(value.clone())),
        Value::Array(none) if none.is_empty() => Ok(ArgumentsPiece::Whole(serde_json::json!({}))),
        _ => Err(unknown("arguments", value)),
    }
}

/// Reads a piece of a call.
pub(in super::super) fn piece(part: &Value) -> Shaped<CallPiece> {
    if !part.is_object() {
        return Err(unknown("tool_calls", part));
    }
    const MEMBERS: &[&str] =
        &["function", "function_call", "name", "arguments", "index", "id", "type"];
    has_one("tool_calls", part, MEMBERS)?;
    let function = match first(part, &["function", "function_call"]) {
        Value::Null => part,
        function @ Value::Object(_) => {
            has_one("function", function, &["name", "arguments", "parameters", "args"])?;
            function
        }
        other => return Err(unknown("function", other)),
    };
    Ok(CallPiece {
        index: index("index", first(part, &["index"]))?,
        id: word("id", first(part, &["id", "call_id", "tool_call_id"]))?,
        name: name(&function["name"])?,
        arguments: arguments(first(function, &["arguments", "parameters", "args"]))?,
        extra: mended_value(&part["extra_content"]),
    })
}

/// Reads the name of a tool.
pub(in super::super) fn name(value: &Value) -> Shaped<String> {
    Ok(mended(kind("name", value)?))
}

impl CallPiece {
    /// Creates a piece that does not say where it is.
    pub(in super::super) fn new(id: String, name: String, arguments: ArgumentsPiece) -> Self {
        Self { index: None, id, name, arguments, extra: Value::Null }
    }

    pub(super) fn says_only_arguments(&self) -> bool {
        let has_arguments =
            !matches!(&self.arguments, ArgumentsPiece::More(more) if more.is_empty());
        self.id.is_empty() && self.name.is_empty() && has_arguments
    }

    /// Returns whether this can only continue a call with arguments that began with `text`.
    pub(super) fn cannot_begin(&self, text: &str) -> bool {
        let ArgumentsPiece::More(more) = &self.arguments else { return self.name.is_empty() };
        let more = more.trim_start();
        let is_middle = !more.is_empty() && !more.starts_with(['{', '"']);
        self.name.is_empty() || (is_middle && !text.trim().is_empty())
    }
}
