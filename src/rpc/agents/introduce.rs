//! The method with which a program that serves an agent, such as `contexture mcp`, introduces the
//! agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text;
use crate::engine::EngineError;
use crate::rpc::Step;
use crate::rpc::call::Call;
use crate::rpc::connected::ConnectedAgent;
use crate::rpc::params::Short;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Introduction {
    /// Name of the agent.
    name: Short,
    /// Version of the agent.
    version: Option<Short>,
    /// Folder of the agent's project.
    project: Option<Short>,
}

/// The number of agents after an introduction.
#[derive(Serialize, JsonSchema)]
pub(super) struct Introduced {
    /// Number of agents that are connected.
    connected: usize,
}

pub(super) fn introduce_agent(call: Call, given: Introduction) -> Result<Step, WireError> {
    let agent = ConnectedAgent {
        name: given.name.0,
        version: text(given.version),
        project: text(given.project),
    };
    Step::state(move |engine| {
        let connected = call.tools.agents.note(engine, &call.client, agent);
        Ok::<_, EngineError>(Introduced { connected })
    })
}
