//! The requests of the context tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::agent::arriving::Arriving;
use crate::agent::found::{GroundedShown, Hit};
use crate::agent::items::{FileItem, ItemAnswer, ItemShown, new_item, resolved_item, with_states};
#[cfg(feature = "map")]
use crate::agent::maps::{DEFAULT_MAP_TOKENS, WantedMap, unsaved};
use crate::agent::refresh::now_ms;
use crate::agent::tools::ToolTurn;
use crate::agent::{AgentError, Job};
use crate::context::item::{Kind, Metadata};
use crate::engine::{
    Engine, EngineError, Query, Removed, Selection, View, memories_for, name_views,
};
use crate::files::{self, FileError, OpenedFile};
use crate::ids::{ItemId, MessageId};
use crate::session::message::ToolCall;
use crate::store::session::SessionRow;
use crate::value::Value;
use crate::value::json::json_text;
use crate::wording::{in_full, lines};

/// Maximum number of memories or messages in the result of a search.
const FOUND: usize = 8;
/// Number of hits from all sessions among which to look for the hits in one session.
const HITS_LOOKED_AT: u64 = 200;

/// A request from a model, with the arguments of the tool that has the request's name.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ContextRequest {
    ListContext {},
    Read(ThingToRead),
    AddFile(FileToAdd),
    AddText {
        content: String,
    },
    DropContext {
        ids: Vec<ItemId>,
    },
    SearchMemory {
        query: String,
    },
    SearchSession {
        query: String,
    },
    #[cfg(feature = "map")]
    MapProject {
        query: String,
        max_tokens: Option<u64>,
    },
}

/// What to read: an item, or a message with its calls.
#[derive(Deserialize)]
pub(super) struct ThingToRead {
    id: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

/// A file to add. Once its name is resolved, the file is held open, so that no other file can take
/// its place between the user's permission and the reading.
#[derive(Deserialize)]
pub(super) struct FileToAdd {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
    /// Place of the file, if it is outside the project.
    #[serde(skip)]
    outside: Option<String>,
    /// The file, or the reason why it cannot be opened; `None` before the name is resolved.
    #[serde(skip)]
    opened: Option<Result<Arc<OpenedFile>, String>>,
}

impl ContextRequest {
    /// Reads the arguments of a call. The error is a text for the model.
    pub(super) fn read(tool: &str, given: Value) -> Result<Self, String> {
        let request = Value::Map(vec![(tool.into(), given)]);
        match request.decode().map_err(|error| error.to_string())? {
            Self::AddFile(FileToAdd { start_line: None, end_line: Some(_), .. })
            | Self::Read(ThingToRead { start_line: None, end_line: Some(_), .. }) => {
                Err("end_line requires start_line".to_owned())
            }
            Self::DropContext { ids } if ids.is_empty() => {
                Err("ids must name at least one item".to_owned())
            }
            request => Ok(request),
        }
    }

    /// Finds the file that a request names, and holds it open. Does nothing for requests without a
    /// file.
    ///
    /// # Errors
    /// The reason, as text for the model, if the name cannot be resolved, such as a relative name in
    /// a session without a project folder. If the file cannot be opened, only [`Self::carry_out`]
    /// fails: a model must not learn unasked which files exist outside the project.
    pub(super) async fn resolve(&mut self, session: &SessionRow) -> Result<(), String> {
        let Self::AddFile(file) = self else { return Ok(()) };
        let (name, project) = (file.path.clone(), session.project.clone());
        let resolving = tokio::task::spawn_blocking(move || {
            let project = project.as_deref().map(Path::new);
            files::resolve(&name, project).map_err(|error| match error {
                FileError::NotAbsolute { .. } if !name.starts_with('~') => format!(
                    "{} is not an absolute file name, and the session has no project folder; give \
                     an absolute name",
                    json_text(&Value::Str(name))
                ),
                error => error.to_string(),
            })
        });
        let named = resolving.await.map_err(|_| AgentError::Defect("a tool").to_string())??;
        file.outside = named.outside.map(|place| place.to_string_lossy().into_owned());
        file.opened = Some(named.file.map(Arc::new).map_err(|error| error.to_string()));
        Ok(())
    }

    /// Returns the place outside the session's project that the request reaches, if any.
    pub(super) fn outside(&self) -> Option<String> {
        match self {
            Self::AddFile(file) => file.outside.clone(),
            _ => None,
        }
    }

    /// Returns whether the request reads a file that may hold secrets.
    pub(super) fn reaches_secrets(&self) -> bool {
        let Self::AddFile(FileToAdd { opened: Some(Ok(file)), .. }) = self else { return false };
        files::holds_secrets(file.path())
    }

