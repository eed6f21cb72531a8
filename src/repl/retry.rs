//! Remembers the last question of a REPL, and asks it again so that the new answer replaces the old
//! one.

use super::ReplShared;
use super::lisp::{items, list, refusal, string_at, text, value_at};
use super::session::ReplSession;
use crate::value::Value;
use crate::wire::message::WireError;

/// Maximum number of characters of a question in the message of its checkpoint.
const FIRST_WORDS: usize = 50;

/// A question that can be asked again.
pub(super) struct RetryableQuestion {
    /// The session in which the question was asked.
    pub(super) session: ReplSession,
    pub(super) text: String,
    /// Checkpoint before the question; `nil` if the session keeps none.
    checkpoint: Value,
}

/// Takes a checkpoint before the question `typed`, so that [`again`] can go back to it, and returns
/// the question.
pub(super) async fn before(
    shared: &ReplShared,
    session: ReplSession,
    typed: String,
) -> Result<RetryableQuestion, WireError> {
    let words: Vec<_> = typed.split_whitespace().collect();
    let words: String = words.join(" ").chars().take(FIRST_WORDS).collect();
    let params = [("session", text(&*session.name)), ("message", text(format!("Before: {words}")))];
    let taken = shared.call("checkpoint", params).await?;
    Ok(RetryableQuestion { session, text: typed, checkpoint: value_at(&taken, "checkpoint") })
}

/// Goes back to the checkpoint before the question, if there is one, and returns the question,
/// which the caller asks again. Fails if nothing was asked. The items of the context stay as they
/// are.
pub(super) async fn again(
    shared: &ReplShared,
    asked: Option<RetryableQuestion>,
) -> Result<RetryableQuestion, WireError> {
    let asked = asked.ok_or_else(|| refusal("nothing has been asked here yet"))?;
    if asked.checkpoint == Value::Nil {
        return Ok(asked);
    }
    let manager = &*asked.session.manager;
    let before = own_items(shared, manager).await?;
    let session = ("session", text(&*asked.session.name));
    shared.call("rollback", [session, ("checkpoint", asked.checkpoint.clone())]).await?;
    if own_items(shared, manager).await? != before {
        shared.call("undo", [("manager", text(manager))]).await?;
    }
    Ok(asked)
}

async fn own_items(shared: &ReplShared, manager: &str) -> Result<Vec<String>, WireError> {
    let params = [("managers", list([text(manager)])), ("brief", Value::Bool(true))];
    let listed = items(shared.call("list-items", params).await?);
    Ok(listed.iter().filter_map(|item| string_at(item, "id").map(str::to_owned)).collect())
}
