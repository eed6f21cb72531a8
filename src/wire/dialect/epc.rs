//! Messages of EPC, in both directions: `(call UID METHOD ARGS)`, `(methods UID)`, and their
//! answers.
//!
//! Each side numbers its own calls. An answer has the number of the other side's call.

use super::{id_of, method_of, native, no_message_of, params_of};
use crate::value::Value;
use crate::value::sexp::{print_into, print_str};
use crate::wire::message::{CallRequest, Incoming, Outgoing, RequestId, WireError};
use crate::wording::counted;

/// The words with which messages begin.
pub(super) const HEADS: &[&str] = &["call", "methods", "return", "return-error", "epc-error"];
const SHAPE: &str = "a list such as (call 1 ping nil) or (methods 2)";

pub(super) fn decode(payload: &[u8]) -> Incoming {
    let items = match native::read_payload(payload) {
        Ok(Value::List(items)) => items,
        Ok(other) => return Incoming::Invalid(None, no_message_of(SHAPE, &other)),
        Err(error) => return Incoming::Invalid(first_id(payload), error),
    };
    let mut items = items.into_iter();
    let head = items.next().unwrap_or_default();
    let id = match id_of(items.next().unwrap_or_default()) {
        Ok(id) => id,
        Err(error) => return Incoming::Invalid(None, error),
    };
    match head {
        Value::Symbol(head) => match (&*head, items.as_slice()) {
            ("return" | "return-error" | "epc-error", _) => Incoming::Ignored,
            ("methods", []) if id.is_some() => Incoming::Methods(id),
            ("call", [_] | [_, _]) => call(id, items),
            (head, rest) => {
                let parts = counted(rest.len() as u64, "part");
                let message = format!(
                    "not a message: ({head} UID …) with {parts} after the UID; a message must be \
                     {SHAPE}"
                );
                Incoming::Invalid(id, super::invalid(message))
            }
        },
        other => Incoming::Invalid(id, no_message_of(SHAPE, &other)),
    }
}

/// Returns the id from the beginning of a call whose rest cannot be read. The sender of the call
/// waits for an answer with this id.
pub(super) fn first_id(payload: &[u8]) -> Option<RequestId> {
    let id = payload.trim_ascii_start().strip_prefix(b"(call ")?;
    let (id, _) = id.split_at(id.iter().position(|byte| *byte == b' ')?);
    std::str::from_utf8(id).ok()?.parse().ok().map(RequestId::Int)
}

fn call(id: Option<RequestId>, mut parts: impl Iterator<Item = Value>) -> Incoming {
    let request = method_of(parts.next()).and_then(|method| {
        Ok(CallRequest { id: id.clone(), method, params: params_of(parts.next().map(unwrapped))? })
    });
    match request {
        Ok(request) => Incoming::Call(request),
        Err(error) => Incoming::Invalid(id, error),
    }
}

/// Returns the parameters in a list of arguments. The list itself is the plist of parameters, or
/// the plist is its only element.
fn unwrapped(arguments: Value) -> Value {
    match arguments {
        Value::List(mut one) | Value::Vector(mut one) if one.len() == 1 => {
            one.pop().unwrap_or_default()
        }
        other => other,
    }
}

/// Appends a message without its header. `calls` counts the server's own calls.
pub(super) fn write(message: &Outgoing, calls: &mut u64, out: &mut Vec<u8>) {
    match message {
        Outgoing::Reply(id, Ok(value)) => {
            begin("return", id.as_ref(), out);
            print_into(value, out);
        }
        Outgoing::Reply(id, Err(error)) => {
            begin(
                if is_protocol_error(error) { "epc-error" } else { "return-error" },
                id.as_ref(),
                out,
            );
            print_str(&error.message, out);
        }
        Outgoing::Notify(method, params) => {
            *calls += 1;
            out.extend_from_slice(format!("(call {calls} ").as_bytes());
            print_into(&Value::Symbol((*method).into()), out);
            out.extend_from_slice(b" (");
            print_into(params, out);
            out.push(b')');
        }
        Outgoing::Event(_) => return,
    }
    out.push(b')');
}

/// Returns whether the error is one of the protocol: a message that is not a valid call, an unknown
/// method, or an answer that is too large to send.
fn is_protocol_error(error: &WireError) -> bool {
    let codes = [WireError::PARSE, WireError::INVALID_REQUEST, WireError::METHOD_NOT_FOUND];
    codes.contains(&error.code)
}

fn begin(head: &str, id: Option<&RequestId>, out: &mut Vec<u8>) {
    out.push(b'(');
    out.extend_from_slice(head.as_bytes());
    out.push(b' ');
    native::write_id(id, out);
    out.push(b' ');
}
