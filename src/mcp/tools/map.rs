//! The tool `map`: the files and definitions of the project that matter for a task.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{ToolCallContext, read};
use crate::mcp::answer::Trouble;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct MapArguments {
    /// The task or question, or an error with its trace.
    query: Option<String>,
    /// Files that you work on, from the project's folder. The map shows what belongs to them.
    files: Option<Vec<String>>,
    /// Maximum number of tokens.
    max_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct MapAnswer {
    text: String,
    tokens: u64,
    total_files: u64,
}

#[derive(Deserialize)]
struct FocusItem {
    metadata: Json,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: MapArguments,
) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    read::check_project(&project)?;
    // The agent has the marked files already.
    let managers = asked.layers(&project).await?;
    let params = json!({ "managers": managers, "brief": true });
    let items: Option<Vec<FocusItem>> = asked.link.call("list_items", params).await?;
    let marked = items.into_iter().flatten();
    let marked = marked.filter_map(|item| item.metadata["filename"].as_str().map(str::to_owned));
    let focus: Vec<String> = given.files.into_iter().flatten().chain(marked).collect();
    let params = json!({
        "project": project.directory(), "query": given.query, "focus": focus,
        "max_tokens": given.max_tokens,
    });
    let MapAnswer { text, tokens, total_files } = asked.link.call("repo_map", params).await?;
    Ok(format!("map of {total_files} files · {tokens} tokens\n\n{text}"))
}
