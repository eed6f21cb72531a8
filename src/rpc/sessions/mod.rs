//! The session family: sessions, their messages, and going back.

mod checkpoints;
mod export;
mod listed;
mod markdown;
pub(super) mod messages;
pub(super) mod recordings;
mod state;
mod table;
mod transcript;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use self::table::{MAX_SESSIONS, METHODS};
use super::call::MethodCall;
use super::connected::SessionState;
use super::context::layers::layers_of;
use super::error::param_error;
use super::params::{ManagerName, Name, Short, Switch, is_session_id, manager_names, yes};
use super::{Step, templates};
use crate::engine::{Engine, EngineError, OpenedSession, SessionSettings};
use crate::ids::{CheckpointId, MessageId, SessionId};
use crate::store::session::{NewSession, SessionRow};
use crate::wire::message::WireError;

/// Stored settings of a session that was never configured.
const NO_SETTINGS: &str = "{}";

/// Default number of hits of a search.
pub(super) const DEFAULT_HITS: u64 = 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Open {
    /// Name, or the id of an existing session; defaults to a new `conversation-N`.
    name: Option<Name>,
    /// Manager of the items of a new session; defaults to one of its own.
    manager: Option<ManagerName>,
    /// Further managers whose items a new session shows before those of its own manager, from
    /// general to specific; `configure-session` sets those of other sessions.
    managers: Option<Vec<ManagerName>>,
    /// Folder of the project that a new session is about. Without `:manager` and `:managers`, the
    /// session shows the items of that project, and those for everywhere.
    project: Option<Short>,
    /// Replace the session's history with notes.
    #[serde(default)]
    manage: Switch,
    /// Template to use; implies `:manage t`.
    template: Option<Name>,
    /// Make the session the current one; defaults to `t`. With `nil`, the current session stays the
    /// same.
    #[serde(default = "yes")]
    current: bool,
    /// Create the session if there is none with this name; defaults to `t`. With `nil`, the error
    /// is `no-such-session`.
    #[serde(default = "yes")]
    create: bool,
    /// Name or id of a session that the new session continues, with copies of its items. The new
    /// one has its project and settings, and becomes the current one. There must be none with its
    /// name.
    fork_of: Option<Name>,
    /// Id of the checkpoint of `:fork-of` to continue from, `chk-N`; defaults to its current state.
    checkpoint: Option<CheckpointId>,
    /// The text of `export-session`. Markdown opens the session that it was written from, whatever
    /// was edited in it since. From JSON, with `:name`, and where that session is not, a new session
    /// is made. Nothing is replaced: if its name is taken, a number is added.
    text: Option<String>,
}

pub(super) fn open_session(call: MethodCall, mut given: Open) -> Result<Step, WireError> {
    if given.name.is_none() && !given.create {
        return Err(param_error("name", "is required if create is nil"));
    }
    if let Some(text) = given.text {
        return transcript::open(call, text, given.name);
    }
    if let Some(of) = given.fork_of.take() {
        return checkpoints::fork(of, given.checkpoint, given.name, given.manager);
    }
    if given.checkpoint.is_some() {
        return Err(param_error("checkpoint", "needs the parameter fork-of"));
    }
    let managers = manager_names(given.managers.clone().unwrap_or_default())?;
    let mut settings = SessionSettings { managers, ..SessionSettings::default() };
    let layers = match given.manager.is_none() && given.managers.is_none() {
        // A project that is no folder, such as a name alone, has no items.
        true => given.project.clone().and_then(|project| layers_of(Some(project)).ok()),
        false => None,
    };
    let template = given.template.clone().map(|Name(name)| name);
    let (name, project) = (given.name.clone(), given.project.clone());
    // A session that exists keeps its project.
    let project = move |engine: &mut Engine| match name.map(|name| engine.find_session(Some(&name)))
    {
        Some(Ok(row)) => row.project,
        _ => project.map(|Short(path)| path),
    };
    templates::usable(&call, template, project, move || {
        Step::state(move |engine| {
            if let Some(layers) = layers {
                let layers = engine.open_layers(layers)?.layers;
                settings.managers = layers.into_iter().map(|layer| layer.manager).collect();
            }
            let opened = opened(engine, &given, &settings)?;
            manage(engine, opened.id, given.manage.0, given.template)?;
            let row = engine.row(opened.id)?;
            Ok(SessionShown { created_now: Some(opened.created), ..shown(engine, row) })
        })
    })
}

/// Opens the session of a call. Creates it if there is none and `:create` allows that.
fn opened(
    engine: &mut Engine,
    given: &Open,
    settings: &SessionSettings,
) -> Result<OpenedSession, EngineError> {
    let name = match given.name.as_deref() {
        Some(name) if !given.create => {
            let row = match given.current {
                true => engine.switch_session(name)?,
                false => engine.find_session(Some(name))?,
            };
            return Ok(OpenedSession { id: row.id, created: false });
        }
        // An id is not allowed as a new name, but it can open an existing session.
        Some(name) if is_session_id(name) => engine.find_session(Some(name))?.name,
        Some(name) => name.to_owned(),
        None => engine.free_session_name()?,
    };
    let new = NewSession {
        name,
        manager: given.manager.as_ref().map(|ManagerName(name)| name.clone()).unwrap_or_default(),
        project: given.project.as_deref().map(str::to_owned),
        settings: match settings.managers.is_empty() {
            true => NO_SETTINGS.to_owned(),
            false => settings.print()?,
        },
        ..NewSession::default()
    };
    match given.current {
        true => engine.open_session(new),
        false => engine.open_session_aside(new),
    }
}

