//! Tools that clients such as Emacs offer to agents, in addition to the bridge's own tools. The
//! server lists them. The client that offers a tool asks its user before a call changes anything.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::agent::McpAgent;
use super::answer::Trouble;
use super::tools::{self, ToolCallContext};
use crate::visible::visible_lines;

/// A tool as the server lists it.
#[derive(Deserialize)]
struct BroughtTool {
    name: String,
    description: String,
    schema: String,
    effect: String,
}

/// The result of calling a client's tool.
#[derive(Deserialize)]
struct BroughtResult {
    content: String,
    failed: bool,
}

/// Returns the tools that clients offer to agents in the agent's project, without those that have
/// the name of one of the bridge's own tools. Returns an empty list if there is no project, or the
/// server cannot be reached.
pub(super) async fn offered(asked: &ToolCallContext<'_>) -> Vec<Tool> {
    let Some(project) = project(asked).await else { return Vec::new() };
    let params = json!({ "agent_project": project });
    let listed = asked.link.call::<Option<Vec<BroughtTool>>>("list_tools", params).await;
    let listed = listed.ok().flatten().unwrap_or_default().into_iter();
    listed.filter(|tool| tools::McpTool::named(&tool.name).is_none()).map(described).collect()
}

/// Calls a tool that a client offers.
///
/// # Errors
/// Any [`Trouble`], for example if the server cannot be reached, or refuses the call.
pub(super) async fn call(
    asked: &ToolCallContext<'_>,
    name: &str,
    arguments: JsonObject,
) -> Result<CallToolResult, Trouble> {
    let params = json!({
        "tool": name,
        "arguments": Json::Object(arguments).to_string(),
        "project": project(asked).await,
        "agent": McpAgent::new(asked.context.client_info()).name,
    });
    let given_up = asked.context.ct.cancelled();
    let called: BroughtResult = asked.link.call_apart("call_tool", params, given_up).await?;
    let content = vec![ContentBlock::text(called.content)];
    Ok(match called.failed {
        false => CallToolResult::success(content),
        true => CallToolResult::error(content),
    })
}

/// Returns the folder of the agent's project; `None` if the agent works in no project.
async fn project(asked: &ToolCallContext<'_>) -> Option<String> {
    let project = asked.project(None).await.ok()?;
    project.is_project.then(|| project.directory())
}

fn described(tool: BroughtTool) -> Tool {
    let schema = match serde_json::from_str(&tool.schema) {
        Ok(Json::Object(schema)) => schema,
        _ => JsonObject::new(),
    };
    let hints = ToolAnnotations::new().read_only(tool.effect == "reads");
    let description = visible_lines(&tool.description).into_owned();
    Tool::new(tool.name, description, Arc::new(schema)).with_annotations(hints)
}
