//! The sessions that an agent may see: those of its project, and those without a project.

use serde::Deserialize;
use serde_json::json;

use super::ToolCallContext;
use crate::mcp::answer::Trouble;
use crate::mcp::project::AgentProject;

#[derive(Deserialize)]
pub(super) struct SessionLine {
    pub(super) id: String,
    pub(super) session: String,
    project: Option<String>,
    part_of: Option<String>,
}

/// Returns the sessions that the agent may see: those of its project, then those without a project,
/// each the one with the latest message first.
pub(super) async fn of(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
) -> Result<Vec<SessionLine>, Trouble> {
    let fields = ["id", "session", "project", "part_of"];
    let ours = json!({ "fields": fields, "project": project.directory() });
    let ours: Option<Vec<SessionLine>> = asked.link.call("list_sessions", ours).await?;
    let all: Option<Vec<SessionLine>> =
        asked.link.call("list_sessions", json!({ "fields": fields })).await?;
    let nobodys = all.into_iter().flatten().filter(|session| session.project.is_none());
    Ok(ours.into_iter().flatten().chain(nobodys).collect())
}

/// Returns the session with this name or id. Without a name, returns the project's latest session,
/// or, if the project has none, the latest session without a project. The sessions of subagents are
/// only found by their names.
pub(super) async fn find(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
    name: Option<&str>,
) -> Result<SessionLine, Trouble> {
    let sessions = of(asked, project).await?;
    let found = match name {
        Some(name) => sessions.into_iter().find(|it| it.id == name || it.session == name),
        None => sessions.into_iter().find(|session| session.part_of.is_none()),
    };
    found.ok_or_else(|| match name {
        Some(name) => Trouble::Wrong(format!(
            "no session {name:?} in this project; `search` finds sessions by their words"
        )),
        None => Trouble::Wrong("this project has no sessions yet".to_owned()),
    })
}
