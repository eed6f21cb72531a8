//! The agents that are connected now, each over a connection of its own.

use std::sync::{Arc, Mutex, Weak};

use schemars::JsonSchema;
use serde::Serialize;

use super::client::Client;
use super::locked;
use crate::engine::Engine;

/// Method named in the events about agents that connect or disconnect.
const INTRODUCE: &str = "introduce-agent";

/// The connections of agents, in the order in which they came.
#[derive(Default)]
pub struct Agents(Mutex<Vec<(Weak<Client>, ConnectedAgent)>>);

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

    pub(super) fn connected(&self) -> Vec<ConnectedAgent> {
        let agents = locked(&self.0);
        let alive = agents.iter().filter(|(client, _)| client.strong_count() > 0);
        alive.map(|(_, agent)| agent.clone()).collect()
    }
}
