//! The push to a session of an agent: what changed since the last push that the agent received.
//!
//! The server records a push before the agent gets it, and keeps the record before that one. The
//! caller says which push the agent received last. So a push that was recorded and then lost is
//! made again, and none is made twice, wherever the server or the caller is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::answer::{Trouble, count};
use super::link::{Dial, Link};
use super::project::Project;
use super::tools::context::{Now, left_out, named, rendered};
use crate::visible::visible_lines;

/// Maximum number of characters of a push, as JSON. Claude Code cuts off more than 10,000.
const LONGEST: usize = 9_700;
/// Maximum size of what is given back after a compaction, in tokens.
const GIVEN_BACK: u64 = 1_200;
/// Number of budgets that are tried for the items.
const TRIES: u32 = 4;

/// A session of an agent.
pub(crate) struct AgentSession<'a> {
    /// Name of the agent.
    pub(crate) agent: &'a str,
    /// Id that the agent gives the session.
    pub(crate) id: &'a str,
    /// Number of the last push that the agent received, if known.
    pub(crate) received: Option<u64>,
    /// True if the agent has lost what it was given.
    pub(crate) is_anew: bool,
    /// Transcript of the session whose facts are given back.
    pub(crate) compacted: Option<&'a Path>,
}

/// A text for an agent.
pub(crate) struct Push {
    /// Number of the push; `None` if there is nothing to record.
    pub(crate) number: Option<u64>,
    /// The text.
    pub(crate) text: String,
}

#[derive(Serialize, Deserialize)]
struct Item {
    id: String,
    digest: String,
}

#[derive(Deserialize)]
struct Pushed {
    number: u64,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Recorded {
    number: u64,
}

#[derive(Deserialize)]
struct Imported {
    files: Vec<ImportedFile>,
}

#[derive(Deserialize)]
struct ImportedFile {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Ledger {
    ledger: String,
}

impl AgentSession<'_> {
    /// Records what changed in the project of a folder since the last push, and returns it. Returns
    /// `None` if nothing changed. If the server ends meanwhile, tries once more.
    ///
    /// # Errors
    /// The reason in words, if the server does not answer or cannot be reached.
    pub(crate) async fn push(
        &self,
        dial: impl Dial,
        folder: &Path,
    ) -> Result<Option<Push>, String> {
        let link = Link::new(dial);
        let project = Project::of(folder);
        let pushed = match self.try_push(&link, &project).await {
            Err(Trouble::Lost) => self.try_push(&link, &project).await,
            pushed => pushed,
        };
        pushed.map_err(|trouble| trouble.to_string())
    }

    async fn try_push(&self, link: &Link, project: &Project) -> Result<Option<Push>, Trouble> {
        let text = self.facts(link).await.unwrap_or_default();
        let asked = json!({
            "agent": self.agent, "agent_session": self.id, "number": self.received,
        });
        let before: Pushed = link.call("pushed_context", asked).await?;
        let now = Now::of(link, project).await?;
        let change = Change::between(self.is_anew, &before.items, &now);
        let items = match change.is_nothing() {
            true => String::new(),
            false => change.text(link, project, &now, LONGEST - length(&text)).await?,
        };
        let text = visible_lines(&(text + &items)).into_owned();
        let is_recorded = change.now != change.before;
        if text.is_empty() && !is_recorded {
            return Ok(None);
        }
        let number = match is_recorded || self.is_anew {
            true => Some(self.record(link, before.number, &change.now).await?),
            false => None,
        };
        Ok(Some(Push { number, text }))
    }

    async fn record(
        &self,
        link: &Link,
        after: u64,
        now: &BTreeMap<String, String>,
    ) -> Result<u64, Trouble> {
        let each = now.iter().map(|(id, digest)| Item { id: id.clone(), digest: digest.clone() });
        let items: Vec<Item> = each.collect();
        let record = json!({
            "agent": self.agent, "agent_session": self.id, "after": after, "items": items,
        });
        let Recorded { number } = link.call("record_push", record).await?;
        Ok(number)
    }

