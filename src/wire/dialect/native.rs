//! Messages as property lists. The parent module decides which members a message has.

use super::{parse_error, text_of};
use crate::value::Value;
use crate::value::sexp::{self, ReadErrorKind, print_into};
use crate::wire::message::{Outgoing, RequestId, WireError};

/// Advice to a client about a line that ends too early.
const ONE_LINE: &str =
    "a message is one line: print newlines as \\n (print-escape-newlines in Emacs)";

pub(super) fn read(line: &[u8]) -> Result<Value, WireError> {
    let mut value = sexp::read(text_of(line)?).map_err(|error| {
        let message = match error.kind {
            _ if line.trim_ascii_start().starts_with(b"{") => {
                format!(
                    "{error}; this connection began with a property list: connect anew for JSON"
                )
            }
            ReadErrorKind::IncompleteString
            | ReadErrorKind::IncompleteList
            | ReadErrorKind::IncompleteAtom => format!("{error}; {ONE_LINE}"),
            ReadErrorKind::TrailingData => format!("{error}; a line holds one message"),
            _ => error.to_string(),
        };
        parse_error(message, error.column)
    })?;
    if matches!(&value, Value::List(items) if items.first().is_some_and(is_loud)) {
        lower(&mut value);
    }
    Ok(value)
}

/// Returns whether the datum is a symbol or keyword in upper case, as Common Lisp prints them.
fn is_loud(value: &Value) -> bool {
    matches!(value, Value::Keyword(name) | Value::Symbol(name)
        if name.contains(char::is_uppercase) && !name.contains(char::is_lowercase))
}

/// Changes the symbols and keywords in upper case within a message of Common Lisp to lower case.
fn lower(value: &mut Value) {
    let is_loud = is_loud(value);
    match value {
        Value::Keyword(name) if is_loud => *name = name.to_lowercase().into(),
        Value::Symbol(name) if is_loud => {
            *value = match &**name {
                "NIL" => Value::Nil,
                "T" => Value::Bool(true),
                name => Value::Symbol(name.to_lowercase().into()),
            }
        }
        Value::List(items) | Value::Vector(items) => items.iter_mut().for_each(lower),
        Value::Dotted(items, last) => items.iter_mut().chain([&mut **last]).for_each(lower),
        _ => {}
    }
}

/// Reads a message that may span several lines.
pub(super) fn read_payload(payload: &[u8]) -> Result<Value, WireError> {
    sexp::read(text_of(payload)?).map_err(|error| parse_error(error.to_string(), error.column))
}

pub(super) fn write(message: &Outgoing, out: &mut Vec<u8>) {
    match message {
        Outgoing::Reply(id, result) => {
            out.extend_from_slice(b"(:id ");
            write_id(id.as_ref(), out);
            match result {
                Ok(value) => {
                    out.extend_from_slice(b" :result ");
                    print_into(value, out);
                }
                Err(error) => {
                    out.extend_from_slice(b" :error ");
                    write_error(error, out);
                }
            }
        }
        Outgoing::Notify(method, params) => {
            out.extend_from_slice(b"(:method ");
            sexp::print_str(method, out);
            out.extend_from_slice(b" :params ");
            print_into(params, out);
        }
        Outgoing::Event(event) => return print_into(event, out),
    }
    out.push(b')');
}

pub(super) fn write_id(id: Option<&RequestId>, out: &mut Vec<u8>) {
    match id {
        None => out.extend_from_slice(b"nil"),
        Some(RequestId::Int(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(RequestId::Str(text)) => sexp::print_str(text, out),
    }
}

fn write_error(error: &WireError, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("(:code {} :message ", error.code).as_bytes());
    sexp::print_str(&error.message, out);
    if error.data != Value::Nil {
        out.extend_from_slice(b" :data ");
        print_into(&error.data, out);
    }
    out.push(b')');
}
