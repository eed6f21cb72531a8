//! Methods that take checkpoints, and that go back to them or on from them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionShown;
use crate::ids::CheckpointId;
use crate::rpc::Step;
use crate::rpc::call::MethodCall;
use crate::rpc::params::{InSession, ManagerName, Name, new_name};
use crate::store::session::NewSession;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct TakeCheckpoint {
    session: Option<InSession>,
    /// Purpose of the checkpoint; defaults to `Checkpoint`.
    message: Option<String>,
}

/// A checkpoint that was taken.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TakenCheckpoint")]
pub(super) struct CheckpointTaken {
    /// Id of the checkpoint, `chk-N`.
    checkpoint: CheckpointId,
    /// Name of the session.
    session: String,
    /// Number of turns before the checkpoint.
    turn: u64,
}

pub(super) fn checkpoint(_: MethodCall, given: TakeCheckpoint) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let message = given.message.as_deref().unwrap_or("Checkpoint");
        let (row, taken) =
            engine.in_session(session, |engine, row| engine.checkpoint(row.id, message))?;
        let Some(taken) = taken else { return Ok(None) };
        let turn = engine.find_checkpoint(row.id, Some(taken))?.made.turn;
        Ok(Some(CheckpointTaken { checkpoint: CheckpointId(taken), session: row.name, turn }))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Rollback {
    session: Option<InSession>,
    /// Id of the checkpoint, `chk-N`; defaults to the last one.
    checkpoint: Option<CheckpointId>,
}

/// A rollback.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RolledBack")]
pub(super) struct SessionRollback {
    /// Name of the session.
    session: String,
    /// Id of the checkpoint that was restored.
    commit_restored: CheckpointId,
    /// Number of turns that left the conversation.
    turns_lost: u64,
    /// Number of messages that left the conversation.
    messages_lost: u64,
}

pub(super) fn rollback(_: MethodCall, given: Rollback) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let (row, done) = engine.between_turns(session, |engine, row| {
            engine.rollback(row.id, given.checkpoint.map(|id| id.0))
        })?;
        Ok(SessionRollback {
            session: row.name,
            commit_restored: CheckpointId(done.checkpoint),
            turns_lost: done.turns_lost,
            messages_lost: done.messages_lost,
        })
    })
}

/// Creates a session that continues the session `of`.
pub(super) fn fork(
    of: Name,
    checkpoint: Option<CheckpointId>,
    name: Option<Name>,
    manager: Option<ManagerName>,
) -> Result<Step, WireError> {
    let name = name.map(new_name).transpose()?;
    Step::state(move |engine| {
        let row = engine.find_session(Some(&of))?;
        let name = match name {
            Some(name) => name,
            None => engine.free_session_name()?,
        };
        let new = NewSession {
            name,
            manager: manager.map(|ManagerName(name)| name).unwrap_or_default(),
            project: row.project,
            told: row.told,
            settings: row.settings,
            ..NewSession::default()
        };
        let opened = engine.fork_session(row.id, checkpoint.map(|id| id.0), new)?;
        Ok(SessionShown::new(engine.row(opened.id)?, true))
    })
}
