//! The tool `search`: excerpts of items, messages and memories.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ToolCallContext, sessions};
use crate::mcp::answer::{Trouble, shown, sized};
use crate::mcp::project::AgentProject;
use crate::visible::shortened;
use crate::wording::{counted, span};

/// Default number of hits of each kind.
const DEFAULT_HITS: usize = 8;
/// Maximum length of a memory in an answer, in bytes. A longer one is shown without its middle.
const LONGEST_MEMORY: usize = 2 << 10;
/// Maximum number of hits of each kind.
const MAX_HITS: usize = 50;
/// Number of hits in sessions to ask for. The number is large because hits in sessions of other
/// projects are left out.
const LOOKED_AT: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct SearchArguments {
    /// Words to search for.
    query: String,
    /// One of items, session, memory; all by default.
    #[serde(rename = "in")]
    #[schemars(extend("enum" = ["items", "session", "memory"]))]
    within: Option<String>,
    #[schemars(description = format!("Maximum number of hits of each kind; {DEFAULT_HITS} by default."))]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct ItemHit {
    id: String,
    metadata: Option<FoundAt>,
    tokens: u64,
    excerpt: String,
}

/// The place of an item.
#[derive(Deserialize, Default)]
struct FoundAt {
    filename: Option<String>,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

#[derive(Deserialize)]
struct SessionHit {
    session: String,
    id: String,
    message: Option<String>,
    role: Option<String>,
    snippet: String,
    machine: Option<String>,
    shared_by: Option<String>,
}

#[derive(Deserialize)]
struct FoundMemories {
    memories: Option<Vec<FoundMemory>>,
}

#[derive(Deserialize)]
struct FoundMemory {
    id: String,
    kind: String,
    content: String,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: SearchArguments,
) -> Result<String, Trouble> {
    let project = asked.project(None).await?;
    let limit = given.limit.unwrap_or(DEFAULT_HITS).min(MAX_HITS);
    let wants = match given.within.as_deref() {
        None => ["items", "session", "memory"].to_vec(),
        Some(one @ ("items" | "session" | "memory")) => vec![one],
        Some(other) => {
            let message = format!("`in` must be items, session or memory, got {other:?}");
            return Err(Trouble::Wrong(message));
        }
    };
    if given.query.trim().is_empty() {
        return Err(Trouble::Wrong("`query` must contain a word to search for".to_owned()));
    }
    let search = ProjectSearch { asked, project, query: given.query, limit };
    let (mut counts, mut lines) = (Vec::new(), Vec::new());
    let asks_others = wants != ["items"];
    let of_others = async { if asks_others { search.of_others().await } else { Vec::new() } };
    let own = async {
        for kind in wants {
            let (noun, found) = match kind {
                "items" => ("item", search.items().await?),
                "session" => ("message", search.messages().await?),
                _ => ("memory", search.memories().await?),
            };
            counts.push(counted(found.len() as u64, noun));
            lines.extend(found);
        }
        Ok::<_, Trouble>(())
    };
    let (own, of_others) = tokio::join!(own, of_others);
    own?;
    if !of_others.is_empty() {
        counts.push(format!("{} of others", of_others.len()));
        lines.extend(of_others);
    }
    Ok(sized(&counts.join(", "), &lines.join("\n")))
}

impl SessionHit {
    fn line(self) -> String {
        let from = match (self.shared_by, self.machine) {
            (Some(author), Some(machine)) => {
                format!(" of {} at {}", shown(&author), shown(&machine))
            }
            (None, Some(machine)) => format!(" from {}", shown(&machine)),
            _ => String::new(),
        };
        let (session, snippet) = (shown(&self.session), shown(&self.snippet));
        match (self.message, self.role) {
            (Some(message), role) => {
                let role = role.unwrap_or_default();
                format!("- {}/{message} · {role} in \"{session}\"{from}: {snippet}", self.id)
            }
            (None, _) if self.id.starts_with("hub-") => {
                format!("- {} · memory{from}: {snippet}", self.id)
            }
            (None, _) => format!("- {} · session \"{session}\"{from}", self.id),
        }
    }
}

/// A search in the agent's project.
struct ProjectSearch<'a> {
    asked: &'a ToolCallContext<'a>,
    project: AgentProject,
    query: String,
    limit: usize,
}

impl ProjectSearch<'_> {
    async fn items(&self) -> Result<Vec<String>, Trouble> {
        let managers = self.asked.layers(&self.project).await?;
        let params = json!({ "query": self.query, "managers": managers, "limit": self.limit });
        let hits: Option<Vec<ItemHit>> = self.asked.link.call("list_items", params).await?;
        let line = |hit: ItemHit| {
            let at = hit.metadata.unwrap_or_default();
            let place = match (at.filename.as_deref(), at.start_line, at.end_line) {
                (Some(name), Some(start), Some(end)) => {
                    format!(" · {}:{}", self.project.relative(name), span(start, end))
                }
                (Some(name), ..) => format!(" · {}", self.project.relative(name)),
                _ => String::new(),
            };
            let tokens = counted(hit.tokens, "token");
            format!("- {}{place} · {tokens}: {}", hit.id, shown(&hit.excerpt))
        };
        Ok(hits.into_iter().flatten().map(line).collect())
    }

    async fn messages(&self) -> Result<Vec<String>, Trouble> {
        let params = json!({ "query": self.query, "limit": LOOKED_AT });
        let hits: Option<Vec<SessionHit>> = self.asked.link.call("list_sessions", params).await?;
        let sessions = sessions::of(self.asked, &self.project).await?;
        let ours: HashSet<String> = sessions.into_iter().map(|session| session.id).collect();
        let hits = hits.into_iter().flatten().filter(|hit| ours.contains(&hit.id));
        Ok(hits.take(self.limit).map(SessionHit::line).collect())
    }

    /// Asks the hub what others share of the project. If the hub cannot be reached, the list has a
    /// line about that.
    async fn of_others(&self) -> Vec<String> {
        let project = self.project.directory();
        let params = json!({
            "query": self.query, "project": project, "limit": self.limit, "hub": true,
        });
        let link = &self.asked.link;
        let never = std::future::pending();
        let hits = link.call_apart::<Option<Vec<SessionHit>>>("list_sessions", params, never).await;
        match hits {
            Ok(hits) => hits.into_iter().flatten().map(SessionHit::line).collect(),
            Err(Trouble::Refused(why)) if why.contains("the hub") => {
                vec![format!("- {}", shown(&why))]
            }
            Err(_) => Vec::new(),
        }
    }

    async fn memories(&self) -> Result<Vec<String>, Trouble> {
        let params = json!({
            "query": self.query, "project": self.project.key(), "limit": self.limit,
            "strengthen": false,
        });
        let found: FoundMemories = self.asked.link.call("ground_query", params).await?;
        let line = |memory: FoundMemory| {
            let content = shortened(&memory.content, LONGEST_MEMORY);
            format!("- {} · {}: {}", memory.id, shown(&memory.kind), shown(&content))
        };
        Ok(found.memories.into_iter().flatten().map(line).collect())
    }
}
