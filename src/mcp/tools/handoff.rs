//! The tool `handoff`: the facts of a session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Asked, sessions};
use crate::mcp::answer::{Trouble, shown};
use crate::mcp::project::Project;
use crate::visible::visible_lines;
use crate::wording::counted;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct Arguments {
    /// Name or id of the session; the project's latest by default.
    pub(in crate::mcp) session: Option<String>,
}

#[derive(Deserialize)]
struct Ledger {
    ledger: String,
    messages: usize,
    tokens: u64,
    left_out: u64,
}

pub(in crate::mcp) async fn answer(asked: &Asked<'_>, given: Arguments) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    of(asked, &project, given.session.as_deref()).await
}

/// Returns the facts of the session with this name or id, or, if `name` is `None`, of the session
/// that [`sessions::find`] chooses.
pub(in crate::mcp) async fn of(
    asked: &Asked<'_>,
    project: &Project,
    name: Option<&str>,
) -> Result<String, Trouble> {
    let session = sessions::find(asked, project, name).await?;
    let params = json!({ "session": session.id });
    let ledger: Ledger = asked.link.call("session_ledger", params).await?;
    let left_out = match ledger.left_out {
        0 => String::new(),
        1 => " · 1 fact did not fit; `search` finds it".to_owned(),
        more => format!(" · {more} facts did not fit; `search` finds them"),
    };
    let messages = counted(ledger.messages as u64, "message");
    let (id, name) = (session.id, shown(&session.session));
    let tokens = counted(ledger.tokens, "token");
    let head = format!("{id} \"{name}\" · {messages} · {tokens}{left_out}");
    let facts = if ledger.ledger.is_empty() { "No facts to hand over." } else { &ledger.ledger };
    let facts = visible_lines(facts);
    Ok(format!("{head}\n\n{facts}\n"))
}
