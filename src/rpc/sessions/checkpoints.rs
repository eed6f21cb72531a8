//! Methods for going back: checkpoints, forks and revisions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SessionShown;
use crate::ids::CheckpointId;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::context::edit::stepping;
use crate::rpc::params::{InSession, ManagerName, Name, new_name, not_negative};
use crate::store::session::{CheckpointRow, NewSession, StateSummary};
use crate::value::Keyword;
use crate::wire::message::WireError;

/// Default number of revisions in a list.
pub(super) const DEFAULT_REVISIONS: u64 = 50;

#[derive(Deserialize, JsonSchema)]
pub(super) struct TakeCheckpoint {
    session: Option<InSession>,
    /// Purpose of the checkpoint; defaults to `Checkpoint`.
    message: Option<String>,
}

/// A checkpoint that was taken.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TakenCheckpoint")]
pub(super) struct Taken {
    /// Id of the checkpoint, `chk-N`.
    checkpoint: CheckpointId,
    /// Name of the session.
    session: String,
    /// Number of turns before the checkpoint.
    turn: u64,
}

pub(super) fn checkpoint(_: Call, given: TakeCheckpoint) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let message = given.message.as_deref().unwrap_or("Checkpoint");
        let (row, taken) =
            engine.in_session(session, |engine, row| engine.checkpoint(row.id, message))?;
        let Some(taken) = taken else { return Ok(None) };
        let turn = engine.find_checkpoint(row.id, Some(taken))?.made.turn;
        Ok(Some(Taken { checkpoint: CheckpointId(taken), session: row.name, turn }))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct OfSession {
    pub(super) session: Option<InSession>,
}

/// A checkpoint.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Checkpoint")]
pub(super) struct CheckpointLine {
    /// Id of the checkpoint, `chk-N`.
    id: CheckpointId,
    /// Purpose of the checkpoint.
    message: String,
    /// Number of turns before the checkpoint.
    turn: u64,
    /// Number of messages in the log at the checkpoint.
    position: u64,
    /// True if the server took the checkpoint by itself.
    automatic: bool,
    /// Time at which the checkpoint was taken, in Unix seconds.
    created: i64,
}

impl From<CheckpointRow> for CheckpointLine {
    fn from(CheckpointRow { id, made }: CheckpointRow) -> Self {
        Self {
            id: CheckpointId(id),
            message: made.message,
            turn: made.turn,
            position: made.position,
            automatic: made.automatic,
            created: made.created,
        }
    }
}

pub(super) fn list_checkpoints(_: Call, given: OfSession) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let rows = engine.read().checkpoints(row.id)?;
        Ok(rows.into_iter().map(CheckpointLine::from).collect::<Vec<_>>())
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
pub(super) struct RolledBack {
    /// Name of the session.
    session: String,
    /// Id of the checkpoint that was restored.
    commit_restored: CheckpointId,
    /// Number of turns that left the conversation.
    turns_lost: u64,
    /// Number of messages that left the conversation.
    messages_lost: u64,
}

pub(super) fn rollback(_: Call, given: Rollback) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let (row, done) = engine.between_turns(session, |engine, row| {
            engine.rollback(row.id, given.checkpoint.map(|id| id.0))
        })?;
        Ok(RolledBack {
            session: row.name,
            commit_restored: CheckpointId(done.checkpoint),
            turns_lost: done.turns_lost,
            messages_lost: done.messages_lost,
        })
    })
}

/// An undone rollback.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "UndoneRollback")]
pub(super) struct RollbackUndone {
    /// Name of the session.
    session: String,
    /// Number of turns that came back.
    turns_restored: u64,
    /// Number of turns made after the rollback, which have left the conversation.
    turns_lost: u64,
}

pub(super) fn undo_rollback(_: Call, given: OfSession) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let (row, undone) =
            engine.between_turns(session, |engine, row| engine.undo_rollback(row.id))?;
        Ok(RollbackUndone {
            session: row.name,
            turns_restored: undone.turns_restored,
            turns_lost: undone.turns_lost,
        })
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Fork {
    session: Option<InSession>,
    /// Id of the checkpoint, `chk-N`; defaults to the session's current state.
    checkpoint: Option<CheckpointId>,
    /// Name of the new session; defaults to a new `conversation-N`.
    name: Option<Name>,
    /// Manager of the new session's items; defaults to one of its own.
    manager: Option<ManagerName>,
}

pub(super) fn fork_session(_: Call, given: Fork) -> Result<Step, WireError> {
    let name = given.name.map(new_name).transpose()?;
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let name = match name {
            Some(name) => name,
            None => engine.free_session_name()?,
        };
        let new = NewSession {
            name,
            manager: given.manager.map(|ManagerName(name)| name).unwrap_or_default(),
            project: row.project,
            settings: row.settings,
            ..NewSession::default()
        };
        let opened = engine.fork_session(row.id, given.checkpoint.map(|id| id.0), new)?;
        Ok(SessionShown::new(engine.row(opened.id)?, true))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListRevisions {
    session: Option<InSession>,
    #[schemars(description = format!("Maximum number of revisions; defaults to {DEFAULT_REVISIONS}."))]
    limit: Option<i64>,
}

/// A change to a session's view.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ViewRevision")]
pub(super) struct RevisionLine {
    /// Number of the revision.
    revision: u64,
    /// Method that made the revision.
    method: Keyword<String>,
    /// Number of messages in the log when the revision was made.
    position: u64,
    /// Time at which the revision was made, in Unix seconds.
    created: i64,
}

impl From<StateSummary> for RevisionLine {
    fn from(StateSummary { number, kind, base, created }: StateSummary) -> Self {
        Self { revision: number, method: Keyword(kind), position: base, created }
    }
}

pub(super) fn list_revisions(_: Call, given: ListRevisions) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_REVISIONS);
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let revisions = engine.read().states(row.id, limit)?;
        Ok(revisions.into_iter().map(RevisionLine::from).collect::<Vec<_>>())
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RestoreRevision {
    session: Option<InSession>,
    /// Number of the revision; 0 is the view before the first change.
    revision: i64,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

/// A restored revision.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RestoredRevision")]
pub(super) struct Restored {
    /// Name of the session.
    session: String,
    /// Number of the revision that was restored.
    restored: u64,
    /// Number of the new revision that this call made.
    revision: u64,
}

pub(super) fn restore_revision(_: Call, given: RestoreRevision) -> Result<Step, WireError> {
    let number = not_negative("revision", Some(given.revision))?.unwrap_or(0);
    stepping(given.dry_run, move |engine| {
        let session = given.session.as_deref();
        let (row, revision) = engine.between_turns(session, |engine, row| {
            engine.restore_revision(row.id, number)?;
            Ok(engine.session(row.id)?.revision())
        })?;
        Ok(Restored { session: row.name, restored: number, revision })
    })
}
