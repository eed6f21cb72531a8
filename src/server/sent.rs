//! The session of a call that names none: the one that was current when the call was read, not the
//! one that is current when it runs at last. It knows no method by name.

use tokio::sync::oneshot;

use super::Server;
use crate::engine::{Caller, Engine, EngineError, Reach};
use crate::rpc::{Method, engine_error};
use crate::value::Value;
use crate::wire::message::WireError;

/// The session to which a call without one was sent; nothing for a call that names its own.
pub(super) struct SentTo(Option<oneshot::Receiver<Result<u64, EngineError>>>);

impl SentTo {
    /// Asks for the current session, in the order of the client's calls; the engine has applied
    /// those before by the time it answers.
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
        // When the engine has ended, the receiver learns of it.
        let _ = server.tools().engine.submit(caller, Reach::Session(None), current, answer).await;
        Self(Some(receiver))
    }

    /// The parameters with the session in them, or why there is none.
    pub(super) async fn named_in(self, params: Value) -> (Value, Result<(), WireError>) {
        let Self(Some(receiver)) = self else { return (params, Ok(())) };
        match receiver.await.unwrap_or(Err(EngineError::Ended)) {
            Ok(id) => (with_session(params, id), Ok(())),
            Err(error) => (params, Err(engine_error(error))),
        }
    }
}

/// Of two entries of one name the first counts, so the session goes first.
fn with_session(params: Value, id: u64) -> Value {
    let id = Value::Str(format!("ses-{id}"));
    match params {
        Value::Nil => Value::Map(vec![("session".into(), id)]),
        Value::Map(mut entries) => {
            entries.insert(0, ("session".into(), id));
            Value::Map(entries)
        }
        Value::List(mut flat) => {
            flat.splice(0..0, [Value::Keyword("session".into()), id]);
            Value::List(flat)
        }
        // It is refused as it is.
        other => other,
    }
}
