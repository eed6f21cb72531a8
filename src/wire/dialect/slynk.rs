//! Messages of SLY and SLIME, in both directions. Forms that do not call a method are only taken
//! apart here; the module `repl` gives them a meaning.

use super::{invalid, native, no_message_of};
use crate::value::sexp::{print_into, print_str};
use crate::value::{Value, kebab};
use crate::wire::message::{
    CallRequest, Incoming, LispForm, Outgoing, ReplTalk, RequestId, WireError,
};

/// Beginning of every message that SLY or SLIME sends.
pub(super) const HEAD: &str = ":emacs-";
/// Package whose forms are calls of methods: `(contexture:ping)`.
const OURS: &str = "contexture";
const SHAPE: &str = "a list such as (:emacs-rex (swank:connection-info) nil t 1)";

pub(super) fn decode(payload: &[u8]) -> Incoming {
    let items = match native::read_payload(payload) {
        Ok(Value::List(items)) => items,
        Ok(other) => return Incoming::Invalid(None, no_message_of(SHAPE, &other)),
        Err(error) => return Incoming::Invalid(last_id(payload, payload), error),
    };
    let mut items = items.into_iter();
    let head = items.next().unwrap_or_default();
    let Value::Keyword(head) = head else {
        return Incoming::Invalid(None, no_message_of(SHAPE, &head));
    };
    let mut next = || items.next().unwrap_or_default();
    match &*head {
        "emacs-rex" => {
            let (form, _package, thread) = (next(), next(), next());
            match next() {
                Value::Int(id) => rex(form, thread, id),
                other => {
                    let got = other.describe();
                    Incoming::Invalid(None, invalid(format!("id must be an integer, got {got}")))
                }
            }
        }
        "emacs-channel-send" => match (next(), next()) {
            (Value::Int(channel), Value::List(message)) => {
                Incoming::Talk(ReplTalk::Channel { channel, message })
            }
            _ => {
                let message = "(:emacs-channel-send …) needs the number of a channel and a list";
                Incoming::Invalid(None, invalid(message))
            }
        },
        "emacs-interrupt" => Incoming::Talk(ReplTalk::Interrupt { thread: next() }),
        "emacs-return" | "emacs-return-string" => {
            let (_thread, tag) = (next(), next());
            Incoming::Talk(ReplTalk::Answer { tag, value: next() })
        }
        "emacs-pong" => {
            let (_thread, tag) = (next(), next());
            Incoming::Talk(ReplTalk::Answer { tag, value: Value::Bool(true) })
        }
        other => Incoming::Invalid(None, invalid(format!("unknown message (:{other} …)"))),
    }
}

fn rex(form: Value, thread: Value, id: i64) -> Incoming {
    match form_of(form) {
        LispForm::Call { package, name, arguments } if package == OURS => {
            let id = Some(RequestId::Int(id));
            match call_of(&name, arguments) {
                Ok((method, params)) => Incoming::Call(CallRequest { id, method, params }),
                Err(error) => Incoming::Invalid(id, error),
            }
        }
        form => Incoming::Talk(ReplTalk::Evaluate { id, form, thread }),
    }
}

/// Takes a form apart, and removes the quotes from its arguments.
pub(crate) fn form_of(form: Value) -> LispForm {
    let items = match form {
        Value::List(items) if matches!(items.first(), Some(Value::Symbol(_))) => items,
        other => return LispForm::Datum(other),
    };
    let mut items = items.into_iter();
    let Some(Value::Symbol(function)) = items.next() else { return LispForm::Datum(Value::Nil) };
    let (package, name) = match function.split_once(':') {
        Some((package, name)) => (package, name.strip_prefix(':').unwrap_or(name)),
        None => ("", &*function),
    };
    let (package, name) = (package.to_ascii_lowercase(), name.to_ascii_lowercase());
    LispForm::Call { package, name, arguments: items.map(unquoted).collect() }
}

/// Returns `x` for `'x`, and any other datum unchanged.
fn unquoted(argument: Value) -> Value {
    match argument {
        Value::List(mut pair)
            if pair.len() == 2 && matches!(&pair[0], Value::Symbol(name) if &**name == "quote") =>
        {
            pair.pop().unwrap_or_default()
        }
        other => other,
    }
}

/// Returns the method and the parameters of `(contexture:NAME ARGUMENTS…)`.
pub(crate) fn call_of(name: &str, arguments: Vec<Value>) -> Result<(String, Value), WireError> {
    let method = kebab(name).into_owned();
    let params = params(&method, arguments)?;
    Ok((method, params))
}

/// Returns the parameters in the arguments, which are keywords and values, or one list of keywords
/// and values.
fn params(method: &str, mut arguments: Vec<Value>) -> Result<Value, WireError> {
    let list = match arguments.as_slice() {
        [] => Value::Nil,
        [Value::Nil | Value::List(_)] => arguments.pop().unwrap_or_default(),
        _ => Value::List(arguments),
    };
    match list == Value::Nil || list.is_plist() {
        true => Ok(list),
        false => Err(invalid(format!(
            "the arguments of ({OURS}:{method} …) must be keywords and values in turn"
        ))),
    }
}

/// Returns the id from the end of a call whose rest cannot be read; `None` if `first` does not
/// begin like a call. The sender of the call waits for an answer with this id.
pub(super) fn last_id(first: &[u8], last: &[u8]) -> Option<RequestId> {
    let begins = first.trim_ascii_start().starts_with(b"(:emacs-rex ");
    let last = last.trim_ascii_end().strip_suffix(b")").filter(|_| begins)?;
    let (_, id) = last.split_at(last.iter().rposition(|byte| *byte == b' ')? + 1);
    std::str::from_utf8(id).ok()?.parse().ok().map(RequestId::Int)
}

/// Appends a message without its header.
pub(super) fn write(message: &Outgoing, out: &mut Vec<u8>) {
    match message {
        Outgoing::Reply(Some(id), Ok(value)) => {
            out.extend_from_slice(b"(:return (:ok ");
            print_into(value, out);
            end_return(id, out);
        }
        Outgoing::Reply(Some(id), Err(error)) => {
            out.extend_from_slice(b"(:return (:abort ");
            print_str(&error.message, out);
            end_return(id, out);
        }
        Outgoing::Reply(None, outcome) => {
            let said = outcome.as_ref().err().map_or("", |error| &*error.message);
            out.extend_from_slice(b"(:background-message ");
            print_str(said, out);
            out.push(b')');
        }
        Outgoing::Notify(method, params) => {
            out.extend_from_slice(b"(:contexture ");
            print_str(method, out);
            out.push(b' ');
            print_into(params, out);
            out.push(b')');
        }
        Outgoing::Event(event) => print_into(event, out),
    }
}

fn end_return(id: &RequestId, out: &mut Vec<u8>) {
    out.extend_from_slice(b") ");
    native::write_id(Some(id), out);
    out.push(b')');
}
