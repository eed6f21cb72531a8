//! The list of agents: those that are connected, the items that their sessions were given, and the
//! items that wait for their next prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::items_of;
use crate::ids::ItemId;
use crate::rpc::call::MethodCall;
use crate::rpc::connected::ConnectedAgent;
use crate::rpc::params::not_negative;
use crate::rpc::{Finish, Step};
use crate::store::session::{NextPush, PushRow, TakenPush};
use crate::wire::message::WireError;

/// Maximum number of sessions in a list.
pub(in crate::rpc) const MAX_LISTED: u64 = 1_000;
/// Default number of sessions in a list.
const LISTED: u64 = 50;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListAgents {
    #[schemars(description = format!(
        "Maximum number of sessions, at most {MAX_LISTED}; defaults to {LISTED}."
    ))]
    limit: Option<i64>,
    /// Leave out the items of the sessions.
    brief: Option<bool>,
}

/// The agents.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgentsListed {
    /// Agents that are connected now.
    connected: Vec<ConnectedAgent>,
    /// Sessions that were given items, the latest first.
    sessions: Vec<AgentSession>,
    /// Items that the sessions in `:sessions` were shown, each with the session to which it was
    /// shown last.
    sent: Vec<SentItem>,
    /// Items that wait for an agent's next prompt, the one that waits longest first.
    waiting: Vec<WaitingItem>,
}

/// A session of an agent, with the items that it was given.
#[derive(Serialize, JsonSchema)]
struct AgentSession {
    /// Name of the agent.
    agent: String,
    /// Id that the agent gives the session.
    agent_session: String,
    /// Number of the latest push of items to the session.
    number: u64,
    /// Time of the latest push of items to the session, in Unix seconds; 0 if unknown.
    at: i64,
    /// Folder of the project; empty if unknown.
    project: String,
    /// Tokens of the items that the latest push showed; 0 if unknown.
    tokens: u64,
    /// Number of items that the session was shown.
    count: usize,
    /// Items that the session was shown; absent if the call is brief.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ShownItem>>,
}

/// An item that a session of an agent was shown.
#[derive(Serialize, JsonSchema)]
struct ShownItem {
    /// Id of the item.
    id: String,
    /// Time at which the item was last shown, in Unix seconds; 0 if unknown.
    at: i64,
}

/// An item, and the session of an agent to which it was shown last.
#[derive(Serialize, JsonSchema)]
struct SentItem {
    /// Id of the item.
    id: String,
    /// Name of the agent.
    agent: String,
    /// Id of the agent's session.
    agent_session: String,
    /// Time at which the item was shown, in Unix seconds; 0 if unknown.
    at: i64,
}

/// An item that waits for an agent's next prompt.
#[derive(Serialize, JsonSchema)]
struct WaitingItem {
    /// Number of the waiting item, to cancel it with `push-next`.
    number: u64,
    /// Manager of the item.
    manager: String,
    /// Id of the item.
    id: ItemId,
    /// Name of the agent; empty for any agent.
    agent: String,
    /// Id of the agent's session; empty for any session.
    agent_session: String,
    /// Folder of the project; empty for any project.
    project: String,
    /// Time at which the item began to wait, in Unix seconds.
    at: i64,
}

pub(super) fn list_agents(call: MethodCall, given: ListAgents) -> Result<Step, WireError> {
    let limit = not_negative("limit", given.limit)?.unwrap_or(LISTED).min(MAX_LISTED);
    Step::then(move |engine| {
        let (pushes, taken) = engine.pushes(limit)?;
        let waiting = engine.next_pushes()?;
        Ok(Finish::later(move || {
            let mut sessions: Vec<_> =
                pushes.into_iter().map(|row| AgentSession::of(row, &taken)).collect();
            let sent = sent(&sessions);
            if given.brief == Some(true) {
                sessions.iter_mut().for_each(|session| session.items = None);
            }
            Ok(AgentsListed {
                connected: call.tools.agents.connected(),
                sessions,
                sent,
                waiting: waiting.into_iter().map(WaitingItem::from).collect(),
            })
        }))
    })
}

/// Returns the items that the sessions were shown, each with the session to which it was shown
/// last.
fn sent(sessions: &[AgentSession]) -> Vec<SentItem> {
    let mut sent: BTreeMap<&str, (&AgentSession, i64)> = BTreeMap::new();
    for session in sessions {
        for ShownItem { id, at } in session.items.iter().flatten() {
            let newest = sent.entry(id).or_insert((session, *at));
            if newest.1 < *at {
                *newest = (session, *at);
            }
        }
    }
    let item = |(id, (session, at)): (&&str, &(&AgentSession, i64))| SentItem {
        id: (*id).to_owned(),
        agent: session.agent.clone(),
        agent_session: session.agent_session.clone(),
        at: *at,
    };
    sent.iter().map(item).collect()
}

impl AgentSession {
    /// Creates a session from its record `row`, and from the items in `taken` that were sent once
    /// with its prompts.
    fn of(row: PushRow, taken: &[TakenPush]) -> Self {
        let PushRow { agent, session, latest, at, project, tokens, .. } = row;
        let shown = items_of(&latest.items).into_iter();
        let mut items: Vec<_> = shown.map(|item| ShownItem { id: item.id, at: item.at }).collect();
        for once in taken.iter().filter(|once| once.agent == agent && once.session == session) {
            let id = ItemId(once.item).to_string();
            match items.iter_mut().find(|item| item.id == id) {
                Some(item) => item.at = item.at.max(once.at),
                None => items.push(ShownItem { id, at: once.at }),
            }
        }
        Self {
            agent,
            agent_session: session,
            number: latest.number,
            at,
            project,
            tokens,
            count: items.len(),
            items: Some(items),
        }
    }
}

impl From<NextPush> for WaitingItem {
    fn from(next: NextPush) -> Self {
        let NextPush { number, manager, item, agent, session, project, at, .. } = next;
        Self { number, manager, id: ItemId(item), agent, agent_session: session, project, at }
    }
}