    /// Carries out the request.
    ///
    /// # Errors
    /// The reason, as text for the model.
    pub(super) async fn carry_out(&self, job: &Job, turn: ToolTurn<'_>) -> Result<Value, String> {
        let ToolTurn { session, managers } = turn;
        let done = match self {
            Self::ListContext {} => list(job, managers).await,
            Self::Read(wanted) => return wanted.read(job, turn).await,
            Self::AddFile(file) => return file.add(job, session).await,
            Self::AddText { content } => add_text(job, session, content.clone()).await,
            Self::DropContext { ids } => drop_items(job, managers, ids.clone()).await,
            Self::SearchMemory { query } => search_memory(job, session, query.clone()).await,
            Self::SearchSession { query } => search_session(job, session, query.clone()).await,
            #[cfg(feature = "map")]
            Self::MapProject { query, max_tokens } => {
                return map_project(job, turn, query.clone(), *max_tokens).await;
            }
        };
        done.map_err(|error| error.to_string())
    }
}

/// Returns the manager among `managers` that holds the item, or else the last manager.
fn holder(engine: &mut Engine, managers: &[String], id: ItemId) -> String {
    let holds = |manager: &&String| engine.view(manager, id).is_ok();
    let found = managers.iter().find(holds).or(managers.last());
    found.cloned().unwrap_or_default()
}

async fn list(job: &Job, managers: &[String]) -> Result<Value, AgentError> {
    let managers = managers.to_vec();
    let all = Selection { managers: managers.clone(), ..Selection::default() };
    let views = job.ask(move |engine| engine.select(&all)).await?;
    shown(job, managers, views, true).await
}

/// Shows items of the managers with their states.
async fn shown(
    job: &Job,
    managers: Vec<String>,
    views: Vec<View>,
    brief: bool,
) -> Result<Value, AgentError> {
    let show = move |job: &Job| {
        let mut items = with_states(&job.services, job.caller, views);
        name_views(&managers, items.iter_mut().map(|(view, _)| view));
        let item = |(view, state): &(View, _)| Value::of(&ItemShown::new(view, *state, brief));
        Value::List(items.iter().map(item).collect())
    };
    job.aside("a tool", show).await
}

impl ThingToRead {
    async fn read(&self, job: &Job, turn: ToolTurn<'_>) -> Result<Value, String> {
        if let Ok(MessageId(number)) = self.id.parse() {
            return self.message(job, turn.session, number).await;
        }
        let id = self.id.parse().map_err(|_| {
            let given = json_text(&Value::Str(self.id.clone()));
            format!("id must be that of an item or a message, such as ctx-7 or msg-12, got {given}")
        })?;
        match self.start_line {
            None => read_item(job, turn.managers, id).await,
            Some(_) => Err("start_line is for messages; an item is read whole".to_owned()),
        }
    }

    /// Reads a message of the session's log, whether or not it is in view.
    async fn message(&self, job: &Job, session: &SessionRow, number: u64) -> Result<Value, String> {
        let id = session.id;
        let log = job.ask(move |engine| {
            let session = engine.session(id)?;
            let found = session.log().iter().find(|it| it.number == number);
            Ok((found.cloned(), session.length()))
        });
        let (found, length) = log.await.map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| {
            format!("there is no message {}; the conversation has msg-1 to msg-{length}", self.id)
        })?;
        let calls = found.tool_calls.iter().map(ToolCall::name_and_arguments);
        let text = in_full(&found.content, calls);
        let Some(first) = self.start_line else { return Ok(Value::Str(text)) };
        lines(&text, first, self.end_line).map(|lines| Value::Str(lines.to_owned())).ok_or_else(
            || {
                let count = text.lines().count();
                format!("{} has no such lines; ask for lines from 1 to {count}", self.id)
            },
        )
    }
}

async fn read_item(job: &Job, managers: &[String], id: ItemId) -> Result<Value, String> {
    let managers = managers.to_vec();
    let layers = managers.clone();
    let read = move |engine: &mut Engine| {
        let manager = holder(engine, &managers, id);
        engine.view(&manager, id)
    };
    let view = job.ask(read).await.map_err(|error| match error {
        AgentError::Engine(EngineError::NoSuchItem { id, .. }) => {
            let id = id.to_string();
            format!("there is no item {id:?} in the context; list_context lists the items")
        }
        error => error.to_string(),
    })?;
    match shown(job, layers, vec![view], false).await {
        Ok(Value::List(mut items)) => Ok(items.pop().unwrap_or_default()),
        Ok(value) => Ok(value),
        Err(error) => Err(error.to_string()),
    }
}

