//! The list of sessions, each with what its agent is doing.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{SessionShown, state};
use crate::ids::SessionId;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::params::not_negative;
use crate::store::session::{SessionRow, bare_folder};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListSessions {
    /// List only sessions of the project in this folder.
    project: Option<String>,
    /// Include deleted sessions.
    deleted: Option<bool>,
    /// Maximum number of sessions; `nil` means all.
    limit: Option<i64>,
}

pub(super) fn list_sessions(call: Call, given: ListSessions) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(usize::MAX);
    Step::state(move |engine| {
        let current = engine.find_session(None).ok().map(|row| row.id);
        let rows = engine.read().sessions(given.deleted.unwrap_or(false))?;
        let wanted = |row: &SessionRow| match &given.project {
            None => true,
            Some(folder) => row.project.as_deref().map(bare_folder) == Some(bare_folder(folder)),
        };
        let (now, signals) = (engine.now(), call.tools.agents.signals());
        let ids: HashMap<(String, String), u64> =
            rows.iter().filter_map(|row| Some((of_agent(row)?, row.id))).collect();
        let line = |row: SessionRow| {
            let is_current = current == Some(row.id);
            let signal = row.origin.session.as_deref().and_then(|id| signals.get(id));
            let (state, since) = state::state(&row, engine.is_answering(row.id), signal, now);
            let parent = row.origin.agent.clone().zip(row.origin.parent.clone());
            let part_of = parent.and_then(|parent| ids.get(&parent)).copied().map(SessionId);
            let shown = SessionShown::new(row, is_current);
            SessionShown { state: Some(state), since: Some(since), part_of, ..shown }
        };
        let rows = rows.into_iter().filter(wanted).take(limit);
        Ok(below_parents(rows.map(line).collect()))
    })
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
