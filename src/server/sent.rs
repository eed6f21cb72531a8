//! Fills in the session of a call that names none: the session that is current after the client's
//! earlier calls, even if the call itself runs later. Knows no method by name.

use tokio::sync::oneshot;

use super::Server;
use crate::engine::{Caller, Engine, EngineError, Reach};
use crate::ids::SessionId;
use crate::rpc::{Method, engine_error};
use crate::value::Value;
use crate::wire::message::WireError;

/// Pending answer of the engine with the number of the current session; `None` for a call that
/// needs no current session.
pub(super) struct SentTo(Option<oneshot::Receiver<Result<u64, EngineError>>>);

impl SentTo {
    /// Asks the engine for the current session, if the call needs it. The engine handles this
    /// question after the client's earlier calls.
    pub(super) async fn read(
        server: &Server,
        caller: Caller,
        method: &Method,
        params: &Value,
    ) -> Self {
        if !method.is_about_current_session(params) {
            return Self(None);
        }
        let (sender, receiver) = oneshot::channel();
        let current = |engine: &mut Engine| Ok(engine.find_session(None)?.id);
        let answer = |outcome| drop(sender.send(outcome));
        // If the engine has ended, the receiver gets an error.
        let _ = server.tools().engine.submit(caller, Reach::Session(None), current, answer).await;
        Self(Some(receiver))
    }

    /// Returns whether the call is about the current session because it names none.
    pub(super) fn is_current(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the parameters and an outcome. Adds the current session to the parameters if the
    /// call needs it; the outcome is an error if there is no current session.
    pub(super) async fn named_in(self, mut params: Value) -> (Value, Result<(), WireError>) {
        let Self(Some(receiver)) = self else { return (params, Ok(())) };
        match receiver.await.unwrap_or(Err(EngineError::Ended)) {
            Ok(id) => {
                params.put_first("session", SessionId(id).into());
                (params, Ok(()))
            }
            Err(error) => (params, Err(engine_error(error))),
        }
    }
}
