//! Calls of clients' tools by agents that are not the server's own, such as those that speak MCP.

use std::sync::Arc;

use super::remote::{CalledBy, Remote, Request};
use super::{Brought, ClientTools, Effect};

/// Maximum time, in seconds, in which the user of the tool's client can allow a call.
const PATIENCE: u64 = 600;

pub(in crate::rpc) struct AgentCall {
    request: Request,
    /// Maximum time of the call, in seconds. Includes the time that the tool's client may need to
    /// ask its user.
    longest: u64,
}

impl AgentCall {
    /// Calls the tool for an agent in a project, and waits for the result.
    ///
    /// # Errors
    /// The reason why there is no result, as text for the model.
    pub(in crate::rpc) async fn result(
        &self,
        agent: &str,
        project: &str,
    ) -> Result<String, String> {
        self.request.result(CalledBy::Agent { name: agent, project }, self.longest).await
    }
}

impl ClientTools {
    /// Creates a call of a tool with these arguments.
    ///
    /// # Errors
    /// The reason why the arguments are refused, as text for the model.
    pub(in crate::rpc) fn agent_call(
        &self,
        brought: &Arc<Brought>,
        arguments: &str,
    ) -> Result<AgentCall, String> {
        let tool = &brought.tool;
        let longest = tool.seconds + if tool.effect == Effect::Reads { 0 } else { PATIENCE };
        let remote = Remote { brought: Arc::clone(brought), tools: self.clone() };
        Ok(AgentCall { request: remote.request(arguments)?, longest })
    }

    /// Returns the tools that agents may call in a project. If several tools have the same name,
    /// returns only the one that came first.
    pub(in crate::rpc) fn for_agents(&self, project: &str) -> Vec<Arc<Brought>> {
        let mut offered: Vec<Arc<Brought>> = Vec::new();
        for brought in self.here() {
            let is_known = offered.iter().any(|known| known.tool.name == brought.tool.name);
            if brought.tool.is_for_agents(project) && !is_known {
                offered.push(brought);
            }
        }
        offered
    }
}
