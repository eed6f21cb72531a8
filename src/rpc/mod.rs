//! The methods: one table from which calls are dispatched and the documentation is written.
//!
//! A method decodes its parameters, does the slow part on owned data, and hands the engine an
//! operation; what remains after the commit (reading files again, rendering) comes last. Nothing
//! here knows how a connection speaks.

mod access;
mod agent;
mod backup;
mod call;
mod chat;
mod checkpoints;
mod configure;
mod context;
mod embedding;
mod error;
mod files;
mod history;
mod memories;
mod messages;
mod models;
mod notes;
mod params;
pub(crate) mod present;
mod query;
mod refresh;
mod report;
mod server;
mod sessions;
mod sets;
mod summarize;
mod table;
mod templates;
mod tools;
mod transcript;
mod trust;
mod turn;
mod window;

pub use self::access::Access;
pub use self::agent::{Agent, Approval, Caller, LONGEST_END, Listener, Model, NoModel, Turn};
pub use self::backup::{back_up_if_due, keep_backups};
pub use self::call::{Call, Peer, ReplSettings, Tools, Topic};
pub use self::error::{engine_error, internal_error};
pub use self::table::{Method, Pace, Param, find, methods};
pub use crate::agent::{Decision, Later, Limits};

use std::pin::Pin;

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
    /// An answer made of so many bytes of content: at once when they are few.
    fn of_size(bytes: usize, answer: impl FnOnce() -> Value + Send + 'static) -> Self {
        match bytes <= LARGE_ANSWER {
            true => Self::Now(answer()),
            false => Self::Later(Box::new(move || Ok(answer()))),
        }
    }
}

impl Step {
    /// An operation whose outcome is the answer.
    fn state(
        operation: impl FnOnce(&mut Engine) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then(|engine| operation(engine).map(Finish::Now))
    }

    /// An operation that leaves work to do.
    fn then(
        operation: impl FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Ok(Self::State(Reach::Anything, Box::new(operation)))
    }

    /// [`state`](Self::state) for an operation that reaches no more than this.
    fn state_within(
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then_within(reach, |engine| operation(engine).map(Finish::Now))
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
