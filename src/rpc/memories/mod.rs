//! The memory family: texts that outlast a session.

mod table;

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

pub(super) use self::table::METHODS;
use super::Step;
use super::call::MethodCall;
use super::embedding::embedded;
use super::error::{engine_error, param_error};
use super::params::{InSession, Name, Short, Switch, check_bytes, not_negative, yes};
use crate::agent::found::{GroundedShown, MemoryShown, Scope};
use crate::engine::{Engine, EngineError, Query, memories_for};
use crate::files;
use crate::ids::MemoryId;
use crate::store::memory::{MemoryFilter, MemoryScope};
use crate::value::Value;
use crate::wire::message::WireError;

/// Default number of memories in the result of a query.
const DEFAULT_FOUND: usize = 5;
/// Default number of memories in a list.
const DEFAULT_LISTED: u64 = 100;
/// Maximum number of memories in a list, across all its pages.
pub(super) const MAX_LISTED: i64 = 5_000;
/// Maximum size of a memory, in bytes.
pub(super) const MAX_MEMORY_BYTES: usize = 64 << 10;

/// Description of the filter by session.
const OF_SESSION: &str = "Include only memories for this session: its own, those of the session \
                          that it was forked from, those of its project, and those with the scope \
                          `:everywhere`.";
/// Description of the filter by project.
const OF_PROJECT: &str =
    "Include only memories for this project, and those with the scope `:everywhere`.";

#[derive(Deserialize, JsonSchema)]
pub(super) struct Remember {
    /// The text; at most 64 KiB.
    content: String,
    /// Sessions that may find the memory. Defaults to `:session` or `:project`, the first of which
    /// the call has, else to `:everywhere`.
    scope: Option<Scope>,
    /// Name or id of the session.
    session: Option<InSession>,
    /// Folder of the project; defaults to the session's.
    project: Option<Short>,
}

pub(super) fn remember(call: MethodCall, given: Remember) -> Result<Step, WireError> {
    check_bytes(&given.content, 1..=MAX_MEMORY_BYTES)
        .map_err(|message| param_error("content", &message))?;
    let scope = given.scope.unwrap_or(match (&given.session, &given.project) {
        (Some(_), _) => Scope::Session,
        (None, Some(_)) => Scope::Project,
        (None, None) => Scope::Everywhere,
    });
    if scope == Scope::Project && given.project.is_none() && given.session.is_none() {
        return Err(param_error(
            "project",
            "is required with the scope project, unless session is given",
        ));
    }
    embedded(&call, given.content.clone(), move |embedded| {
        Step::state(move |engine| {
            let Remember { content, session, project, .. } = given;
            let project = project.map(|project| project.0);
            let scope = memory_scope(engine, scope, project, session.as_deref())?;
            let vector = embedded.vector.as_ref().map(|(model, vector)| (&**model, &**vector));
            let id = engine.remember(scope, &content, vector)?;
            Ok(MemoryShown::from(engine.memory(id)?).with_embedding(embedded.outcome()))
        })
    })
}

/// Returns whether the parameters of `remember` contain the scope `:session`.
pub(super) fn is_for_session(params: &Value) -> bool {
    let scope = params.get("scope").cloned().map(Value::decode);
    matches!(scope, Some(Ok(Scope::Session)))
}

