//! The method by which an agent other than the server's own calls a tool of a client.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::error::param_error;
use super::params::Short;
use crate::agent::tools::cut;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct CallTool {
    /// Name of the tool.
    tool: Short,
    /// Arguments: the JSON text of an object; defaults to an empty object.
    arguments: Option<String>,
    /// Folder of the agent's project.
    project: Short,
    /// Name of the agent, shown to the user who is asked to allow the call.
    agent: Short,
}

/// The result of a tool for an agent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AgentToolResult")]
pub(super) struct CalledForAgent {
    /// Result, or the reason why there is no result, for the model.
    content: String,
    /// True if the tool was refused or failed.
    failed: bool,
}

pub(super) fn call_tool(call: MethodCall, given: CallTool) -> Result<Step, WireError> {
    call.check_access("call tools")?;
    let (tools, project) = (call.tools.client_tools.clone(), given.project.0);
    let offered = tools.for_agents(&project);
    let Some(brought) = offered.iter().find(|brought| brought.tool.name == given.tool.0) else {
        let names: Vec<&str> = offered.iter().map(|brought| &*brought.tool.name).collect();
        let known = match &names[..] {
            [] => "there are none".to_owned(),
            [only] => format!("the only one is {only}"),
            names => format!("the tools are {}", names.join(", ")),
        };
        let what = format!(
            "must name one of the tools that are offered to agents in {project}, got {:?}; {known}",
            given.tool.0
        );
        return Err(param_error("tool", &what));
    };
    let brought = Arc::clone(brought);
    let (ending, hung_up) = (call.tools.ending.clone(), call.hung_up.clone());
    Ok(Step::Await(Box::pin(async move {
        let arguments = given.arguments.as_deref().unwrap_or_default();
        let result = tokio::select! {
            biased;
            () = ending.cancelled() => Err("the server is shutting down".to_owned()),
            () = hung_up.cancelled() => Err("the agent has disconnected".to_owned()),
            result = tools.call_for_agent(&brought, arguments, &given.agent, &project) => result,
        };
        let failed = result.is_err();
        let content = cut(result.unwrap_or_else(|why| why));
        Step::done(&CalledForAgent { content, failed })
    })))
}
