//! Prints a [`Value`] on one line, so that Emacs reads the same data.

use super::number::{print_float, print_int};
use super::string::{print_raw_string, print_str};
use super::symbol::{print_keyword, print_symbol};
use crate::{Key, Value};

/// Returns the s-expression of `value`; see [`print_into`].
pub fn print(value: &Value) -> String {
    let mut out = Vec::new();
    print_into(value, &mut out);
    into_text(out)
}

/// Returns as text what [`print_into`] wrote.
pub fn into_text(printed: Vec<u8>) -> String {
    String::from_utf8(printed).unwrap_or_else(|error| {
        // Every piece is valid text. If not, a reader would rather have a damaged text than none.
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// Appends the s-expression of `value` to `out`. The s-expression contains no line end, even if
/// names and texts in `value` do.
///
/// Maps become property lists. False, the empty list and the empty map become `nil`. A line end in
/// the *name* of a symbol, which Emacs cannot write on one line, becomes U+240A or U+240D.
pub fn print_into(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Nil | Value::Bool(false) => out.extend_from_slice(b"nil"),
        Value::Bool(true) => out.push(b't'),
        Value::Int(number) => print_int(*number, out),
        Value::BigInt(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Float(number) | Value::FloatText(number, _) => print_float(*number, out),
        Value::Str(text) => print_str(text, out),
        Value::RawStr(codes) => print_raw_string(codes, out),
        Value::Symbol(name) => print_symbol(name, out),
        Value::Keyword(name) => print_keyword(name, out),
        Value::List(items) => print_list(items, None, out),
        Value::Dotted(items, tail) => print_list(items, Some(tail), out),
        Value::Vector(items) => print_items("[", items, "]", out, print_into),
        Value::Map(entries) => print_plist(entries, out),
    }
}

fn print_list(items: &[Value], tail: Option<&Value>, out: &mut Vec<u8>) {
    match (items, tail) {
        ([], None) => out.extend_from_slice(b"nil"),
        ([], Some(tail)) => print_into(tail, out),
        (_, None) => print_items("(", items, ")", out, print_into),
        (_, Some(tail)) => {
            print_items("(", items, " . ", out, print_into);
            print_into(tail, out);
            out.push(b')');
        }
    }
}

/// Appends `items`, each as `print` does and separated by spaces, between `open` and `close`.
pub fn print_items(
    open: &str,
    items: &[Value],
    close: &str,
    out: &mut Vec<u8>,
    print: impl Fn(&Value, &mut Vec<u8>),
) {
    out.extend_from_slice(open.as_bytes());
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        print(item, out);
    }
    out.extend_from_slice(close.as_bytes());
}

fn print_plist(entries: &[(Key, Value)], out: &mut Vec<u8>) {
    if entries.is_empty() {
        out.extend_from_slice(b"nil");
        return;
    }
    for (index, (key, value)) in entries.iter().enumerate() {
        out.push(if index == 0 { b'(' } else { b' ' });
        print_keyword(key, out);
        out.push(b' ');
        print_into(value, out);
    }
    out.push(b')');
}
