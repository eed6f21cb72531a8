//! Methods about sessions as wholes: opening, listing, naming, finding, taking out and in.

use serde::Deserialize;

use super::call::Call;
use super::error::param_error;
use super::params::{
    ManagerName, Name, RequestKey, Short, Switch, decode, is_session_id, new_name, not_negative,
    yes,
};
use super::present::{self, entry, figure};
use super::query::Nothing;
use super::{Finish, Step, templates, transcript};
use crate::engine::{Engine, EngineError, SessionSettings};
use crate::ids::{MessageId, SessionId};
use crate::session::state::Revision;
use crate::store::session::{NewSession, SearchHit, SessionRow};
use crate::value::Value;
use crate::wire::message::WireError;

/// How many hits a search gives unless asked for more.
const DEFAULT_HITS: u64 = 20;
/// How many hits a search gives at most.
const MAX_HITS: i64 = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Open {
    name: Option<Name>,
    manager: Option<ManagerName>,
    project: Option<Short>,
    #[serde(default)]
    manage: Switch,
    template: Option<Name>,
    #[serde(default = "yes")]
    current: bool,
    request_key: Option<RequestKey>,
}

pub(super) fn open_session(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Open = decode(params)?;
    let name = given.name.map(|Name(name)| name);
    let settings = call.tools.session_defaults();
    let template = given.template.clone().map(|Name(name)| name);
    let project = given.project.map(|Short(path)| path);
    let stored = project.clone();
    let known_as = name.clone();
    templates::usable(&call, template, known_as, project, move || {
        Step::state(move |engine| {
            let opened = engine.once("open-session", given.request_key.as_deref(), |engine| {
                let name = match name {
                    // An id is no name to be given, but whoever has seen one may open it by that.
                    Some(name) if is_session_id(&name) => engine.find_session(Some(&name))?.name,
                    Some(name) => name,
                    None => engine.free_session_name()?,
                };
                let new = NewSession {
                    name,
                    manager: given.manager.map(|ManagerName(name)| name).unwrap_or_default(),
                    project: stored,
                    settings,
                    ..NewSession::default()
                };
                let opened = match given.current {
                    true => engine.open_session(new),
                    false => engine.open_session_aside(new),
                }?;
                manage(engine, opened.id, given.manage.0, given.template)?;
                Ok(opened)
            })?;
            let row = engine.row(opened.id)?;
            let current = engine.find_session(None).is_ok_and(|current| current.id == row.id);
            let mut map = session(&row, current);
            map.push(entry("created-now", opened.created));
            Ok(Value::Map(map))
        })
    })
}

