//! Messages as JSON-RPC 2.0. The parent module decides which members a message has.

use super::{invalid, parse_error, text_of};
use crate::value::Value;
use crate::value::json::{from_json, to_json, write_string};
use crate::wire::message::{Outgoing, RequestId, WireError};

pub(super) fn read(line: &[u8]) -> Result<Value, WireError> {
    let value = from_json(text_of(line)?.as_bytes()).map_err(|error| {
        let message = if error.is_incomplete() {
            format!("{error}; a message is one line: write newlines as \\n")
        } else if line.trim_ascii_start().starts_with(b"(") {
            format!("{error}; this connection began with JSON: connect anew for property lists")
        } else {
            error.to_string()
        };
        parse_error(message, error.column)
    })?;
    match value {
        Value::List(_) => Err(invalid("batches are not accepted: send one message per line")),
        Value::Map(_) => Ok(value),
        other => Err(invalid(format!("a message must be a JSON object, got {}", other.describe()))),
    }
}

pub(super) fn write(message: &Outgoing, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    match message {
        Outgoing::Reply(id, result) => {
            out.extend_from_slice(br#""id":"#);
            write_id(id.as_ref(), out);
            match result {
                Ok(value) => {
                    out.extend_from_slice(br#","result":"#);
                    to_json(value, out);
                }
                Err(error) => {
                    out.extend_from_slice(br#","error":"#);
                    write_error(error, out);
                }
            }
        }
        Outgoing::Notify(method, params) => {
            out.extend_from_slice(br#""method":"#);
            write_string(method, out);
            if *params != Value::Nil {
                out.extend_from_slice(br#","params":"#);
                to_json(params, out);
            }
        }
        Outgoing::Event(event) => {
            out.extend_from_slice(br#""event":"#);
            to_json(event, out);
        }
    }
    out.push(b'}');
}

fn write_id(id: Option<&RequestId>, out: &mut Vec<u8>) {
    match id {
        None => out.extend_from_slice(b"null"),
        Some(RequestId::Int(number)) => out.extend_from_slice(number.to_string().as_bytes()),
        Some(RequestId::Str(text)) => write_string(text, out),
    }
}

fn write_error(error: &WireError, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(r#"{{"code":{},"message":"#, error.code).as_bytes());
    write_string(&error.message, out);
    if error.data != Value::Nil {
        out.extend_from_slice(br#","data":"#);
        to_json(&error.data, out);
    }
    out.push(b'}');
}
