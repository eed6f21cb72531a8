//! Methods that undo and redo changes to a session's view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, EngineError, SessionStep};
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
pub(super) struct SessionUndone {
    /// Name of the session.
    session: String,
    /// Method whose change was undone, by its earlier name if it was renamed.
    undone: String,
    /// Number of turns that came back.
    turns_restored: u64,
    /// Number of turns that left the conversation.
    turns_lost: u64,
    /// Number of messages in view now.
    messages: usize,
}

pub(super) fn undo_session(_: Call, given: StepCall) -> Result<Step, WireError> {
    stepping(given.dry_run, move |engine| {
        let session = given.session.as_deref();
        let (row, (step, turns)) =
            engine.between_turns(session, |engine, row| engine.undo_session(row.id))?;
        let messages = in_view(engine, row.id)?;
        let (turns_restored, turns_lost) = (turns.turns_restored, turns.turns_lost);
        Ok(SessionUndone {
            session: row.name,
            undone: step.method,
            turns_restored,
            turns_lost,
            messages,
        })
    })
}

/// A redone change to a session's view.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionRedone {
    /// Name of the session.
    session: String,
    /// Method whose change was redone, by its earlier name if it was renamed.
    redone: String,
    /// Number of turns that came back.
    turns_restored: u64,
    /// Number of turns that left the conversation.
    turns_lost: u64,
    /// Number of messages in view now.
    messages: usize,
}

pub(super) fn redo_session(_: Call, given: StepCall) -> Result<Step, WireError> {
    stepping(given.dry_run, move |engine| {
        let session = given.session.as_deref();
        let (row, (step, turns)) =
            engine.between_turns(session, |engine, row| engine.redo_session(row.id))?;
        let messages = in_view(engine, row.id)?;
        let (turns_restored, turns_lost) = (turns.turns_restored, turns.turns_lost);
        Ok(SessionRedone {
            session: row.name,
            redone: step.method,
            turns_restored,
            turns_lost,
            messages,
        })
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct NextCall {
    session: Option<InSession>,
}

/// The changes that would be undone or redone next.
#[derive(Serialize, JsonSchema)]
pub(super) struct NextSessionChanges {
    /// Name of the session.
    session: String,
    /// The change that `undo-session` would undo; `nil` if there is none.
    next_undo: Option<NextSessionChange>,
    /// The change that `redo-session` would redo; `nil` if there is none.
    next_redo: Option<NextSessionChange>,
}

/// A change to a session's view that would be undone or redone next.
#[derive(Serialize, JsonSchema)]
struct NextSessionChange {
    /// Method that made the change, by its earlier name if it was renamed.
    method: String,
    /// Number of the revision that the change made; for a redo, of the revision to return to.
    revision: u64,
}

pub(super) fn next_session_changes(_: Call, given: NextCall) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        Ok(NextSessionChanges {
            session: row.name,
            next_undo: engine.next_session_step(row.id, Way::Undo)?.map(NextSessionChange::from),
            next_redo: engine.next_session_step(row.id, Way::Redo)?.map(NextSessionChange::from),
        })
    })
}

fn in_view(engine: &mut Engine, id: u64) -> Result<usize, EngineError> {
    Ok(engine.session(id)?.in_view().count())
}

impl From<SessionStep> for NextSessionChange {
    fn from(SessionStep { method, revision }: SessionStep) -> Self {
        Self { method, revision }
    }
}