/// Has a session managed from now on, or not, and by this template.
fn manage(
    engine: &mut Engine,
    id: u64,
    manage: Option<bool>,
    template: Option<Name>,
) -> Result<(), EngineError> {
    if manage.is_none() && template.is_none() {
        return Ok(());
    }
    let mut settings = SessionSettings::parse(&engine.row(id)?.settings)?;
    // Who names a template wants it used.
    settings.manage = manage.unwrap_or(true);
    settings.template = template.map(|Name(name)| name).or(settings.template);
    engine.set_session_settings(id, &settings.print()?)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ListSessions {
    project: Option<String>,
    deleted: Option<bool>,
    limit: Option<i64>,
}

pub(super) fn list_sessions(_: Call, params: Value) -> Result<Step, WireError> {
    let given: ListSessions = decode(params)?;
    let limit = not_negative("limit", given.limit)?.unwrap_or(usize::MAX);
    Step::state(move |engine| {
        let current = engine.find_session(None).ok().map(|row| row.id);
        let rows = engine.list_sessions(given.deleted.unwrap_or(false))?;
        let wanted = |row: &&SessionRow| given.project.is_none() || row.project == given.project;
        let rows = rows.iter().filter(wanted).take(limit);
        let line = |row: &SessionRow| Value::Map(session(row, current == Some(row.id)));
        Ok(Value::List(rows.map(line).collect()))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct OneSession {
    session: Name,
}

pub(super) fn switch_session(_: Call, params: Value) -> Result<Step, WireError> {
    let given: OneSession = decode(params)?;
    Step::state(move |engine| {
        let row = engine.switch_session(&given.session.0)?;
        Ok(Value::Map(session(&row, true)))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Rename {
    session: Name,
    name: Name,
    request_key: Option<RequestKey>,
}

pub(super) fn rename_session(_: Call, params: Value) -> Result<Step, WireError> {
    let Rename { session, name, request_key } = decode(params)?;
    let name = new_name(name)?;
    changed("rename-session", request_key, move |engine| engine.rename_session(&session, &name))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Existing {
    session: Name,
    request_key: Option<RequestKey>,
}

pub(super) fn delete_session(_: Call, params: Value) -> Result<Step, WireError> {
    let Existing { session, request_key } = decode(params)?;
    changed("delete-session", request_key, move |engine| engine.delete_session(&session))
}

pub(super) fn restore_session(_: Call, params: Value) -> Result<Step, WireError> {
    let Existing { session, request_key } = decode(params)?;
    changed("restore-session", request_key, move |engine| engine.restore_session(&session))
}

fn changed(
    method: &'static str,
    key: Option<RequestKey>,
    change: impl FnOnce(&mut Engine) -> Result<SessionRow, EngineError> + Send + 'static,
) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let id = engine.once(method, key.as_deref(), |engine| Ok(change(engine)?.id))?;
        let row = engine.row(id)?;
        let current = engine.find_session(None).is_ok_and(|current| current.id == row.id);
        Ok(Value::Map(session(&row, current)))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Search {
    query: String,
    limit: Option<i64>,
    deleted: Option<bool>,
}

pub(super) fn search_sessions(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Search = decode(params)?;
    let limit = not_negative("limit", given.limit.map(|limit| limit.min(MAX_HITS)))?;
    let deleted = given.deleted.unwrap_or(false);
    Step::state(move |engine| {
        let hits = engine.search_sessions(&given.query, limit.unwrap_or(DEFAULT_HITS), deleted)?;
        Ok(Value::List(hits.iter().map(hit).collect()))
    })
}

fn hit(hit: &SearchHit) -> Value {
    let mut map = vec![
        entry("session", &*hit.name),
        entry("id", SessionId(hit.session)),
        entry("score", hit.score),
        entry("snippet", &*hit.snippet),
    ];
    if let Some(number) = hit.message {
        map.push(entry("message", MessageId(number)));
    }
    if let Some(role) = hit.role {
        map.push(entry("role", present::keyword(role.name())));
    }
    Value::Map(map)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Export {
    session: Option<Name>,
    format: Option<transcript::Format>,
}

pub(super) fn export_session(_: Call, params: Value) -> Result<Step, WireError> {
    let given: Export = decode(params)?;
    let format = given.format.unwrap_or(transcript::Format::Markdown);
    Step::then(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let session = engine.session(row.id)?;
        let (state, learned) = (session.state().clone(), session.learned());
        let (log, revision) = (session.log().to_vec(), Revision { state, learned });
        Ok(Finish::Later(Box::new(move || {
            let text = transcript::write(format, &row, &log, &revision);
            Ok(Value::Map(vec![
                entry("session", &*row.name),
                entry("messages", figure(log.len() as u64)),
                entry("text", text),
            ]))
        })))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Import {
    text: String,
    name: Option<Name>,
    request_key: Option<RequestKey>,
}

pub(super) fn import_session(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Import = decode(params)?;
    let name = given.name.map(new_name).transpose()?;
    let read = transcript::read(&given.text, &call.counter())
        .map_err(|message| param_error("text", &message))?;
    let settings = call.tools.session_defaults();
    Step::state(move |engine| {
        let opened = engine.once("import-session", given.request_key.as_deref(), |engine| {
            let name = name.unwrap_or(read.name);
            let new = NewSession { name, project: read.project, settings, ..NewSession::default() };
            engine.import_session(new, read.messages, read.view)
        })?;
        let row = engine.row(opened.id)?;
        Ok(Value::Map(session(&row, true)))
    })
}

/// A session as it is listed.
pub(super) fn session(row: &SessionRow, current: bool) -> Vec<(Box<str>, Value)> {
    let mut map = vec![
        entry("session", &*row.name),
        entry("id", SessionId(row.id)),
        entry("manager", row.manager_name()),
        entry("project", row.project.as_deref().map_or(Value::Nil, Value::from)),
        entry("messages", figure(row.messages)),
        entry("turns", figure(row.turns)),
        entry("tokens", figure(row.tokens)),
        entry("created", Value::Int(row.created)),
        entry("updated", Value::Int(row.updated)),
        entry("current", current),
    ];
    if let Some((parent, messages)) = row.parent {
        map.push(entry("forked-from", SessionId(parent)));
        map.push(entry("shared-messages", figure(messages)));
    }
    if let Some(deleted) = row.deleted {
        map.push(entry("deleted", Value::Int(deleted)));
    }
    map
}

pub(super) fn current_session(_: Call, params: Value) -> Result<Step, WireError> {
    decode::<Nothing>(params)?;
    Step::state(|engine| {
        let row = engine.find_session(None)?;
        Ok(Value::Map(session(&row, true)))
    })
}
