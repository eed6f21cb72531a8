//! The list of sessions, each with what its agent is doing.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{DEFAULT_HITS, SessionShown, state};
use crate::agent::found::Hit;
use crate::engine::{Engine, EngineError};
use crate::files;
use crate::ids::SessionId;
use crate::rpc::call::MethodCall;
use crate::rpc::error::param_error;
use crate::rpc::hub;
use crate::rpc::limits::MAX_HITS;
use crate::rpc::params::not_negative;
use crate::rpc::{Finish, Step};
use crate::store::session::{SearchHit, SessionRow, bare_folder};
use crate::tokens::Measure;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListSessions {
    /// List only sessions of the project in this folder: those whose agent worked in its repository,
    /// in a folder or worktree of it, or in its folder before it was moved.
    project: Option<String>,
    /// List only the current session, which calls without `:session` use. The list is empty if there
    /// is none.
    current: Option<bool>,
    /// Include deleted sessions.
    deleted: Option<bool>,
    #[schemars(description = format!(
        "Maximum number of sessions; `nil` means all. With `:query`, maximum number of hits, up to \
         {MAX_HITS}; defaults to {DEFAULT_HITS}."
    ))]
    limit: Option<i64>,
    /// Look at the hub of the configuration in place of this machine: at what others share with the
    /// user, also memories. Returns hits; without a `:query`, everything, newest first.
    hub: Option<bool>,
    /// Words to find in the names and messages of the sessions. Finds identifiers by their parts,
    /// and words in all their forms. The best hits come first.
    query: Option<String>,
}

pub(super) fn list_sessions(call: MethodCall, given: ListSessions) -> Result<Step, WireError> {
    let on_hub = given.hub.unwrap_or(false);
    if let Some(query) = given.query.clone().or_else(|| on_hub.then(String::new)) {
        return search(&call, query, given);
    }
    let limit = not_negative("limit", given.limit)?.unwrap_or(usize::MAX);
    let project = given.project.map(|folder| InProject::of(&folder));
    Step::then(move |engine| {
        let current = engine.find_session(None).ok().map(|row| row.id);
        let rows = match (given.current, current) {
            (Some(true), None) => Vec::new(),
            (Some(true), Some(id)) => vec![engine.row(id)?],
            _ => engine.read().sessions(given.deleted.unwrap_or(false))?,
        };
        let rows = measured(engine, &call, rows)?;
        let (now, signals) = (engine.now(), call.tools.agents.signals());
        let answering: HashSet<u64> =
            rows.iter().map(|row| row.id).filter(|id| engine.is_answering(*id)).collect();
        Ok(Finish::later(move || {
            let ids: HashMap<(String, String), u64> =
                rows.iter().filter_map(|row| Some((of_agent(row)?, row.id))).collect();
            let line = |row: SessionRow| {
                let signal = of_agent(&row).and_then(|session| signals.get(&session));
                let (state, since) = state::state(&row, answering.contains(&row.id), signal, now);
                let parent = row.origin.agent.clone().zip(row.origin.parent.clone());
                let part_of = parent.and_then(|parent| ids.get(&parent)).copied().map(SessionId);
                let is_current = current == Some(row.id);
                let shown = SessionShown::new(row, is_current);
                SessionShown { state: Some(state), since: Some(since), part_of, ..shown }
            };
            let mut project = project;
            let wanted = |row: &SessionRow| project.as_mut().is_none_or(|project| project.has(row));
            let rows = rows.into_iter().filter(wanted).take(limit);
            Ok(below_parents(rows.map(line).collect()))
        }))
    })
}

/// Counts the tokens of each session as windows do for its model.
fn measured(
    engine: &mut Engine,
    call: &MethodCall,
    mut rows: Vec<SessionRow>,
) -> Result<Vec<SessionRow>, EngineError> {
    // Few sessions have settings of their own.
    let mut known = HashMap::<String, Measure>::new();
    for row in &mut rows {
        if !known.contains_key(&row.settings) {
            let context = call.tools.providers.context_of(engine, row.clone(), None)?;
            known.insert(row.settings.clone(), context.costs.measure);
        }
        row.tokens = known[&row.settings].messages(row.messages, row.tokens);
    }
    Ok(rows)
}