impl FileToAdd {
    async fn add(&self, job: &Job, session: &SessionRow) -> Result<Value, String> {
        let opened = self.opened.clone();
        let opened = opened.ok_or_else(|| AgentError::Defect("a tool").to_string())??;
        let lines = self.start_line.map(|start| (start, self.end_line));
        let read = move |job: &Job| resolved_item(&job.services, &job.counter(), &opened, lines);
        let item = job.aside("a tool", read).await.map_err(|error| error.to_string())?;
        let item = item.map_err(|error| error.to_string())?;
        add(job, session, "add-file", item).await.map_err(|error| error.to_string())
    }
}

async fn add_text(job: &Job, session: &SessionRow, content: String) -> Result<Value, AgentError> {
    let count =
        |job: &Job| new_item(&job.counter(), content, Kind::Text, Metadata::default(), now_ms());
    let item = job.aside("a tool", count).await?;
    add(job, session, "add-item", item).await
}

/// Adds an item as a call of `method` would, so that the user can undo the change.
async fn add(
    job: &Job,
    session: &SessionRow,
    method: &'static str,
    item: impl Into<FileItem>,
) -> Result<Value, AgentError> {
    let manager = session.manager_name();
    let item = Arriving::new(&job.services, &manager, item).await?;
    let counter = Arc::clone(&job.services.counter);
    let add = move |engine: &mut Engine| {
        let (added, again) = item.add(engine, method, &manager, &*counter)?;
        Ok(ItemAnswer::added(engine, manager, &added, true)?.again(again))
    };
    Ok(Value::of(&job.ask(add).await?))
}

async fn drop_items(job: &Job, managers: &[String], ids: Vec<ItemId>) -> Result<Value, AgentError> {
    let managers = managers.to_vec();
    let remove = move |engine: &mut Engine| {
        let mut held: BTreeMap<String, Vec<ItemId>> = BTreeMap::new();
        for id in ids {
            held.entry(holder(engine, &managers, id)).or_default().push(id);
        }
        let mut removed = 0;
        for (manager, ids) in held {
            removed += engine.remove(&manager, &ids)?.removed;
        }
        Ok(Removed { removed })
    };
    Ok(Value::of(&job.ask(remove).await?))
}

async fn search_memory(job: &Job, session: &SessionRow, text: String) -> Result<Value, AgentError> {
    let embedded = job.embed(&text).await?;
    let (embedding, filter) = (embedded.outcome(), memories_for(session));
    let query = Query {
        text,
        vector: embedded.vector,
        filter,
        limit: FOUND,
        in_view: None,
        strengthen: true,
    };
    let grounded = job.ask(move |engine| engine.ground(&query)).await?;
    Ok(Value::of(&GroundedShown::from(grounded).with_embedding(embedding)))
}

/// Makes the map of the session's project, for what the turn's items do not show.
#[cfg(feature = "map")]
async fn map_project(
    job: &Job,
    turn: ToolTurn<'_>,
    query: String,
    max_tokens: Option<u64>,
) -> Result<Value, String> {
    let project = turn.session.project.clone().filter(|project| !project.is_empty());
    let project = project.ok_or("the session has no project folder, so there is no map")?;
    let all = Selection { managers: turn.managers.to_vec(), ..Selection::default() };
    let views = job.ask(move |engine| engine.select(&all)).await.map_err(|it| it.to_string())?;
    let make = move |job: &Job| {
        let wanted = WantedMap {
            focus: views
                .iter()
                .filter_map(|it| it.item.metadata.filename())
                .map(Into::into)
                .collect(),
            unsaved: views.iter().filter_map(unsaved).collect(),
            query,
            max_tokens: max_tokens.unwrap_or(DEFAULT_MAP_TOKENS),
        };
        let is_cancelled = || job.cancelled.is_cancelled();
        let (services, options) = (&job.services, job.services.read_options());
        services.maps.map(Path::new(&project), &wanted, options, &job.counter(), &is_cancelled)
    };
    let map = job.aside("a tool", make).await.map_err(|error| error.to_string())?;
    map.map(|map| Value::Str(map.text)).map_err(|error| error.to_string())
}

async fn search_session(
    job: &Job,
    session: &SessionRow,
    text: String,
) -> Result<Value, AgentError> {
    let search = move |engine: &mut Engine| {
        Ok(engine.read().search_sessions(None, &text, HITS_LOOKED_AT, false)?)
    };
    let hits = job.ask(search).await?;
    let own = hits.into_iter().filter(|hit| hit.session == session.id);
    Ok(Value::of(&own.take(FOUND).map(Hit::from).collect::<Vec<_>>()))
}
