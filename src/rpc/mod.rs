//! The methods: one table from which calls are dispatched and the documentation is written.
//!
//! A method decodes its parameters, does the slow part on owned data, and hands the engine an
//! operation; what remains after the commit (reading files again, rendering) comes last. Nothing
//! here knows how a connection speaks.

mod access;
mod answerer;
mod call;
mod chat;
mod configure;
mod context;
mod embedding;
mod error;
mod history;
mod memories;
mod method;
mod models;
mod notes;
mod param;
mod params;
mod peer;
pub(crate) mod present;
mod report;
mod server;
mod sessions;
mod summarize;
mod table;
mod templates;
mod tool_names;
mod turn;
mod window;

pub use self::access::Access;
pub use self::answerer::{
    Answerer, Approval, Caller, LONGEST_END, Listener, Model, NoModel, UserInput,
};
pub use self::call::{Call, ReplSettings, Tools, Topic};
pub use self::error::{engine_error, internal_error};
pub use self::method::{Method, Pace};
pub use self::param::Param;
pub use self::peer::Peer;
pub use self::server::backup::{back_up_if_due, keep_backups};
pub use self::table::{find, methods};
pub use crate::agent::{Decision, Later, Limits};

use self::sessions::messages;

use std::pin::Pin;

use serde::Serialize;

use crate::engine::{Engine, EngineError, Reach};
use crate::value::Value;
use crate::wire::message::{Id, WireError};

/// What a method gives at once: the answer, or the operation that will lead to it.
pub enum Step {
    /// The answer.
    Done(Value),
    /// What the engine must do, and what of the state that reaches; see [`Finish`].
    State(Reach, Operation),
    /// What must come from elsewhere first, such as the network. The connection's later calls wait
    /// for it, so it must not take long.
    Await(Awaited),
    /// The same for work that ends by itself soon after its call is cancelled, and keeps what it has
    /// by then. The cancelled call is answered once that is kept.
    AwaitEnd(Awaited),
    /// The connection is to cancel this call of its own.
    Cancel(Id),
    /// The connection is to notify its client of exactly these topics.
    Subscribe(Vec<Topic>),
    /// The server is to end once the answer is sent.
    ShutDown,
}

/// Gives the next step. It is dropped when the client no longer wants the answer, at once or after a
/// while; see [`Step`].
pub type Awaited = Pin<Box<dyn Future<Output = Result<Step, WireError>> + Send>>;

/// Runs in the engine; its effects are durable before what it returns is looked at.
pub type Operation = Box<dyn FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send>;

/// What is left to do once the engine has done its part.
pub enum Finish {
    /// Nothing: this is the answer.
    Now(Value),
    /// Nothing: the engine refused, and this says why in more words than the engine has.
    Refused(WireError),
    /// Slow work, or a large answer to be made: to be run on a thread that may block, and when the
    /// client has read most of what it asked for before.
    Later(Work),
}

/// Runs on a thread that may block and gives the answer.
pub type Work = Box<dyn FnOnce() -> Result<Value, WireError> + Send>;

/// An answer with more content than this, in bytes, is not made in the engine.
const LARGE_ANSWER: usize = 64 << 10;

impl Finish {
    /// Returns the answer.
    fn now<T: Serialize>(answer: &T) -> Self {
        Self::Now(Value::of(answer))
    }

    /// Returns work that ends with the answer.
    fn later<T: Serialize>(work: impl FnOnce() -> Result<T, WireError> + Send + 'static) -> Self {
        Self::Later(Box::new(|| Ok(Value::of(&work()?))))
    }

    /// Returns an answer made of so many bytes of content: at once when they are few.
    fn of_size(bytes: usize, answer: impl FnOnce() -> Value + Send + 'static) -> Self {
        match bytes <= LARGE_ANSWER {
            true => Self::Now(answer()),
            false => Self::Later(Box::new(move || Ok(answer()))),
        }
    }
}

impl Step {
    /// Returns the answer.
    fn done<T: Serialize + ?Sized>(answer: &T) -> Result<Self, WireError> {
        Ok(Self::Done(Value::of(answer)))
    }

    /// Returns an operation whose outcome is the answer.
    fn state<T: Serialize>(
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::state_within(Reach::Anything, operation)
    }

    /// Returns an operation that leaves work to do.
    fn then(
        operation: impl FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then_within(Reach::Anything, operation)
    }

    /// [`state`](Self::state) for an operation that reaches no more than this.
    fn state_within<T: Serialize>(
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then_within(reach, |engine| operation(engine).map(|answer| Finish::now(&answer)))
    }

    /// [`then`](Self::then) for an operation that reaches no more than this.
    fn then_within(
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Ok(Self::State(reach, Box::new(operation)))
    }
}

#[cfg(test)]
mod tests;
