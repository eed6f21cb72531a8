//! The messages between a connection and the methods, in any dialect.

use crate::value::Value;
use crate::visible::{shortened, visible_lines};

/// Maximum length of an error's message, and of each text in its data, in bytes. Both quote what the
/// client sent.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// The id of a request, chosen by the client and echoed unchanged: an integer or a string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// An integer id.
    Int(i64),
    /// A string id.
    Str(String),
}

impl From<RequestId> for Value {
    fn from(id: RequestId) -> Self {
        match id {
            RequestId::Int(number) => Self::Int(number),
            RequestId::Str(text) => Self::Str(text),
        }
    }
}

/// A call: a request if it has an id, otherwise a notification.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// Id of the request. Absent for a notification, which gets no reply.
    pub id: Option<RequestId>,
    /// Name of the method in kebab-case.
    pub method: String,
    /// Parameters: a plist, map or nil.
    pub params: Value,
}

/// A decoded message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A well-formed call.
    Call(CallRequest),
    /// A message that cannot be understood: its id, if that could be read, and the error to answer.
    Invalid(Option<RequestId>, WireError),
    /// A request of an EPC client for the list of methods. Only EPC has this request.
    Methods(Option<RequestId>),
    /// A message of SLY or SLIME that does not call a method.
    Talk(ReplTalk),
    /// A comment, an empty line or a reply: nothing to do.
    Ignored,
}

/// The messages of SLY and SLIME other than calls of methods.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplTalk {
    /// Evaluate a form and answer under this id.
    Evaluate {
        /// Id of the answer.
        id: i64,
        /// Form to evaluate.
        form: LispForm,
        /// Thread in which to evaluate the form: a number, `t` or a keyword.
        thread: Value,
    },
    /// A message to one of the server's channels.
    Channel {
        /// Number of the channel.
        channel: i64,
        /// A keyword and its arguments.
        message: Vec<Value>,
    },
    /// Stop the work of the thread.
    Interrupt {
        /// The thread: a number, `t` or a keyword.
        thread: Value,
    },
    /// The answer to a question of the server.
    Answer {
        /// Tag of the question.
        tag: Value,
        /// Answer.
        value: Value,
    },
}

/// A Lisp form to evaluate.
#[derive(Debug, Clone, PartialEq)]
pub enum LispForm {
    /// `(PACKAGE:NAME ARGUMENTS…)`, with the names in lower case and the arguments without quotes.
    Call {
        /// Package of the function; empty if the form names no package.
        package: String,
        /// Name of the function.
        name: String,
        /// Arguments.
        arguments: Vec<Value>,
    },
    /// Anything else.
    Datum(Value),
}

/// A message from the server to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// The answer to the request with this id; `None` if the message has no id that can be read.
    Reply(Option<RequestId>, Result<Value, WireError>),
    /// A notification: method and parameters.
    Notify(&'static str, Value),
    /// A complete message that only SLY and SLIME understand.
    Event(Value),
}

/// An error as clients see it. The codes are those of JSON-RPC, with −32800 for cancelled requests
/// and 1 for errors of the application.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// Code of the error: one of the associated constants.
    pub code: i32,
    /// Phrase for readers: the problem, its place, and what to do.
    pub message: String,
    /// Details for programs, as a map; `Nil` if there are none.
    pub data: Value,
}

impl WireError {
    /// The message could not be read.
    pub const PARSE: i32 = -32700;
    /// The message is readable but not a request, or the message or its answer is too large.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method exists.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// A parameter is missing, unknown or invalid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A defect in the server.
    pub const INTERNAL: i32 = -32603;
    /// The request was cancelled by its client.
    pub const CANCELLED: i32 = -32800;
    /// An error of the application; `data` has `:kind`.
    pub const APPLICATION: i32 = 1;

    /// Creates an error without details. Hidden characters in the message become visible, and the
    /// middle of a long message is left out.
    pub fn new(code: i32, message: impl AsRef<str>) -> Self {
        let message = shortened(message.as_ref(), MAX_ERROR_BYTES);
        Self { code, message: visible_lines(&message).into_owned(), data: Value::Nil }
    }

    /// Returns the error with `data`. The middle of each long text in the data is left out.
    pub(crate) fn with(self, mut data: Value) -> Self {
        shorten_texts(&mut data);
        Self { data, ..self }
    }
}

fn shorten_texts(value: &mut Value) {
    match value {
        Value::Str(text) if text.len() > MAX_ERROR_BYTES => {
            *text = shortened(text, MAX_ERROR_BYTES).into_owned();
        }
        Value::List(items) | Value::Vector(items) => items.iter_mut().for_each(shorten_texts),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, it)| shorten_texts(it)),
        _ => {}
    }
}
