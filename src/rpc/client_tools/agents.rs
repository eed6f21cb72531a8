//! Calls of clients' tools by agents that are not the server's own, such as those that speak MCP.

use std::sync::Arc;

use super::remote::{CalledBy, Remote};
use super::{ClientTools, Effect, RegisteredTool};

/// Maximum time, in seconds, in which the user of the tool's client can allow a call.
const PATIENCE: u64 = 600;

impl ClientTools {
    /// Calls a tool for an agent in a project, and waits for the result. An error is the reason why
    /// there is no result, as text for the model.
    pub(in crate::rpc) async fn call_for_agent(
        &self,
        brought: &Arc<RegisteredTool>,
        arguments: &str,
        agent: &str,
        project: &str,
    ) -> Result<String, String> {
        let tool = &brought.tool;
        let longest = tool.seconds + if tool.effect == Effect::Reads { 0 } else { PATIENCE };
        let remote = Remote { brought: Arc::clone(brought), tools: self.clone() };
        let request = remote.request(arguments)?;
        request.result(CalledBy::Agent { name: agent, project }, longest).await
    }

    /// Returns the tools that agents may call in a project. If several tools have the same name,
    /// returns only the one that came first.
    pub(in crate::rpc) fn for_agents(&self, project: &str) -> Vec<Arc<RegisteredTool>> {
        let mut offered: Vec<Arc<RegisteredTool>> = Vec::new();
        for brought in self.here() {
            let is_known = offered.iter().any(|known| known.tool.name == brought.tool.name);
            if brought.tool.is_for_agents(project) && !is_known {
                offered.push(brought);
            }
        }
        offered
    }
}
