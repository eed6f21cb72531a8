//! Writes a [`Value`] as JSON text.

use std::borrow::Cow;
use std::collections::HashSet;

use super::text_of_codes;
use crate::Value;
use crate::escape::push_content;
use crate::key::snake;
use crate::sexp::print;

/// Appends `value` to `out` as JSON on one line.
///
/// Maps and property lists become objects. Keys become snake_case, except those whose exact
/// spelling is fixed; see [`Key`](crate::Key). A list whose elements are *all* keywords is a
/// list of names and becomes an array, like any other list or vector. Symbols and keywords
/// become strings; names that are values keep their hyphens. NaN and the infinities become the
/// strings `"NaN"`, `"Infinity"` and `"-Infinity"`. In a string, each raw byte and each other code outside Unicode becomes
/// U+FFFD. Dotted pairs become strings that hold their s-expression.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::BigInt(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Float(number) => out.extend_from_slice(float_text(*number).as_bytes()),
        Value::FloatText(_, text) => out.extend_from_slice(text.as_bytes()),
        Value::Str(text) => write_string(text, out),
        Value::RawStr(codes) => write_string(&text_of_codes(codes), out),
        Value::Symbol(name) | Value::Keyword(name) => write_string(name, out),
        Value::Map(entries) => {
            write_object(entries.iter().map(|(key, value)| (key.in_json(), value)), out);
        }
        Value::List(items) if is_object(value, items) => write_object(plist_entries(items), out),
        Value::List(items) | Value::Vector(items) => write_array(items, out),
        Value::Dotted(..) => write_string(&print(value), out),
    }
}

/// Appends `text` as a JSON string.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_content(text, out, |byte, out| {
        out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
    });
    out.push(b'"');
}

/// Returns a float as JSON text; large exponents have a sign, as in JavaScript and Python.
pub(super) fn float_text(number: f64) -> Cow<'static, str> {
    match number {
        _ if number.is_nan() => Cow::Borrowed("\"NaN\""),
        f64::INFINITY => Cow::Borrowed("\"Infinity\""),
        f64::NEG_INFINITY => Cow::Borrowed("\"-Infinity\""),
        _ => {
            let text = format!("{number:?}");
            Cow::Owned(if text.contains("e-") { text } else { text.replace('e', "e+") })
        }
    }
}

fn write_array(items: &[Value], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Returns whether a list is written as an object: a plist that holds more than keywords.
/// `(:code :text)` is a list of two names far more often than a map with one entry.
fn is_object(list: &Value, items: &[Value]) -> bool {
    list.is_plist() && !items.iter().all(|item| matches!(item, Value::Keyword(_)))
}

fn plist_entries(items: &[Value]) -> impl Iterator<Item = (Cow<'_, str>, &Value)> {
    items.chunks_exact(2).filter_map(|pair| match &pair[0] {
        Value::Keyword(key) => Some((snake(key), &pair[1])),
        _ => None,
    })
}

/// Writes an object. Of several entries with equal names, only the first is written, because
/// `plist-get` finds the first but a reader of JSON would take the last.
fn write_object<'a>(entries: impl Iterator<Item = (Cow<'a, str>, &'a Value)>, out: &mut Vec<u8>) {
    let mut seen = HashSet::new();
    out.push(b'{');
    for (key, value) in entries {
        if seen.contains(&key) {
            continue;
        }
        if !seen.is_empty() {
            out.push(b',');
        }
        write_string(&key, out);
        out.push(b':');
        write(value, out);
        seen.insert(key);
    }
    out.push(b'}');
}
