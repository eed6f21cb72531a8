//! The sessions that an agent may see: those of its project, and those without a project.

use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::Asked;
use crate::mcp::answer::Trouble;
use crate::mcp::project::Project;

#[derive(Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) session: String,
    project: Option<String>,
}

/// Returns the sessions that the agent may see, the one with the latest message first.
pub(super) async fn of(asked: &Asked<'_>, project: &Project) -> Result<Vec<Session>, Trouble> {
    let fields = json!({ "fields": ["id", "session", "project"] });
    let all: Option<Vec<Session>> = asked.link.call("list_sessions", fields).await?;
    let folder = project.directory();
    let is_ours = |session: &Session| {
        // As paths, names with and without a slash at their end are equal.
        session.project.as_deref().is_none_or(|name| Path::new(name) == Path::new(&folder))
    };
    Ok(all.into_iter().flatten().filter(is_ours).collect())
}

/// Returns the session with this name or id. Without a name, returns the project's latest session,
/// or, if the project has none, the latest session without a project.
pub(super) async fn find(
    asked: &Asked<'_>,
    project: &Project,
    name: Option<&str>,
) -> Result<Session, Trouble> {
    let sessions = of(asked, project).await?;
    let found = match name {
        Some(name) => sessions.into_iter().find(|it| it.id == name || it.session == name),
        None => {
            let latest = sessions.iter().position(|session| session.project.is_some());
            sessions.into_iter().nth(latest.unwrap_or(0))
        }
    };
    found.ok_or_else(|| match name {
        Some(name) => Trouble::Wrong(format!(
            "no session {name:?} in this project; `search` finds sessions by their words"
        )),
        None => Trouble::Wrong("this project has no sessions yet".to_owned()),
    })
}
