//! Methods about going back: checkpoints, forks and revisions.

use serde::Deserialize;

use super::Step;
use super::call::Call;
use super::params::{ManagerName, Name, RequestKey, decode, new_name, not_negative};
use super::present::{entry, figure, keyword};
use super::sessions::session;
use crate::ids::CheckpointId;
use crate::store::session::{CheckpointRow, NewSession, StateSummary};
use crate::value::Value;
use crate::wire::message::WireError;

/// How many revisions a list gives unless asked for more.
const DEFAULT_REVISIONS: u64 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct TakeCheckpoint {
    session: Option<Name>,
    message: Option<String>,
    request_key: Option<RequestKey>,
}

pub(super) fn checkpoint(_: Call, params: Value) -> Result<Step, WireError> {
    let given: TakeCheckpoint = decode(params)?;
    Step::state(move |engine| {
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let message = given.message.as_deref().unwrap_or("Checkpoint");
        let (row, taken) = engine.once_in("checkpoint", key, session, |engine, row| {
            engine.checkpoint(row.id, message)
        })?;
        let Some(taken) = taken else { return Ok(Value::Nil) };
        let turn = engine.find_checkpoint(row.id, Some(taken))?.made.turn;
        Ok(Value::Map(vec![
            entry("checkpoint", name(taken)),
            entry("session", row.name),
            entry("turn", figure(turn)),
        ]))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct OfSession {
    session: Option<Name>,
}

pub(super) fn list_checkpoints(_: Call, params: Value) -> Result<Step, WireError> {
    let given: OfSession = decode(params)?;
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let rows = engine.list_checkpoints(row.id)?;
        Ok(Value::List(rows.iter().map(line).collect()))
    })
}

fn line(row: &CheckpointRow) -> Value {
    Value::Map(vec![
        entry("checkpoint", name(row.id)),
        entry("message", &*row.made.message),
        entry("turn", figure(row.made.turn)),
        entry("position", figure(row.made.position)),
        entry("automatic", row.made.automatic),
        entry("created", Value::Int(row.made.created)),
    ])
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Rollback {
    session: Option<Name>,
    checkpoint: Option<CheckpointId>,
    request_key: Option<RequestKey>,
}

pub(super) fn rollback(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Rollback = decode(params)?;
    Step::state(move |engine| {
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let (row, done) = engine.once_in("rollback", key, session, |engine, row| {
            engine.rollback(row.id, given.checkpoint.map(|name| name.0))
        })?;
        Ok(Value::Map(vec![
            entry("session", row.name),
            entry("commit-restored", name(done.checkpoint)),
            entry("turns-lost", figure(done.turns_lost)),
            entry("messages-lost", figure(done.messages_lost)),
        ]))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct UndoRollback {
    session: Option<Name>,
    request_key: Option<RequestKey>,
}

pub(super) fn undo_rollback(_: Call, params: Value) -> Result<Step, WireError> {
    let given: UndoRollback = decode(params)?;
    Step::state(move |engine| {
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let (row, undone) = engine
            .once_in("undo-rollback", key, session, |engine, row| engine.undo_rollback(row.id))?;
        Ok(Value::Map(vec![
            entry("session", row.name),
            entry("turns-restored", figure(undone.turns_restored)),
            entry("turns-lost", figure(undone.turns_lost)),
        ]))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Fork {
    session: Option<Name>,
    checkpoint: Option<CheckpointId>,
    name: Option<Name>,
    manager: Option<ManagerName>,
    request_key: Option<RequestKey>,
}

pub(super) fn fork_session(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Fork = decode(params)?;
    let name = given.name.map(new_name).transpose()?;
    Step::state(move |engine| {
        let opened = engine.once("fork-session", given.request_key.as_deref(), |engine| {
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
            engine.fork_session(row.id, given.checkpoint.map(|name| name.0), new)
        })?;
        let row = engine.row(opened.id)?;
        Ok(Value::Map(session(&row, true)))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListRevisions {
    session: Option<Name>,
    limit: Option<i64>,
}

pub(super) fn list_revisions(_: Call, params: Value) -> Result<Step, WireError> {
    let given: ListRevisions = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_REVISIONS);
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let revisions = engine.list_revisions(row.id, limit)?;
        Ok(Value::List(revisions.iter().map(revision).collect()))
    })
}

fn revision(row: &StateSummary) -> Value {
    Value::Map(vec![
        entry("revision", figure(row.number)),
        entry("method", keyword(&row.kind)),
        entry("position", figure(row.base)),
        entry("created", Value::Int(row.created)),
    ])
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RestoreRevision {
    session: Option<Name>,
    revision: i64,
    request_key: Option<RequestKey>,
}

pub(super) fn restore_revision(_: Call, params: Value) -> Result<Step, WireError> {
    let given: RestoreRevision = decode(params)?;
    let number = not_negative("revision", Some(given.revision))?.unwrap_or(0);
    Step::state(move |engine| {
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let (row, revision) = engine.once_in("restore-revision", key, session, |engine, row| {
            engine.restore_revision(row.id, number)?;
            Ok(engine.session(row.id)?.revision())
        })?;
        Ok(Value::Map(vec![
            entry("session", row.name),
            entry("restored", figure(number)),
            entry("revision", figure(revision)),
        ]))
    })
}

/// A checkpoint's number as its id.
pub(super) fn name(checkpoint: u64) -> Value {
    CheckpointId(checkpoint).into()
}
