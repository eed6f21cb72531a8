//! Methods that undo and redo changes to a session's view.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checkpoints::OfSession;
use crate::engine::{Engine, EngineError, RollbackUndone, SessionStep};
use crate::ids::MessageId;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::context::edit::stepping;
use crate::rpc::params::InSession;
use crate::store::Way;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct StepCall {
    session: Option<InSession>,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

/// An undone change to a session's view.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SessionUndone {
    /// Name of the session.
    session: String,
    /// Method whose change was undone.
    undone: String,
    #[serde(flatten)]
    now: ViewNow,
}

pub(super) fn undo_session(_: Call, given: StepCall) -> Result<Step, WireError> {
    given.take(Engine::undo_session, |session, undone, now| SessionUndone { session, undone, now })
}

/// A redone change to a session's view.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SessionRedone {
    /// Name of the session.
    session: String,
    /// Method whose change was redone.
    redone: String,
    #[serde(flatten)]
    now: ViewNow,
}

pub(super) fn redo_session(_: Call, given: StepCall) -> Result<Step, WireError> {
    given.take(Engine::redo_session, |session, redone, now| SessionRedone { session, redone, now })
}

/// The view of a session after an undo or a redo.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ViewNow {
    /// Number of turns that came back.
    turns_restored: u64,
    /// Number of turns that left the conversation.
    turns_lost: u64,
    /// Number of messages in view now.
    messages: usize,
    /// Ids of the messages that came back into view.
    returned: Vec<MessageId>,
    /// Ids of the messages that left the view.
    left: Vec<MessageId>,
}

impl StepCall {
    /// Takes a step in the session. `shown` gets the session's name and the method whose change was
    /// undone or redone.
    fn take<T: Serialize + 'static>(
        self,
        step: impl FnOnce(&mut Engine, u64) -> Result<(SessionStep, RollbackUndone), EngineError>
        + Send
        + 'static,
        shown: fn(String, String, ViewNow) -> T,
    ) -> Result<Step, WireError> {
        stepping(self.dry_run, move |engine| {
            let session = self.session.as_deref();
            let (row, (before, (step, turns))) = engine.between_turns(session, |engine, row| {
                Ok((in_view(engine, row.id)?, step(engine, row.id)?))
            })?;
            let RollbackUndone { turns_restored, turns_lost } = turns;
            let after = in_view(engine, row.id)?;
            let beyond = |these: &BTreeSet<u64>, those: &BTreeSet<u64>| {
                these.difference(those).map(|number| MessageId(*number)).collect()
            };
            let (returned, left) = (beyond(&after, &before), beyond(&before, &after));
            let now = ViewNow { turns_restored, turns_lost, messages: after.len(), returned, left };
            Ok(shown(row.name, step.method, now))
        })
    }
}

/// Returns the numbers of the messages in view.
fn in_view(engine: &mut Engine, id: u64) -> Result<BTreeSet<u64>, EngineError> {
    Ok(engine.session(id)?.in_view().map(|message| message.number).collect())
}

/// The changes that would be undone or redone next.
#[derive(Serialize, JsonSchema)]
pub(super) struct NextSessionChanges {
    /// Name of the session.
    session: String,
    /// The change that `undo-session` would undo; `nil` if there is none.
    next_undo: Option<SessionStep>,
    /// The change that `redo-session` would redo; `nil` if there is none.
    next_redo: Option<SessionStep>,
}

pub(super) fn next_session_changes(_: Call, given: OfSession) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        Ok(NextSessionChanges {
            session: row.name,
            next_undo: engine.next_session_step(row.id, Way::Undo)?,
            next_redo: engine.next_session_step(row.id, Way::Redo)?,
        })
    })
}
