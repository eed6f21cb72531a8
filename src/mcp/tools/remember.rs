//! The tool `remember`, the only one of these tools that stores what a model writes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::ToolCallContext;
use crate::mcp::answer::Trouble;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct RememberArguments {
    /// The fact.
    text: String,
    /// True if the fact holds for all projects.
    everywhere: Option<bool>,
}

#[derive(Deserialize)]
struct StoredMemory {
    id: String,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: RememberArguments,
) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    let (params, place) = match given.everywhere.unwrap_or(false) {
        true => {
            (json!({ "content": given.text, "scope": "everywhere" }), "all projects".to_owned())
        }
        false => {
            let params =
                json!({ "content": given.text, "scope": "project", "project": project.key() });
            (params, format!("project {}", project.label()))
        }
    };
    let StoredMemory { id } = asked.link.call("remember", params).await?;
    Ok(format!("remembered as {id} for {place}\n"))
}
