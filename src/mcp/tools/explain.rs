//! The tool `explain`: says which parts were left out, and why.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolCallContext, context, no_item, sessions};
use crate::mcp::answer::{Trouble, shown, sized};
use crate::mcp::argument::is_id;
use crate::mcp::marked::MarkedVerdict;
use crate::mcp::project::AgentProject;
use crate::wording::SentCount;
use crate::wording::counted;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ExplainArguments {
    /// An item (ctx-N) or a session (ses-N); by default, all items that `context` left out.
    id: Option<String>,
}

#[derive(Deserialize)]
struct ExplainedReport {
    reports: Option<Vec<ExplainedWindow>>,
}

#[derive(Deserialize)]
struct ExplainedWindow {
    strategy: String,
    max_tokens: u64,
    tokens_before: u64,
    tokens_after: u64,
    messages: SentCount,
    parts: Option<Vec<ExplainedPart>>,
}

#[derive(Deserialize)]
struct ExplainedPart {
    what: String,
    fate: String,
    reason: String,
    before: u64,
    after: u64,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: ExplainArguments,
) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    match given.id {
        Some(id) if is_id(&id, "ses-") => window(asked, &project, &id).await,
        Some(id) => item(asked, &project, &id).await,
        None => items(asked, &project).await,
    }
}

async fn item(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    id: &str,
) -> Result<String, Trouble> {
    let found = context::outcome(asked, project).await?.into_iter().find(|it| it.id == id);
    Ok(line(&found.ok_or_else(|| no_item(id))?) + "\n")
}

async fn items(asked: &ToolCallContext<'_>, project: &AgentProject) -> Result<String, Trouble> {
    let all = context::outcome(asked, project).await?;
    let left_out = all.iter().filter(|it| !it.is_kept());
    let left_out: Vec<String> = left_out.map(|it| format!("- {}", line(it))).collect();
    let items = counted(all.len() as u64, "item");
    if left_out.is_empty() {
        return Ok(format!("`context` shows {items} in full\n"));
    }
    let head = format!("`context` cuts or leaves out {} of {items}", left_out.len());
    Ok(sized(&head, &left_out.join("\n")))
}

fn line(it: &MarkedVerdict) -> String {
    format!("{} · {} · {}: {}", it.id, it.fate, counted(it.tokens, "token"), shown(&it.reason))
}

async fn window(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    id: &str,
) -> Result<String, Trouble> {
    let session = sessions::find(asked, project, Some(id)).await?;
    let params = json!({ "session": session.id, "reports": 1 });
    let ExplainedReport { reports } = asked.link.call("session_report", params).await?;
    let Some(window) = reports.into_iter().flatten().next() else {
        return Ok(format!("no window of {id} has been built since the server started\n"));
    };
    let parts = window.parts.into_iter().flatten().filter(|part| part.fate != "kept");
    let line = |part: ExplainedPart| {
        let ExplainedPart { what, fate, reason, before, after } = part;
        let (what, reason) = (shown(&what), shown(&reason));
        format!("- {what} · {fate} · {before} → {after} tokens: {reason}")
    };
    let lines: Vec<String> = parts.map(line).collect();
    let ExplainedWindow { strategy, max_tokens, tokens_before, tokens_after, messages, .. } =
        window;
    let head = format!(
        "{id} · {messages} · {tokens_after} of {tokens_before} tokens in a window of {max_tokens} \
         ({strategy})"
    );
    Ok(sized(&head, &lines.join("\n")))
}
