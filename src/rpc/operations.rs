//! The method that lists the log of operations of a context or of a session's view.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::error::param_error;
use super::params::{ManagerName, Name, not_negative};
use crate::agent::items::without_own;
use crate::context::item::{Item, Kind, Metadata};
use crate::engine::{Engine, EngineError, Moved, Operation};
use crate::ids::{CheckpointId, ItemId};
use crate::session::state::ViewOperation;
use crate::store::Way;
use crate::store::session::{CheckpointRow, StateSummary};
use crate::tokens::Measure;
use crate::value::Keyword;
use crate::wire::message::WireError;

/// Default number of operations in a list.
pub(super) const DEFAULT_OPERATIONS: u64 = 50;
/// Maximum number of operations in a list, across all its pages.
pub(super) const MAX_OPERATIONS: i64 = 10_000;

/// Method of the operations that only give the present state a name.
const CHECKPOINT: &str = "checkpoint";

/// A log of operations.
pub(super) enum Log {
    /// That of the manager with this name.
    Manager(String),
    /// That of the view of the session with this name or id.
    Session(String),
}

impl Log {
    pub(super) fn of(
        manager: Option<ManagerName>,
        session: Option<Name>,
    ) -> Result<Self, WireError> {
        match (manager, session) {
            (Some(_), Some(_)) => Err(param_error("session", "cannot be combined with manager")),
            (None, Some(Name(session))) => Ok(Self::Session(session)),
            (manager, None) => Ok(Self::Manager(manager.unwrap_or_default().0)),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListOperations {
    manager: Option<ManagerName>,
    /// Session whose view the operations changed, in place of a manager.
    session: Option<Name>,
    #[schemars(description = format!("Maximum number of operations; defaults to {DEFAULT_OPERATIONS}."))]
    limit: Option<i64>,
    /// List only the operations that `undo` and `redo` would take next; defaults to `nil`.
    next: Option<bool>,
    /// List only the checkpoints of a session, and all of them unless there is a `:limit`; defaults
    /// to `nil`.
    checkpoints: Option<bool>,
}

/// An operation on a context or on a session's view.
#[derive(Serialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Operation")]
pub(super) struct OperationLine {
    /// Number of the operation, for `restore`. The number of an operation on a context is valid
    /// until the context changes.
    operation: u64,
    /// Method that made the operation.
    method: Keyword<String>,
    /// `:undo` or `:redo` if that method would take this operation next; absent otherwise. In a
    /// context, newer operations than that of `:undo` are undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Keyword<&'static str>>,
    /// Number of items that the operation adds, removes or alters. In the list of a session's
    /// operations, number of messages that it took out of view or brought back; absent for
    /// checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// Tokens in view before the operation; only in the list of a session's operations, and absent
    /// for checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_before: Option<u64>,
    /// Tokens in view after the operation; only in the list of a session's operations, and absent
    /// for checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_after: Option<u64>,
    /// The first of these items, at most three; absent in sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ChangedItem>>,
    /// Name of the set that the operation saved or dropped; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    /// Number of messages in the log at the operation; absent in contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    /// Time of the operation, in Unix seconds; absent in contexts.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<i64>,
    /// Id of the checkpoint, `chk-N`; absent for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<CheckpointId>,
    /// Purpose of the checkpoint; absent for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Number of turns before the checkpoint; absent for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    /// True if the server took the checkpoint by itself; absent for other operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    automatic: Option<bool>,
}

/// An item in a change.
#[derive(Serialize, JsonSchema)]
struct ChangedItem {
    /// Id of the item.
    id: ItemId,
    /// Type of the content.
    r#type: Kind,
    /// Metadata of the item; `nil` if it has none.
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    metadata: Metadata,
}

impl From<Operation> for OperationLine {
    fn from(Operation { number, method, count, items, set, next }: Operation) -> Self {
        let told = |item: &Arc<Item>| ChangedItem {
            id: item.id,
            r#type: item.kind,
            metadata: without_own(&item.metadata).into_owned(),
        };
        Self {
            operation: number,
            method: Keyword(method),
            next: next.map(|way| Keyword(way.name())),
            count: Some(count),
            items: Some(items.iter().map(told).collect()),
            set,
            ..Self::default()
        }
    }
}

impl From<StateSummary> for OperationLine {
    fn from(StateSummary { number, kind, base, created }: StateSummary) -> Self {
        Self {
            operation: number,
            method: Keyword(kind),
            position: Some(base),
            created: Some(created),
            ..Self::default()
        }
    }
}

impl OperationLine {
    /// Adds what a checkpoint names. Its position may be before the operation's.
    fn at(self, CheckpointRow { id, made }: CheckpointRow) -> Self {
        Self {
            position: Some(made.position),
            checkpoint: Some(CheckpointId(id)),
            message: Some(made.message),
            turn: Some(made.turn),
            automatic: Some(made.automatic),
            ..self
        }
    }
}

pub(super) fn list_operations(call: MethodCall, given: ListOperations) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?;
    let (next, checkpoints) = (given.next == Some(true), given.checkpoints == Some(true));
    let log = Log::of(given.manager, given.session)?;
    if checkpoints && matches!(log, Log::Manager(_)) {
        return Err(param_error("checkpoints", "needs the parameter session"));
    }
    Step::state(move |engine| {
        let most = limit.unwrap_or(if checkpoints { u64::MAX } else { DEFAULT_OPERATIONS });
        let mut all: Vec<OperationLine> = match log {
            Log::Manager(manager) => {
                let all = engine.operations(&manager, if next { 1 } else { most })?;
                all.into_iter().map(OperationLine::from).collect()
            }
            Log::Session(session) => {
                let row = engine.find_session(Some(&session))?;
                let id = row.id;
                let lines = match next {
                    true => next_of_session(engine, id)?,
                    false => of_session(engine, id, most, checkpoints)?,
                };
                let measure = call.tools.providers.context_of(engine, row, None)?.costs.measure;
                sized(engine, id, lines, &measure)?
            }
        };
        if next {
            all.retain(|operation| operation.next.is_some());
        }
        all.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Ok(all)
    })
}

/// Lists the operations on the view of session `id`, newest first.
fn of_session(
    engine: &mut Engine,
    id: u64,
    most: u64,
    only_checkpoints: bool,
) -> Result<Vec<OperationLine>, EngineError> {
    let rows = engine.read().checkpoints(id)?;
    let mut all: Vec<OperationLine> = match only_checkpoints {
        true => rows.into_iter().rev().map(of_checkpoint).collect(),
        false => {
            let mut named: HashMap<u64, CheckpointRow> =
                rows.into_iter().map(|row| (row.made.state, row)).collect();
            let line = |state: StateSummary| match named.remove(&state.number) {
                Some(row) => OperationLine::from(state).at(row),
                None => OperationLine::from(state),
            };
            engine.read().states(id, most)?.into_iter().map(line).collect()
        }
    };
    for way in [Way::Undo, Way::Redo] {
        let revision = engine.next_of_session(id, way)?.map(|next| next.revision);
        let marked = all.iter_mut().find(|line| Some(line.operation) == revision);
        marked.into_iter().for_each(|line| line.next = Some(Keyword(way.name())));
    }
    Ok(all)
}

/// Adds to each operation on the view of session `id` what it moved, and the sizes of the view.
fn sized(
    engine: &mut Engine,
    id: u64,
    lines: Vec<OperationLine>,
    measure: &Measure,
) -> Result<Vec<OperationLine>, EngineError> {
    let with_sizes = |line: OperationLine| {
        // A checkpoint moves nothing, and there may be many.
        if line.method.0 == CHECKPOINT {
            return Ok(line);
        }
        let Moved { messages, before, after } =
            engine.moved_in_view(id, line.operation, measure)?;
        let (count, tokens_before, tokens_after) = (Some(messages), Some(before), Some(after));
        Ok(OperationLine { count, tokens_before, tokens_after, ..line })
    };
    lines.into_iter().map(with_sizes).collect()
}

fn of_checkpoint(row: CheckpointRow) -> OperationLine {
    OperationLine {
        operation: row.made.state,
        method: Keyword(CHECKPOINT.to_owned()),
        created: Some(row.made.created),
        ..OperationLine::default()
    }
    .at(row)
}

/// Lists the operations on the view of session `id` that redo and undo would take next.
fn next_of_session(engine: &mut Engine, id: u64) -> Result<Vec<OperationLine>, EngineError> {
    let mut all = Vec::new();
    for way in [Way::Redo, Way::Undo] {
        all.extend(next_line(engine, id, way)?);
    }
    Ok(all)
}

pub(super) fn next_line(
    engine: &mut Engine,
    id: u64,
    way: Way,
) -> Result<Option<OperationLine>, EngineError> {
    let Some(ViewOperation { revision, .. }) = engine.next_of_session(id, way)? else {
        return Ok(None);
    };
    let state = engine.read().state(id, revision)?;
    Ok(state.map(|row| {
        let summary = StateSummary {
            number: row.number,
            kind: row.kind,
            base: row.base,
            created: row.created,
        };
        OperationLine { next: Some(Keyword(way.name())), ..summary.into() }
    }))
}
