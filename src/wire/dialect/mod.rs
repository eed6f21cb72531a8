//! The dialects in which a line or a payload can be a message, and the common rules that turn data
//! into requests. The submodules read and write the data.

mod epc;
mod ids;
mod json;
mod native;
mod slynk;

pub(crate) use self::slynk::{call_of, form_of};
use super::frame::{MAX_PAYLOAD, MessageEnds, write_framed};
use super::message::{CallRequest, Incoming, Outgoing, RequestId, WireError};
use crate::names::names;
use crate::value::json::to_json;
use crate::value::sexp::print_into;
use crate::value::{Value, kebab};

/// Mark with which some programs begin a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

names! {
    /// A notation of messages. `Native` and `Json` have one message per line; `Epc` and `Slynk` put
    /// the length of each message before it.
    Dialect {
        /// Property lists: `(:id 1 :method ping)`.
        Native => "native",
        /// JSON-RPC 2.0: `{"id":1,"method":"ping"}`.
        Json => "json",
        /// EPC: `(call 1 ping nil)`.
        Epc => "epc",
        /// The protocol of SLY and SLIME: `(:emacs-rex (contexture:ping) nil t 1)`.
        Slynk => "slynk",
    }
}

impl Dialect {
    /// Returns whether messages are written in JSON, with its names and words.
    pub(crate) fn is_json(self) -> bool {
        match self {
            Self::Json => true,
            Self::Native | Self::Epc | Self::Slynk => false,
        }
    }

    /// Returns whether bytes can be the beginning of a message that is a line.
    pub(super) fn may_begin_line(bytes: &[u8]) -> bool {
        // Some programs begin with a byte-order mark.
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let bytes = if BYTE_ORDER_MARK.starts_with(bytes) { &[][..] } else { bytes };
        let first = bytes.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        first.is_none_or(|first| Self::of_first(*first).is_some())
    }

    /// Returns the dialect of lines that begin with this byte.
    fn of_first(first: u8) -> Option<Self> {
        match first {
            b'(' => Some(Self::Native),
            b'{' => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the dialect of a connection that begins with this line; `None` if the line is in no
    /// dialect.
    pub fn of_line(line: &[u8]) -> Option<Self> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        match line.iter().find(|byte| !byte.is_ascii_whitespace())? {
            b';' => Some(Self::Native),
            first => Self::of_first(*first),
        }
    }

    /// Returns the dialect of a connection that begins with this payload; `None` if the payload is
    /// in no dialect.
    pub fn of_payload(payload: &[u8]) -> Option<Self> {
        let inside = payload.trim_ascii_start().strip_prefix(b"(")?.trim_ascii_start();
        let end = inside.iter().position(|b| b.is_ascii_whitespace() || *b == b')');
        let head = std::str::from_utf8(&inside[..end.unwrap_or(inside.len())]).ok()?;
        match head {
            head if head.starts_with(slynk::HEAD) => Some(Self::Slynk),
            head if epc::HEADS.contains(&head) => Some(Self::Epc),
            _ => None,
        }
    }

    /// Returns the id of a call of which only the first and last bytes are known; `None` if these
    /// bytes do not contain it. The sender of the call waits for an answer with this id.
    pub fn id_of_ends(self, ends: &MessageEnds) -> Option<RequestId> {
        match self {
            Self::Epc => epc::first_id(&ends.first),
            Self::Slynk => slynk::last_id(&ends.first, &ends.last),
            Self::Native => ids::native(ends),
            Self::Json => ids::json(ends),
        }
    }

    /// Returns whether each message is preceded by its length.
    pub fn is_framed(self) -> bool {
        match self {
            Self::Epc | Self::Slynk => true,
            Self::Native | Self::Json => false,
        }
    }

    /// Returns whether a client gets notifications for which it did not subscribe, such as
    /// `progress`. In framed dialects, it gets none.
    pub fn has_progress(self) -> bool {
        !self.is_framed()
    }

    /// Returns the maximum length of a message in this dialect if the configuration allows `limit`
    /// bytes.
    pub fn longest(self, limit: usize) -> usize {
        if self.is_framed() { limit.min(MAX_PAYLOAD) } else { limit }
    }

    /// Returns the length of a datum as it is written, in bytes.
    pub(crate) fn length_of(self, value: &Value) -> usize {
        let mut out = Vec::new();
        let write = if self.is_json() { to_json } else { print_into };
        write(value, &mut out);
        out.len()
    }

    /// Decodes a line without its end, or a payload. Never fails: a line or payload that cannot be
    /// read is [`Incoming::Invalid`].
    pub fn decode(self, message: &[u8]) -> Incoming {
        if is_skipped(message) {
            return Incoming::Ignored;
        }
        let (value, first_id): (_, fn(&[u8]) -> _) = match self {
            Self::Native => (native::read(message), ids::native_first),
            Self::Json => (json::read(message), ids::json_first),
            Self::Epc => return epc::decode(message),
            Self::Slynk => return slynk::decode(message),
        };
        match value {
            Ok(value) => incoming(value),
            Err(error) => Incoming::Invalid(first_id(&MessageEnds::of(message).first), error),
        }
    }
}

/// An encoder of messages in one dialect.
#[derive(Debug, Clone)]
pub struct Encoder {
    dialect: Dialect,
    /// Number of calls made to an EPC client's methods.
    calls: u64,
}

impl Encoder {
    /// Creates an encoder for a new connection.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, calls: 0 }
    }