/// Turns note-taking for a session on or off, and sets its template.
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
    // Naming a template turns note-taking on.
    settings.manage = manage.unwrap_or(true);
    settings.template = template.map(|Name(name)| name).or(settings.template);
    engine.set_session_settings(id, &settings.print()?)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteSession {
    /// Name or id of the session, `ses-N`.
    session: Name,
    /// Whether to delete the session; defaults to `t`. With `nil`, restores the deleted one.
    #[serde(default = "yes")]
    deleted: bool,
}

pub(super) fn delete_session(_: MethodCall, given: DeleteSession) -> Result<Step, WireError> {
    if given.deleted {
        return changed(move |engine| engine.delete_session(&given.session));
    }
    Step::state(move |engine| {
        let (row, restored) = engine.restore_session(&given.session)?;
        Ok(SessionShown { restored: Some(restored), ..shown(engine, row) })
    })
}

fn changed(
    change: impl FnOnce(&mut Engine) -> Result<SessionRow, EngineError> + Send + 'static,
) -> Result<Step, WireError> {
    Step::state(move |engine| change(engine).map(|row| shown(engine, row)))
}

fn shown(engine: &mut Engine, row: SessionRow) -> SessionShown {
    let current = engine.find_session(None).is_ok_and(|current| current.id == row.id);
    SessionShown::new(row, current)
}

/// A session, as clients get it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
struct SessionShown {
    /// Name of the session.
    session: String,
    /// Id of the session, `ses-N`.
    id: SessionId,
    /// Manager of the session's items.
    manager: String,
    /// All managers whose items the session shows, from general to specific, with `:manager`
    /// last; absent if there is only that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    managers: Vec<String>,
    /// Folder of the session's project.
    project: Option<String>,
    /// True if only a file, a recording or another machine names `:project`. The session then
    /// reaches no file, item or memory of it, until `configure-session` gives it a project.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    told: bool,
    /// Number of messages in the session's log.
    messages: u64,
    /// Number of turns in the session's log, including those that were rolled back; `session-report`
    /// counts the turns of the conversation.
    turns: u64,
    /// Total tokens of the messages in the session's log; in `list-sessions`, as windows count them
    /// for the session's model.
    tokens: u64,
    /// Time at which the session was created, in Unix seconds.
    created: i64,
    /// Time of the latest message, or of the creation if there is none, in Unix seconds.
    updated: i64,
    /// True if calls without `:session` are about this session.
    current: bool,
    /// Version of the session.
    version: u64,
    /// Id of the session that this session was forked from; absent if this session is not a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<SessionId>,
    /// Number of messages that this session shares with the session in `:forked-from`; absent if
    /// this session is not a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared_messages: Option<u64>,
    /// Time at which the session was deleted, in Unix seconds; absent if it is not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<i64>,
    /// File that the session was imported from by `import-sessions`; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Agent that recorded the session, such as `claude`; absent if it was not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// Id that the agent gave the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_session: Option<String>,
    /// Name of the machine from which the session came; absent if it began here.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Folder in which the agent worked, if it is not the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    /// Git branch in that folder, as last recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Beginning of the last text of the user or the model, on one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    last_words: String,
    /// Id of the session whose agent began this one as a subagent's; only in `list-sessions`, which
    /// lists this one below that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_of: Option<SessionId>,
    /// What the session's agent is doing; only in `list-sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<SessionState>,
    /// Time at which `:state` began, in Unix seconds; only in `list-sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<i64>,
    /// True if this call created the session; only in the result of `open-session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_now: Option<bool>,
    /// True if this call restored the session, `nil` if it was not deleted; only in the result of
    /// `delete-session` with `:deleted nil`.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored: Option<bool>,
    /// Ids of the messages that the Markdown in `:text` has in another form than the session:
    /// edited, left out or added there; only in the result of `open-session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    edited: Option<Vec<MessageId>>,
}

impl SessionShown {
    fn new(row: SessionRow, current: bool) -> Self {
        Self {
            id: SessionId(row.id),
            manager: row.manager_name(),
            managers: Some(SessionSettings::parse(&row.settings).unwrap_or_default())
                .map(|settings| settings.managers(&row))
                .filter(|managers| managers.len() > 1)
                .unwrap_or_default(),
            told: row.project.is_none() && row.told.is_some(),
            session: row.name,
            project: row.project.or(row.told),
            messages: row.messages,
            turns: row.turns,
            tokens: row.tokens,
            created: row.created,
            updated: row.updated,
            current,
            version: row.version,
            forked_from: row.parent.map(|(parent, _)| SessionId(parent)),
            shared_messages: row.parent.map(|(_, messages)| messages),
            deleted: row.deleted,
            source: row.source,
            agent: row.origin.agent,
            agent_session: row.origin.session,
            machine: row.machine,
            folder: row.origin.folder,
            branch: row.origin.branch,
            last_words: row.last_words,
            part_of: None,
            state: None,
            since: None,
            created_now: None,
            restored: None,
            edited: None,
        }
    }
}
