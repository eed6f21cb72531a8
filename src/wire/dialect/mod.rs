//! The dialects in which a line can be a message, and what they have in common: which data make a
//! request. Reading and writing the data is left to the submodules.

mod json;
mod native;

use super::message::{Id, Incoming, Outgoing, Request, WireError};
use crate::value::{Value, kebab};

/// A way to write messages, one per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Property lists: `(:id 1 :method ping)`.
    Native,
    /// JSON-RPC 2.0: `{"id":1,"method":"ping"}`.
    Json,
}

impl Dialect {
    /// The dialect of a connection whose first line this is, if it is any of ours.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        match line.iter().find(|byte| !byte.is_ascii_whitespace())? {
            b'(' | b';' => Some(Self::Native),
            b'{' => Some(Self::Json),
            _ => None,
        }
    }

    /// What a line without its end says. Never fails: a bad line is [`Incoming::Invalid`].
    pub fn decode(self, line: &[u8]) -> Incoming {
        if is_skipped(line) {
            return Incoming::Ignored;
        }
        let value = match self {
            Self::Native => native::read(line),
            Self::Json => json::read(line),
        };
        match value {
            Ok(value) => incoming(value),
            Err(error) => Incoming::Invalid(None, error),
        }
    }

    /// Appends `message` as one line, its `\n` included.
    pub fn encode(self, message: &Outgoing, out: &mut Vec<u8>) {
        match self {
            Self::Native => native::write(message, out),
            Self::Json => json::write(message, out),
        }
        out.push(b'\n');
    }
}

/// Whether a line is empty or a comment, in either dialect.
fn is_skipped(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|first| *first == b';')
}

/// A failure to read the data, at a column counted from 1 in characters.
fn parse_error(message: String, column: usize) -> WireError {
    let column = i64::try_from(column).unwrap_or(i64::MAX);
    let data = Value::Map(vec![("column".into(), Value::Int(column))]);
    WireError { code: WireError::PARSE, message, data }
}

/// The line as text.
fn text_of(line: &[u8]) -> Result<&str, WireError> {
    std::str::from_utf8(line).map_err(|error| {
        let valid = String::from_utf8_lossy(&line[..error.valid_up_to()]);
        let column = valid.chars().count() + 1;
        parse_error(format!("column {column}: the message is not UTF-8"), column)
    })
}

/// Takes the message apart; what is wrong with it is told to the request whose id can be read.
fn incoming(value: Value) -> Incoming {
    let parts = match Parts::of(value) {
        Ok(parts) => parts,
        Err((id, error)) => return Incoming::Invalid(id, error),
    };
    if parts.method.is_none() && parts.is_reply {
        return Incoming::Ignored;
    }
    let id = match parts.id.map(id_of).transpose() {
        Ok(id) => id.flatten(),
        Err(error) => return Incoming::Invalid(None, error),
    };
    match method_of(parts.method).and_then(|method| Ok((method, params_of(parts.params)?))) {
        Ok((method, params)) => Incoming::Call(Request { id, method, params }),
        Err(error) => Incoming::Invalid(id, error),
    }
}

/// The members of a message that mean something.
#[derive(Default)]
struct Parts {
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    is_reply: bool,
}

impl Parts {
    fn of(value: Value) -> Result<Self, (Option<Id>, WireError)> {
        let mut parts = Self::default();
        match value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    parts.put(&key, value);
                }
            }
            Value::List(items) => parts.put_plist(items)?,
            other => return Err((None, no_message(&other))),
        }
        Ok(parts)
    }

    fn put_plist(&mut self, items: Vec<Value>) -> Result<(), (Option<Id>, WireError)> {
        if !matches!(items.first(), Some(Value::Keyword(_))) {
            return Err((None, no_message(&Value::List(items))));
        }
        let mut items = items.into_iter();
        while let Some(key) = items.next() {
            let problem = match (key, items.next()) {
                (Value::Keyword(key), Some(value)) => {
                    self.put(&key, value);
                    continue;
                }
                (Value::Keyword(key), None) => format!(":{key} has no value"),
                (other, _) => format!("{} where a keyword belongs", other.describe()),
            };
            let id = self.id.take().and_then(|id| id_of(id).ok().flatten());
            return Err((id, invalid(format!("the message is no property list: {problem}"))));
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: Value) {
        let place = match key {
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" | "error" => {
                self.is_reply = true;
                return;
            }
            _ => return,
        };
        place.get_or_insert(value);
    }
}

fn invalid(message: impl Into<String>) -> WireError {
    WireError::new(WireError::INVALID_REQUEST, message)
}

fn no_message(value: &Value) -> WireError {
    let got = value.describe();
    invalid(format!("a message is a property list such as (:id 1 :method ping), got {got}"))
}

fn id_of(id: Value) -> Result<Option<Id>, WireError> {
    match id {
        Value::Nil => Ok(None),
        Value::Int(number) => Ok(Some(Id::Int(number))),
        Value::Str(text) | Value::Propertized(text, _) => Ok(Some(Id::Str(text))),
        other => Err(invalid(format!(
            "id must be a 64-bit integer or a string, got {}",
            other.describe()
        ))),
    }
}

fn method_of(method: Option<Value>) -> Result<String, WireError> {
    match method {
        None | Some(Value::Nil) => Err(invalid("the message has no method")),
        Some(Value::Str(name) | Value::Propertized(name, _)) if !name.is_empty() => {
            Ok(kebab(&name).into_owned())
        }
        Some(Value::Symbol(name) | Value::Keyword(name)) if !name.is_empty() => {
            Ok(kebab(&name).into_owned())
        }
        Some(other) => Err(invalid(format!("method must be a name, got {}", other.describe()))),
    }
}

fn params_of(params: Option<Value>) -> Result<Value, WireError> {
    match params {
        None => Ok(Value::Nil),
        Some(params @ (Value::Nil | Value::Map(_))) => Ok(params),
        Some(Value::List(items) | Value::Vector(items)) if items.is_empty() => Ok(Value::Nil),
        Some(params) if params.is_plist() => Ok(params),
        Some(other) => {
            let got = match &other {
                Value::List(_) => "a list of another form".to_owned(),
                _ => other.describe(),
            };
            Err(invalid(format!("params must be a property list or map, got {got}")))
        }
    }
}

#[cfg(test)]
mod tests;
