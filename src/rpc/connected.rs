//! The agents that are connected now, each over a connection of its own, and what their hooks told
//! about their sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use schemars::JsonSchema;
use serde::Serialize;

use super::client::Client;
use super::locked;
use crate::engine::Engine;
use crate::names::names;

/// Method named in the events about agents that connect or disconnect.
const INTRODUCE: &str = "initialize";

/// Maximum number of sessions about which signals are kept. The oldest signal goes first.
const MOST_SIGNALS: usize = 1000;

/// The connections of agents, in the order in which they came, and the last signal about each
/// session of an agent.
#[derive(Default)]
pub struct Agents(Mutex<Vec<(Weak<Client>, ConnectedAgent)>>, Mutex<Signals>);

/// The last signal about each session, by the name of its agent and the id that the agent gave it.
pub(super) type Signals = HashMap<(String, String), Signal>;

names! {
    /// What the agent of a session is doing.
    SessionState {
        /// A model is answering, or a tool is running.
        Working => "working",
        /// The agent waits until the user allows a tool. Only hooks tell this.
        Waiting => "waiting",
        /// A call has no result yet. Without hooks, it is unknown whether the tool runs or waits to be
        /// allowed.
        CallOpen => "call-open",
        /// The agent has answered, and waits for the next prompt.
        Idle => "idle",
        /// Nothing was recorded for an hour, and no hook tells more.
        Quiet => "quiet",
        /// The agent has ended the session, or its process is gone. Only hooks tell this.
        Ended => "ended",
    }
}

/// What an agent's hook told about a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signal {
    pub(super) state: SessionState,
    /// Time in Unix seconds.
    pub(super) at: i64,
    /// Number of the agent's process, if known.
    pub(super) process: Option<i32>,
}

impl Signal {
    /// Returns whether the agent said that the session has ended, or its process is gone.
    pub(super) fn has_ended(&self) -> bool {
        let is_gone =
            |id: i32| Pid::from_raw(id).is_some_and(|id| test_kill_process(id) == Err(Errno::SRCH));
        self.state == SessionState::Ended || self.process.is_some_and(is_gone)
    }
}

/// An agent that is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ConnectedAgent {
    /// Name of the agent, as the agent gave it.
    pub(super) name: String,
    /// Version of the agent; empty if the agent gave none.
    pub(super) version: String,
    /// Folder of the agent's project; empty if unknown.
    pub(super) project: String,
}

impl Agents {
    /// Records the agent of a connection, and announces this with an event. Returns the number of
    /// agents now.
    pub(super) fn note(
        &self,
        engine: &mut Engine,
        client: &Arc<Client>,
        agent: ConnectedAgent,
    ) -> usize {
        engine.tell_agents(INTRODUCE, agent.name.clone(), String::new());
        let client = Arc::downgrade(client);
        let mut agents = locked(&self.0);
        agents.retain(|(known, _)| known.strong_count() > 0 && !known.ptr_eq(&client));
        agents.push((client, agent));
        agents.len()
    }

    /// Forgets the agent of a connection that has ended, and announces this with an event.
    pub(crate) fn forget(&self, engine: &mut Engine, client: &Arc<Client>) {
        let client = Arc::downgrade(client);
        let mut agents = locked(&self.0);
        if let Some(place) = agents.iter().position(|(known, _)| known.ptr_eq(&client)) {
            let (_, agent) = agents.remove(place);
            engine.tell_agents(INTRODUCE, agent.name, String::new());
        }
    }

    /// Keeps what a hook told about the session `id` of an agent, and announces this with an event.
    pub(super) fn signal(&self, engine: &mut Engine, agent: &str, id: &str, signal: Signal) {
        let mut signals = locked(&self.1);
        let session = (agent.to_owned(), id.to_owned());
        if signals.len() >= MOST_SIGNALS && !signals.contains_key(&session) {
            let oldest = signals.iter().min_by_key(|(_, signal)| signal.at);
            let oldest = oldest.map(|(session, _)| session.clone()).unwrap_or_default();
            signals.remove(&oldest);
        }
        signals.insert(session, signal);
        engine.tell_agents("pushed-context", agent.to_owned(), id.to_owned());
    }

    /// Returns the last signal about each session.
    pub(super) fn signals(&self) -> Signals {
        locked(&self.1).clone()
    }

    pub(super) fn connected(&self) -> Vec<ConnectedAgent> {
        let agents = locked(&self.0);
        let alive = agents.iter().filter(|(client, _)| client.strong_count() > 0);
        alive.map(|(_, agent)| agent.clone()).collect()
    }
}
