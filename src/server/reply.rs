//! The answer of one call: its destination, and its error when the call is given up. A call is
//! given up when it is cancelled, or when an ending server no longer waits for it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::outbox::{LargePlaces, Outbox};
use super::running::RunningCalls;
use crate::engine::{Caller, EngineError};
use crate::rpc::{self, Method, engine_error};
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::message::{RequestId, WireError};

/// Result of a call.
pub(super) type ReplyOutcome = Result<Value, WireError>;

/// Destination of a call's answer.
pub(super) enum To {
    /// The client, under the request's id. A notification has no id and gets no answer.
    Client(Option<RequestId>),
    /// A caller inside the server, such as a REPL.
    Caller(oneshot::Sender<ReplyOutcome>),
}

pub(super) struct EncodedReply {
    pub(super) dialect: Dialect,
    pub(super) method: Option<&'static Method>,
    pub(super) outbox: Outbox,
    pub(super) to: To,
    pub(super) cancelled: Arc<CancellationToken>,
    /// Cancelled when the server ends.
    pub(super) ending: CancellationToken,
    /// Cancelled when the server no longer waits for open calls.
    pub(super) over: CancellationToken,
    pub(super) running: RunningCalls,
    /// Places of the client's large answers.
    pub(super) places: Arc<Semaphore>,
    pub(super) caller: Caller,
    /// Length of the call's message in bytes.
    pub(super) bytes: usize,
    /// Permits that the call's message holds until the call is answered.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl EncodedReply {
    pub(super) fn send(self, outcome: ReplyOutcome) {
        self.send_from(outcome, None);
    }

    /// Waits until the call is given up, and returns the error that is then the answer.
    pub(super) async fn given_up(&self) -> WireError {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => engine_error(EngineError::Cancelled),
            () = self.over.cancelled() => engine_error(EngineError::Ended),
        }
    }

    /// Returns the output of `waiting`, or the error to answer if the call is given up first.
    pub(super) async fn unless_given_up<T>(
        &self,
        waiting: impl Future<Output = T>,
    ) -> Result<T, WireError> {
        tokio::select! {
            biased;
            outcome = waiting => Ok(outcome),
            error = self.given_up() => Err(error),
        }
    }

    /// Sends an answer. `places` are those of a large answer; `None` for other answers.
    pub(super) fn send_from(self, outcome: ReplyOutcome, places: Option<LargePlaces>) {
        if let To::Client(Some(id)) = &self.to {
            self.running.forget(id, &self.cancelled);
        }
        let outcome = outcome.map_err(|error| match self.cancelled.is_cancelled() {
            false if error.code == WireError::CANCELLED && self.ending.is_cancelled() => {
                of_the_end(error)
            }
            _ => error,
        });
        let outcome = outcome.map_err(|error| rpc::spelled(error, self.dialect, self.method));
        match (self.to, &outcome) {
            (To::Client(id @ Some(_)), _) => self.outbox.reply_from(id, outcome, places),
            (To::Client(None), Err(error)) => tracing::debug!("a notification failed: {error}"),
            (To::Client(None), Ok(_)) => {}
            // The caller may have stopped waiting.
            (To::Caller(caller), _) => drop(caller.send(outcome)),
        }
    }
}

/// Returns the error of a call that was cancelled because the server ends.
fn of_the_end(cancelled: WireError) -> WireError {
    let mut error = engine_error(EngineError::Ended);
    if let (Value::Map(data), Value::Map(more)) = (&mut error.data, cancelled.data) {
        data.extend(more.into_iter().filter(|(name, _)| name.kebab() != "kind"));
    }
    error
}