    /// Returns the facts of a session that was compacted. Without them, the items are still worth
    /// giving.
    async fn facts(&self, link: &Link) -> Option<String> {
        let transcript = self.compacted?.to_str()?;
        let imported: Result<Imported, Trouble> =
            link.call("import_sessions", json!({ "paths": [transcript] })).await;
        let session = imported.ok()?.files.into_iter().next()?.id?;
        let mut tokens = GIVEN_BACK;
        for _ in 0..TRIES {
            let asked = json!({ "session": session, "max_tokens": tokens });
            let Ledger { ledger } = link.call("session_ledger", asked).await.ok()?;
            let text = format!(
                "Facts of this session from before its compaction, as Contexture recorded them:\n\
                 \n{ledger}\n\n"
            );
            if !ledger.is_empty() && length(&text) <= LONGEST * 2 / 3 {
                return Some(text);
            }
            tokens = tokens * 2 / 3;
        }
        None
    }
}

/// The difference between what an agent has and what is marked now.
struct Change {
    before: BTreeMap<String, String>,
    now: BTreeMap<String, String>,
    /// Items that are new or changed.
    changed: BTreeSet<String>,
    /// Items that are no longer marked.
    gone: Vec<String>,
}

impl Change {
    fn between(is_anew: bool, had: &[Item], now: &Now) -> Self {
        let before: BTreeMap<String, String> =
            had.iter().map(|item| (item.id.clone(), item.digest.clone())).collect();
        let now: BTreeMap<String, String> =
            now.digests.iter().map(|(id, digest)| (id.clone(), format!("{digest:016x}"))).collect();
        let is_known = |id: &String, digest: &String| {
            !is_anew && before.get(id).is_some_and(|it| it == digest)
        };
        let changed =
            now.iter().filter(|(id, digest)| !is_known(id, digest)).map(|(id, _)| id.clone());
        let changed = changed.collect();
        let mut gone: Vec<String> = before.keys().cloned().collect();
        gone.retain(|id| !is_anew && !now.contains_key(id));
        Self { before, now, changed, gone }
    }

    fn is_nothing(&self) -> bool {
        self.changed.is_empty() && self.gone.is_empty()
    }

    /// Returns the change as a text of at most `room` characters of JSON. If the items do not fit,
    /// they are cut, and the text says how to get all.
    async fn text(
        &self,
        link: &Link,
        project: &Project,
        now: &Now,
        room: usize,
    ) -> Result<String, Trouble> {
        let gone = self.gone_text();
        let head = format!("Marked by the user in the editor for {}", project.label());
        if self.changed.is_empty() {
            return Ok(format!("{head}:\n{gone}"));
        }
        let ids: Vec<&String> = self.changed.iter().collect();
        let mut budget = room as u64 / 3;
        for _ in 0..TRIES {
            let shown = rendered(link, &now.managers, Some(&ids), budget).await;
            budget /= 2;
            let Ok(shown) = shown else { continue };
            let cut = named(&left_out(&shown.report));
            let text = format!("{head}, new or changed:\n\n{}{cut}{gone}", shown.text);
            if length(&text) <= room {
                return Ok(text);
            }
        }
        let items = count(ids.len(), "item");
        Ok(format!("{head}: {items} new or changed, too long to show; call the tool `context`.\n"))
    }

    fn gone_text(&self) -> String {
        let named: Vec<&str> = self.gone.iter().take(100).map(String::as_str).collect();
        match (named.is_empty(), self.gone.len() - named.len()) {
            (true, _) => String::new(),
            (false, 0) => format!("\nNo longer marked: {}\n", named.join(", ")),
            (false, more) => format!("\nNo longer marked: {}, {more} more\n", named.join(", ")),
        }
    }
}

/// Returns the number of characters of a text as it goes out: visible, and as JSON.
fn length(text: &str) -> usize {
    Json::from(&*visible_lines(text)).to_string().chars().count()
}