    /// Returns the encoder's dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Appends `message` with the `\n` of a line or the header of a payload. Returns the number of
    /// appended bytes, not counting the header.
    pub fn encode(&mut self, message: &Outgoing, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        match self.dialect {
            Dialect::Native => native::write(message, out),
            Dialect::Json => json::write(message, out),
            Dialect::Epc => {
                return write_framed(out, |out| epc::write(message, &mut self.calls, out));
            }
            Dialect::Slynk => return write_framed(out, |out| slynk::write(message, out)),
        }
        out.push(b'\n');
        out.len() - start
    }
}

/// Returns whether a line or payload is blank or a comment; this is the same in all dialects.
fn is_skipped(line: &[u8]) -> bool {
    line.iter().find(|byte| !byte.is_ascii_whitespace()).is_none_or(|first| *first == b';')
}

/// Creates the error for data that cannot be read. `column` is the place, counted from 1 in
/// characters.
fn parse_error(message: String, column: usize) -> WireError {
    let column = i64::try_from(column).unwrap_or(i64::MAX);
    let data = Value::Map(vec![("column".into(), Value::Int(column))]);
    WireError::new(WireError::PARSE, message).with(data)
}

/// Returns the line as text, or the error that it is not UTF-8.
/// Reads the text of a message, without the byte-order mark that some programs begin with.
fn text_of(line: &[u8]) -> Result<&str, WireError> {
    let text = std::str::from_utf8(line);
    text.map(|text| text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| {
        let valid = String::from_utf8_lossy(&line[..error.valid_up_to()]);
        let column = valid.chars().count() + 1;
        parse_error(format!("column {column}: the message is not UTF-8"), column)
    })
}

/// Converts the datum of a message. An error has the message's id if the id can be read.
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
        Ok((method, params)) => Incoming::Call(CallRequest { id, method, params }),
        Err(error) => Incoming::Invalid(id, error),
    }
}

/// The members of a message that have a meaning.
#[derive(Default)]
struct Parts {
    id: Option<Value>,
    method: Option<Value>,
    params: Option<Value>,
    is_reply: bool,
}

impl Parts {
    fn of(value: Value) -> Result<Self, (Option<RequestId>, WireError)> {
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

    fn put_plist(&mut self, items: Vec<Value>) -> Result<(), (Option<RequestId>, WireError)> {
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
                (other, _) => format!("{} in place of a keyword", other.describe()),
            };
            let id = self.id.take().and_then(|id| id_of(id).ok().flatten());
            return Err((id, invalid(format!("the message is not a property list: {problem}"))));
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

fn invalid(message: impl AsRef<str>) -> WireError {
    WireError::new(WireError::INVALID_REQUEST, message)
}

fn no_message(value: &Value) -> WireError {
    no_message_of("a property list such as (:id 1 :method ping)", value)
}

fn no_message_of(shape: &str, value: &Value) -> WireError {
    invalid(format!("a message must be {shape}, got {}", value.describe()))
}

fn id_of(id: Value) -> Result<Option<RequestId>, WireError> {
    match id {
        Value::Nil => Ok(None),
        Value::Int(number) => Ok(Some(RequestId::Int(number))),
        Value::Str(text) => Ok(Some(RequestId::Str(text))),
        other => Err(invalid(format!(
            "id must be a 64-bit integer or a string, got {}",
            other.describe()
        ))),
    }
}

fn method_of(method: Option<Value>) -> Result<String, WireError> {
    match method {
        None | Some(Value::Nil) => Err(invalid("the message has no method")),
        Some(method) => match method.as_text().filter(|name| !name.is_empty()) {
            Some(name) => Ok(kebab(name).into_owned()),
            None => Err(invalid(format!("method must be a name, got {}", method.describe()))),
        },
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
                Value::List(_) => "another kind of list".to_owned(),
                _ => other.describe(),
            };
            Err(invalid(format!("params must be a property list or map, got {got}")))
        }
    }
}

#[cfg(test)]
mod tests;