/// Finds the messages and names of sessions that match a query.
fn search(call: &MethodCall, query: String, given: ListSessions) -> Result<Step, WireError> {
    if given.current.unwrap_or(false) {
        return Err(param_error("query", "cannot be combined with the parameter current"));
    }
    let limit = not_negative("limit", given.limit.map(|limit| limit.min(MAX_HITS)))?;
    let (limit, deleted) = (limit.unwrap_or(DEFAULT_HITS), given.deleted.unwrap_or(false));
    let project = given.project.as_deref().map(files::project_of);
    if given.hub.unwrap_or(false) {
        return hub::search(call, query, project, limit);
    }
    Step::state(move |engine| {
        let hits = engine.read().search_sessions(project.as_deref(), &query, limit, deleted)?;
        let mut machines = HashMap::new();
        let hit = |hit: SearchHit| {
            let machine = match machines.entry(hit.session) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(engine.row(hit.session)?.machine),
            };
            Ok(Hit { machine: machine.clone(), ..Hit::from(hit) })
        };
        hits.into_iter().map(hit).collect::<Result<Vec<_>, EngineError>>()
    })
}

/// A project, for choosing its sessions: those whose folder has the same repository, and those of
/// a folder that is gone if the repository had the same remote.
pub(super) struct InProject {
    root: String,
    remote: Option<String>,
    /// Projects that sessions name, and whether they are this one.
    known: HashMap<(String, Option<String>), bool>,
}

impl InProject {
    /// Finds the project of a folder. Looks at the disk.
    pub(super) fn of(folder: &str) -> Self {
        let root = files::project_of(bare_folder(folder));
        let remote = files::repository_address(Path::new(&root));
        Self { root, remote, known: HashMap::new() }
    }

    fn has(&mut self, row: &SessionRow) -> bool {
        let Some(project) = row.named_project().map(bare_folder) else { return false };
        let is_same = |remote: &Option<String>| remote.is_some() && *remote == self.remote;
        let known = (project.to_owned(), row.origin.remote.clone());
        *self.known.entry(known).or_insert_with_key(|(project, remote)| {
            files::project_of(project) == self.root || is_same(remote) && !files::is_there(project)
        })
    }
}

/// Returns the agent of a session and the id that the agent gave the session.
fn of_agent(row: &SessionRow) -> Option<(String, String)> {
    row.origin.agent.clone().zip(row.origin.session.clone())
}

/// Moves each subagent's session below the session to which it belongs, if that is in the list.
fn below_parents(sessions: Vec<SessionShown>) -> Vec<SessionShown> {
    let listed: HashSet<SessionId> = sessions.iter().map(|session| session.id).collect();
    let (parts, mut wholes): (Vec<_>, Vec<_>) = sessions
        .into_iter()
        .partition(|session| session.part_of.is_some_and(|whole| listed.contains(&whole)));
    let mut below = HashMap::<SessionId, Vec<SessionShown>>::new();
    for part in parts {
        below.entry(part.part_of.unwrap_or(part.id)).or_default().push(part);
    }
    // The parts of a part come below it, too.
    let (mut ordered, mut next) = (Vec::new(), Vec::new());
    while !below.is_empty() || !wholes.is_empty() {
        if wholes.is_empty() {
            // Sessions that belong to each other in a circle have no place.
            wholes = below.drain().flat_map(|(_, parts)| parts).collect();
        }
        for session in wholes.drain(..) {
            next.push(session);
            while let Some(session) = next.pop() {
                next.extend(below.remove(&session.id).into_iter().flatten().rev());
                ordered.push(session);
            }
        }
    }
    ordered
}
