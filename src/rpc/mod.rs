//! The methods: one table from which calls are dispatched and the documentation is written.
//!
//! A method decodes its parameters, does the slow part on owned data, and hands the engine an
//! operation; work that can wait until after the commit (reading files again, rendering) comes
//! last. Nothing here reads from a connection or writes to one.

mod access;
mod agent_tools;
mod agents;
mod answerer;
mod call;
mod chat;
mod client;
mod client_tools;
mod configure;
mod connected;
mod context;
pub(crate) mod contract;
mod count;
mod editors;
mod embedding;
mod error;
mod error_data;
mod history;
mod hub;
mod keyed;
pub(crate) mod limits;
mod memories;
mod method;
mod models;
mod notes;
pub(crate) mod notification;
mod operations;
mod page;
mod param;
mod params;
mod peer;
pub(crate) mod present;
mod prune;
mod report;
mod server;
mod session_report;
mod sessions;
mod shapes;
mod spelling;
mod summarize;
mod table;
mod templates;
mod tool_methods;
mod tool_names;
mod touched;
mod turn;
mod undo;
mod version;
mod window;

pub(crate) use self::access::Access;
pub use self::answerer::{Answerer, Approval, Listener, MethodCaller, UserInput};
pub(crate) use self::answerer::{LONGEST_END, ModelAnswerer};
pub(crate) use self::call::{MethodCall, Subscription};
pub use self::call::{ReplSettings, Tools};
pub(crate) use self::client::Client;
pub use self::client_tools::ClientTools;
pub use self::editors::Editors;
pub(crate) use self::error::{engine_error, internal_error};
pub use self::method::Method;
pub(crate) use self::method::Pace;
pub use self::notification::Topic;
pub use self::param::Param;
pub(crate) use self::peer::Peer;
pub(crate) use self::server::backup::look_after_state;
pub(crate) use self::server::hub::share;
pub(crate) use self::server::{CallCancelled, Subscribed, default_limits};
pub(crate) use self::table::CalledMethod;
pub use self::table::methods;
pub(crate) use self::table::{document, find, spelled};
pub(crate) use self::touched::Touched;
#[cfg(test)]
pub(crate) use self::touched::TouchedPart;
pub(crate) use crate::agent::Decision;
pub use crate::agent::{Later, Limits};

use self::sessions::messages;

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::engine::{Engine, EngineError, Reach};
use crate::value::Value;
use crate::wire::message::{RequestId, WireError};

/// The next step of a call: its answer, or further work.
pub enum Step {
    /// The answer.
    Done(Value),
    /// Run this operation in the engine. The [`Reach`] is the part of the state that the operation
    /// touches, and the operation returns a [`Finish`].
    State(Reach, EngineOperation),
    /// Wait for something outside the engine, such as the network. Unless the method runs aside
    /// (see [`Pace`]), the connection's later calls wait too.
    Await(Awaited),
    /// Like `Await`, for work that ends soon after its call is cancelled and keeps its results so
    /// far. A cancelled call is answered when the work has ended, or after `LONGEST_END`.
    AwaitEnd(Awaited),
    /// Cancel another call of the same connection.
    Cancel(RequestId),
    /// Replace the client's subscription with this one.
    Subscribe(Subscription),
    /// End the server once the answer is sent.
    ShutDown,
}

/// A future that returns the next step. If the call is given up, the future is dropped, either at
/// once or as [`Step::AwaitEnd`] says.
pub(crate) type Awaited = Pin<Box<dyn Future<Output = Result<Step, WireError>> + Send>>;

/// An operation in the engine. Its effects are durable before its result is used.
pub(crate) type EngineOperation =
    Box<dyn FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send>;

/// The work that remains after the engine's part.
pub enum Finish {
    /// No work: this is the answer.
    Now(Value),
    /// No work: the call is refused with this error, which says more than an `EngineError` can.
    Refused(WireError),
    /// Slow work, or building a large answer. It runs on a thread that may block, and waits while
    /// the client has too many such answers still to read.
    Later(Work),
}

/// Work that runs on a thread that may block, and returns the answer.
pub(crate) type Work = Box<dyn FnOnce() -> Result<Value, WireError> + Send>;

/// Content size in bytes above which an answer is not built in the engine.
const LARGE_ANSWER: usize = 64 << 10;

/// Locks a mutex, even after a panic: each change of the data of these mutexes is one step, so a
/// panic cannot leave them inconsistent.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Finish {
    fn now<T: Serialize>(answer: &T) -> Self {
        Self::Now(Value::of(answer))
    }

    /// Returns a finish whose answer is what `work` returns.
    fn later<T: Serialize>(work: impl FnOnce() -> Result<T, WireError> + Send + 'static) -> Self {
        Self::Later(Box::new(|| Ok(Value::of(&work()?))))
    }

    /// Does the work that remains, and returns the answer.
    fn answer(self) -> Result<Value, WireError> {
        match self {
            Self::Now(value) => Ok(value),
            Self::Later(work) => work(),
            Self::Refused(error) => Err(error),
        }
    }

    /// Returns a finish whose answer has `bytes` bytes of content. A small answer is built at once,
    /// a large one later.
    fn of_size(bytes: usize, answer: impl FnOnce() -> Value + Send + 'static) -> Self {
        match bytes <= LARGE_ANSWER {
            true => Self::Now(answer()),
            false => Self::Later(Box::new(move || Ok(answer()))),
        }
    }
}

impl From<Result<Value, WireError>> for Finish {
    fn from(answer: Result<Value, WireError>) -> Self {
        answer.map_or_else(Self::Refused, Self::Now)
    }
}

impl Step {
    fn done<T: Serialize + ?Sized>(answer: &T) -> Result<Self, WireError> {
        Ok(Self::Done(Value::of(answer)))
    }

    /// Returns a step with an operation whose result is the answer.
    fn state<T: Serialize>(
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::state_within(Reach::Anything, operation)
    }

    /// Returns a step with an operation that may leave work to do.
    fn then(
        operation: impl FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then_within(Reach::Anything, operation)
    }

    /// Like [`state`](Self::state), for an operation that touches only the part of the state in
    /// `reach`.
    fn state_within<T: Serialize>(
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Self::then_within(reach, |engine| operation(engine).map(|answer| Finish::now(&answer)))
    }

    /// Like [`then`](Self::then), for an operation that touches only the part of the state in
    /// `reach`.
    fn then_within(
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<Finish, EngineError> + Send + 'static,
    ) -> Result<Self, WireError> {
        Ok(Self::State(reach, Box::new(operation)))
    }
}

#[cfg(test)]
mod tests;
