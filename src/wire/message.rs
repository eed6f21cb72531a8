//! What passes between a connection and the methods, whatever the dialect.

use crate::value::Value;
use crate::visible::visible_lines;

/// A request's id as the client chose it: an integer or a string, echoed unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// An integer id.
    Int(i64),
    /// A string id.
    Str(String),
}

impl From<Id> for Value {
    fn from(id: Id) -> Self {
        match id {
            Id::Int(number) => Self::Int(number),
            Id::Str(text) => Self::Str(text),
        }
    }
}

/// One call: a request with an id, or a notification without.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Absent for a notification, which gets no reply.
    pub id: Option<Id>,
    /// The method's name in kebab-case.
    pub method: String,
    /// The parameters: a plist, map or nil.
    pub params: Value,
}

/// What one message of a client turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A well-formed call.
    Call(Request),
    /// Something else, with the error to answer; the id is known when it could be read.
    Invalid(Option<Id>, WireError),
    /// EPC's question which methods there are, whose answer has a form of its own.
    Methods(Option<Id>),
    /// Something that SLY or SLIME say and that is no call of a method.
    Talk(Talk),
    /// A comment or an empty line, a reply nobody asked for: nothing to do.
    Ignored,
}

/// What SLY and SLIME say apart from calling methods.
#[derive(Debug, Clone, PartialEq)]
pub enum Talk {
    /// Evaluate a form and answer under this id.
    Evaluate {
        /// The id of the answer.
        id: i64,
        /// The form.
        form: Form,
        /// The thread in which to do so: a number, `t` or a keyword.
        thread: Value,
    },
    /// A message to a channel of the server's.
    Channel {
        /// The channel's number.
        channel: i64,
        /// A keyword and what goes with it.
        message: Vec<Value>,
    },
    /// Stop what the thread does.
    Interrupt {
        /// The thread: a number, `t` or a keyword.
        thread: Value,
    },
    /// The answer to a question of the server's.
    Answer {
        /// The question's tag.
        tag: Value,
        /// What was answered.
        value: Value,
    },
}

/// A Lisp form to be evaluated.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// `(PACKAGE:NAME ARGUMENTS…)`, the names in lower case, the arguments without their quotes.
    Call {
        /// The package; empty when the name has none.
        package: String,
        /// The function's name.
        name: String,
        /// The arguments.
        arguments: Vec<Value>,
    },
    /// Anything else.
    Datum(Value),
}

/// What the server says to a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    /// The answer to the request with this id (`None` when the id could not be read).
    Reply(Option<Id>, Result<Value, WireError>),
    /// A notification: method and parameters.
    Notify(&'static str, Value),
    /// What only SLY and SLIME understand, whole.
    Event(Value),
}

/// An error as clients see it: JSON-RPC's codes, 1 and up for the application's own.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// See the associated constants.
    pub code: i32,
    /// A phrase for people: what was wrong, where, what to do.
    pub message: String,
    /// Details for programs, a map; `Nil` when there are none.
    pub data: Value,
}

impl WireError {
    /// The message could not be read.
    pub const PARSE: i32 = -32700;
    /// The message is readable but is no request, or is larger than allowed.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// A parameter is missing, unknown or out of range.
    pub const INVALID_PARAMS: i32 = -32602;
    /// A defect in the server.
    pub const INTERNAL: i32 = -32603;
    /// The request was cancelled by its client.
    pub const CANCELLED: i32 = -32800;
    /// The application's errors; `data` has `:kind`.
    pub const APPLICATION: i32 = 1;

    /// An error without details. What hides in the names that its message quotes is shown.
    pub fn new(code: i32, message: impl AsRef<str>) -> Self {
        Self { code, message: visible_lines(message.as_ref()).into_owned(), data: Value::Nil }
    }
}
