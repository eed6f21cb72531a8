//! Short functions that make and read Lisp data.

use crate::value::Value;
use crate::wire::message::WireError;

pub(super) fn keyword(name: &str) -> Value {
    Value::Keyword(name.into())
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Str(text.into())
}

/// Makes a list; without items, `nil`.
pub(super) fn list(items: impl IntoIterator<Item = Value>) -> Value {
    let items: Vec<_> = items.into_iter().collect();
    if items.is_empty() { Value::Nil } else { Value::List(items) }
}

pub(super) fn texts<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Value {
    list(items.into_iter().map(|item| text(item)))
}

pub(super) fn plist<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(entries.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

pub(super) fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns the entry `name` of `value`, such as a method's answer; `nil` if there is none.
pub(super) fn value_at(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or_default()
}

/// Returns the entry `name` of `value`, such as a method's answer, if the entry is a string, symbol
/// or keyword.
pub(super) fn string_at<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_text)
}

/// Returns the items of a list or vector; any other datum has none.
pub(super) fn items(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) | Value::Vector(items) => items,
        _ => Vec::new(),
    }
}

/// Makes the error for a request of SLY or SLIME that cannot be fulfilled.
pub(super) fn refusal(message: impl AsRef<str>) -> WireError {
    WireError::new(WireError::INVALID_REQUEST, message)
}

/// Makes the error for a form that only a Lisp image could evaluate. Clients send such forms by
/// mistake, to the wrong connection.
pub(super) fn no_lisp(form: &str) -> WireError {
    refusal(format!(
        "this is the connection to Contexture, which cannot evaluate {form}; C-c C-x n goes to \
         the next connection"
    ))
}