fn memory_scope(
    engine: &mut Engine,
    scope: Scope,
    project: Option<String>,
    session: Option<&str>,
) -> Result<MemoryScope, EngineError> {
    if scope == Scope::Everywhere {
        return Ok(MemoryScope::Everywhere);
    }
    if let Some(project) = project.filter(|_| scope == Scope::Project) {
        return Ok(MemoryScope::Project(project));
    }
    let row = engine.find_session(session)?;
    // A session without a project shares its memories with no other session.
    let project = row.project.filter(|_| scope == Scope::Project);
    Ok(project.map_or(MemoryScope::Session(row.id), MemoryScope::Project))
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Ground {
    /// Text to compare with the memories.
    query: String,
    #[schemars(description = OF_SESSION)]
    session: Option<Name>,
    #[schemars(description = OF_PROJECT)]
    project: Option<Short>,
    #[schemars(description = format!("Maximum number of memories; defaults to {DEFAULT_FOUND}."))]
    limit: Option<i64>,
    /// Make the memories that are found stronger; defaults to `t`.
    #[serde(default = "yes")]
    strengthen: bool,
}

/// Brings the memories of the project's repository up to date with its files.
fn read_repository(
    call: &MethodCall,
    session: Option<&str>,
    project: Option<&str>,
) -> Result<(), WireError> {
    let engine = &call.tools.engine;
    let project = match (session, project) {
        (Some(session), _) => {
            let session = session.to_owned();
            let row = engine.ask_blocking(move |engine| engine.find_session(Some(&session)));
            row.map_err(engine_error)?.project
        }
        (None, project) => project.map(str::to_owned),
    };
    let Some(project) = project.filter(|project| project.starts_with('/')) else { return Ok(()) };
    let found = files::memories(Path::new(&project));
    let kept = engine.ask_blocking(move |engine| engine.keep_repository(&project, &found));
    kept.map_err(engine_error)
}

/// Writes a memory into a file of its project. Returns the path of the file.
fn written(call: &MethodCall, id: u64, project: Option<String>) -> Result<String, WireError> {
    call.check_access("write files of a project")?;
    let row = call.tools.engine.ask_blocking(move |engine| engine.memory(id));
    let made = row.map_err(engine_error)?.made;
    let of_memory = match made.scope {
        MemoryScope::Project(path) => Some(path),
        _ => None,
    };
    let project = project.or(of_memory).filter(|project| project.starts_with('/'));
    let why = "must be the absolute name of a folder, because the memory is for no project here";
    let project = project.ok_or_else(|| param_error("project", why))?;
    let written = files::write_memory(Path::new(&project), &made.content, &made.kind);
    let path =
        written.map_err(|error| param_error("project", &format!("cannot be written: {error}")))?;
    Ok(path.to_string_lossy().into_owned())
}

pub(super) fn ground_query(call: MethodCall, given: Ground) -> Result<Step, WireError> {
    read_repository(&call, given.session.as_deref(), given.project.as_deref())?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_FOUND);
    embedded(&call, given.query.clone(), move |embedded| {
        Step::state(move |engine| {
            let filter = filter(engine, given.session.as_deref(), given.project.map(|it| it.0))?;
            let (outcome, vector) = (embedded.outcome(), embedded.vector);
            let Ground { query: text, strengthen, .. } = given;
            let query = Query { text, vector, filter, limit, in_view: None, strengthen };
            Ok(GroundedShown::from(engine.ground(&query)?).with_embedding(outcome))
        })
    })
}

/// Returns the filter that `session` or, without it, `project` describes; all memories pass if both
/// are absent.
fn filter(
    engine: &mut Engine,
    session: Option<&str>,
    project: Option<String>,
) -> Result<MemoryFilter, EngineError> {
    if session.is_some() {
        return Ok(memories_for(&engine.find_session(session)?));
    }
    let scopes =
        project.map(|project| vec![MemoryScope::Everywhere, MemoryScope::Project(project)]);
    Ok(MemoryFilter { scopes, ..MemoryFilter::default() })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UpdateMemory {
    /// Id of the memory, `mem-N`.
    id: MemoryId,
    /// Forget the memory, so that it is no longer found; with `nil`, restore it.
    #[serde(default)]
    forgotten: Switch,
    /// Write the memory into a file of its project.
    write: Option<bool>,
    /// Folder of the project to write to; defaults to the memory's.
    project: Option<Short>,
}

pub(super) fn update_memory(call: MethodCall, given: UpdateMemory) -> Result<Step, WireError> {
    let id = given.id.0;
    let write = given.write.unwrap_or(false);
    let path = write.then(|| written(&call, id, given.project.map(|it| it.0))).transpose()?;
    Step::state(move |engine| {
        if let Some(forgotten) = given.forgotten.0 {
            engine.forget(id, forgotten)?;
        }
        Ok(MemoryShown::from(engine.memory(id)?).with_path(path))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListMemories {
    #[schemars(description = OF_SESSION)]
    session: Option<Name>,
    #[schemars(description = OF_PROJECT)]
    project: Option<Short>,
    /// Include forgotten memories.
    forgotten: Option<bool>,
    #[schemars(description = format!("Maximum number of memories; defaults to {DEFAULT_LISTED}."))]
    limit: Option<i64>,
}

pub(super) fn list_memories(call: MethodCall, given: ListMemories) -> Result<Step, WireError> {
    read_repository(&call, given.session.as_deref(), given.project.as_deref())?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LISTED);
    Step::state(move |engine| {
        let mut filter = filter(engine, given.session.as_deref(), given.project.map(|it| it.0))?;
        filter.except = None;
        filter.with_forgotten = given.forgotten.unwrap_or(false);
        let rows = engine.list_memories(&filter, limit)?;
        Ok(rows.into_iter().map(MemoryShown::from).collect::<Vec<_>>())
    })
}
