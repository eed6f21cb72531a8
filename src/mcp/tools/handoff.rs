//! The tool `handoff`: the facts of a session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolCallContext, sessions};
use crate::mcp::answer::{Trouble, shown};
use crate::mcp::project::AgentProject;
use crate::visible::visible_lines;
use crate::wording::counted;

/// Maximum size of the facts, in tokens.
const TOKENS: u64 = 3_000;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct HandoffArguments {
    /// Name or id of the session, also one of others, hub-N; the project's latest by default.
    pub(in crate::mcp) session: Option<String>,
}

#[derive(Deserialize)]
struct Handoff {
    session: String,
    text: String,
    messages: u64,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: HandoffArguments,
) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    of(asked, &project, given.session.as_deref()).await
}

/// Returns the facts of the session with this name or id, or, if `name` is `None`, of the session
/// that [`sessions::find`] chooses.
pub(in crate::mcp) async fn of(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    name: Option<&str>,
) -> Result<String, Trouble> {
    // With a project, such an id never names a session of this machine, which may be of another.
    let is_number = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u64>().is_ok()
    };
    let shared = name.filter(|name| name.strip_prefix("hub-").is_some_and(is_number));
    let id = match shared {
        Some(id) => id.to_owned(),
        None => sessions::find(asked, project, name).await?.id,
    };
    let params = json!({ "session": id, "max_tokens": TOKENS, "project": project.directory() });
    let never = std::future::pending();
    let exported: Handoff = asked.link.call_apart("export_session", params, never).await?;
    let messages = counted(exported.messages, "message");
    let name = shown(&exported.session);
    let head = format!("{id} \"{name}\" · {messages}; `search` finds what did not fit");
    let facts = if exported.text.is_empty() { "No facts to hand over." } else { &exported.text };
    let facts = visible_lines(facts);
    Ok(format!("{head}\n\n{facts}\n"))
}
