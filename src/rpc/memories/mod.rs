//! Methods about what is remembered beyond a session.

use serde::Deserialize;

use super::Step;
use super::call::Call;
use super::embedding::{Embedded, embedded};
use super::error::param_error;
use super::params::{Name, RequestKey, decode, not_negative, yes};
use super::present::{entry, figure, keyword};
use crate::engine::{Engine, EngineError, Grounded, Query, memories_for};
use crate::ids::{MemoryId, MessageId, SessionId};
use crate::store::memory::{MemoryFilter, MemoryRow, MemoryScope};
use crate::value::Value;
use crate::wire::message::WireError;

/// How many memories a query gives unless asked for more.
const DEFAULT_FOUND: usize = 5;
/// How many memories a list gives unless asked for more.
const DEFAULT_LISTED: u64 = 100;
/// The longest memory, in bytes.
const MAX_MEMORY_BYTES: usize = 64 << 10;

/// Whom a memory is for.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Scope {
    Session,
    Project,
    Everywhere,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Remember {
    content: String,
    scope: Option<Scope>,
    session: Option<Name>,
    project: Option<String>,
    request_key: Option<RequestKey>,
}

pub(super) fn remember(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Remember = decode(params)?;
    match given.content.len() {
        0 => return Err(param_error("content", "must not be empty")),
        1..=MAX_MEMORY_BYTES => {}
        long => {
            let message = format!("must have at most {MAX_MEMORY_BYTES} bytes, got {long}");
            return Err(param_error("content", &message));
        }
    }
    let scope = given.scope.unwrap_or(match (&given.session, &given.project) {
        (Some(_), _) => Scope::Session,
        (None, Some(_)) => Scope::Project,
        (None, None) => Scope::Everywhere,
    });
    if scope == Scope::Project && given.project.is_none() && given.session.is_none() {
        return Err(param_error("project", "is required for memories of a project"));
    }
    embedded(&call, given.content.clone(), move |Embedded { vector, outcome }| {
        Step::state(move |engine| {
            let Remember { content, session, project, request_key, .. } = given;
            let id = engine.once("remember", request_key.as_deref(), |engine| {
                let scope = memory_scope(engine, scope, project, session.as_deref())?;
                let vector = vector.as_ref().map(|(model, vector)| (&**model, &**vector));
                engine.remember(scope, &content, vector)
            })?;
            let mut map = memory(&engine.memory(id)?, None);
            map.extend(outcome.map(|outcome| entry("embedding", outcome)));
            Ok(Value::Map(map))
        })
    })
}

/// Returns whether `remember` with these parameters is for one session.
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
    match scope {
        Scope::Everywhere => Ok(MemoryScope::Everywhere),
        Scope::Session => Ok(MemoryScope::Session(engine.find_session(session)?.id)),
        Scope::Project => project_scope(engine, project, session),
    }
}

fn project_scope(
    engine: &mut Engine,
    project: Option<String>,
    session: Option<&str>,
) -> Result<MemoryScope, EngineError> {
    let project = match project {
        Some(project) => Some(project),
        None => engine.find_session(session)?.project,
    };
    // A session without a project is its own.
    Ok(match project {
        Some(project) => MemoryScope::Project(project),
        None => MemoryScope::Session(engine.find_session(session)?.id),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Ground {
    query: String,
    session: Option<Name>,
    project: Option<String>,
    limit: Option<i64>,
}

pub(super) fn ground_query(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Ground = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_FOUND);
    embedded(&call, given.query.clone(), move |Embedded { vector, outcome }| {
        Step::state(move |engine| {
            let filter = filter(engine, given.session.as_deref(), given.project)?;
            let query = Query { text: given.query, vector, filter, limit, in_view: None };
            let mut map = grounded(&engine.ground(&query)?);
            map.extend(outcome.map(|outcome| entry("embedding", outcome)));
            Ok(Value::Map(map))
        })
    })
}

/// The memories that a session may be grounded with, those of a project, or all.
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

/// What was found, as a client is told it.
fn grounded(found: &Grounded) -> Vec<(Box<str>, Value)> {
    let relevances = &found.grounding.relevances;
    let rows = found.memories.iter().zip(relevances);
    let memories = rows.map(|(row, at)| Value::Map(memory(row, Some(*at)))).collect();
    vec![
        entry("memories", Value::List(memories)),
        entry("summary", &*found.grounding.text),
        entry(
            "relevance-scores",
            Value::List(relevances.iter().copied().map(Value::from).collect()),
        ),
        entry("relevance", found.grounding.relevance()),
    ]
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Forget {
    id: MemoryId,
    #[serde(default = "yes")]
    forgotten: bool,
    request_key: Option<RequestKey>,
}

pub(super) fn forget(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Forget = decode(params)?;
    let forgotten = given.forgotten;
    Step::state(move |engine| {
        let id = engine.once("forget", given.request_key.as_deref(), |engine| {
            Ok(engine.forget(given.id.0, forgotten)?.id)
        })?;
        Ok(Value::Map(memory(&engine.memory(id)?, None)))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListMemories {
    session: Option<Name>,
    project: Option<String>,
    forgotten: Option<bool>,
    limit: Option<i64>,
}

pub(super) fn list_memories(_: Call, params: Value) -> Result<Step, WireError> {
    let given: ListMemories = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(DEFAULT_LISTED);
    Step::state(move |engine| {
        let mut filter = filter(engine, given.session.as_deref(), given.project)?;
        filter.except = None;
        filter.with_forgotten = given.forgotten.unwrap_or(false);
        let rows = engine.list_memories(&filter, limit)?;
        Ok(Value::List(rows.iter().map(|row| Value::Map(memory(row, None))).collect()))
    })
}

fn memory(row: &MemoryRow, relevance: Option<f64>) -> Vec<(Box<str>, Value)> {
    let mut map = vec![
        entry("id", MemoryId(row.id)),
        entry("content", &*row.made.content),
        entry("kind", keyword(&row.made.kind)),
    ];
    match &row.made.scope {
        MemoryScope::Everywhere => map.push(entry("scope", keyword("everywhere"))),
        MemoryScope::Project(path) => {
            map.push(entry("scope", keyword("project")));
            map.push(entry("project", &**path));
        }
        MemoryScope::Session(id) => {
            map.push(entry("scope", keyword("session")));
            map.push(entry("session", SessionId(*id)));
        }
    }
    if let Some(origin) = row.made.origin {
        map.push(entry("from", SessionId(origin.session)));
        map.push(entry("first-message", MessageId(origin.first)));
        map.push(entry("last-message", MessageId(origin.last)));
    }
    map.extend([
        entry("created", Value::Int(row.made.created)),
        entry("accessed", Value::Int(row.accessed)),
        entry("accesses", figure(row.accesses)),
    ]);
    map.extend(row.forgotten.map(|at| entry("forgotten", Value::Int(at))));
    map.extend(relevance.map(|relevance| entry("relevance", relevance)));
    map
}

/// The names of the scopes.
pub(super) fn scope_names() -> Vec<&'static str> {
    vec!["session", "project", "everywhere"]
}
