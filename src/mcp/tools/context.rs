//! The tool `context`: the marked items of a project, or the changes since an earlier answer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Asked, edits, layers};
use crate::mcp::answer::{Trouble, count};
use crate::mcp::link::Link;
use crate::mcp::project::Project;

/// Default budget, in tokens.
const DEFAULT_BUDGET: u64 = 8_000;
/// Number of answers that are remembered, to find the changes since then.
const ANSWERS_KEPT: usize = 64;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct Arguments {
    /// Name or folder of the project, if several are open.
    project: Option<String>,
    /// Maximum number of tokens; 8000 by default.
    budget: Option<u64>,
    /// Revision of an earlier answer.
    since: Option<u64>,
}

impl Arguments {
    /// Returns the arguments that ask for all items of a project.
    pub(in crate::mcp) fn of(project: &str) -> Self {
        Self { project: Some(project.to_owned()), ..Self::default() }
    }
}

/// The answers that this agent was given, newest last.
#[derive(Default)]
pub(in crate::mcp) struct Given(Mutex<VecDeque<Answer>>);

#[derive(Clone)]
struct Answer {
    revision: u64,
    project: String,
    budget: u64,
    /// Hashes of the items at that time, by the items' ids.
    digests: HashMap<String, u64>,
    left_out: Vec<Verdict>,
}

/// The outcome of rendering an item.
#[derive(Deserialize, Clone)]
pub(in crate::mcp) struct Verdict {
    pub(super) id: String,
    pub(super) fate: String,
    pub(super) tokens: u64,
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
    content: String,
    metadata: Json,
    covered_by: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::mcp) struct Rendered {
    pub(in crate::mcp) text: String,
    tokens: u64,
    pub(in crate::mcp) report: Vec<Verdict>,
}

/// The items of a project at a revision.
pub(in crate::mcp) struct Now {
    pub(in crate::mcp) managers: Vec<String>,
    pub(in crate::mcp) digests: HashMap<String, u64>,
    revision: u64,
    /// True if an editor did not send its changes in time.
    is_late: bool,
}

pub(in crate::mcp) async fn answer(asked: &Asked<'_>, given: Arguments) -> Result<String, Trouble> {
    let project = asked.project(given.project.as_deref()).await?;
    let budget = given.budget.unwrap_or(DEFAULT_BUDGET);
    let now = Now::of(asked.link, &project).await?;
    let before = given.since.map(|since| (since, asked.given.at(since, &project.key())));
    let answer = match before {
        Some((since, Some(before))) => changes(asked, &project, &now, budget, since, &before).await,
        Some((since, None)) => {
            let unknown =
                format!("Revision {since} is not known here any more, so these are all items.\n\n");
            whole(asked, &project, &now, budget).await.map(|text| unknown + &text)
        }
        None => whole(asked, &project, &now, budget).await,
    }?;
    let late = "\nThe editor did not answer, so text that is not saved may be missing.\n";
    Ok(answer + if now.is_late { late } else { "" })
}

/// Renders the items of a project again, within the budget of the latest answer, and returns the
/// outcome of each.
pub(super) async fn outcome(asked: &Asked<'_>, project: &Project) -> Result<Vec<Verdict>, Trouble> {
    let (managers, _) = asked.layers(project).await?;
    let latest = asked.given.latest(&project.key());
    let budget = latest.as_ref().map_or(DEFAULT_BUDGET, |answer| answer.budget);
    Ok(rendered(asked.link, &managers, None, budget).await?.report)
}

async fn whole(
    asked: &Asked<'_>,
    project: &Project,
    now: &Now,
    budget: u64,
) -> Result<String, Trouble> {
    let head = format!("revision {} · project {}", now.revision, project.label());
    if now.digests.is_empty() {
        asked.given.keep(now.answer(project, budget, Vec::new()));
        return Ok(format!(
            "{head} · nothing is marked (0 tokens). The user marks items in Emacs; `search` finds \
             sessions and memories.\n"
        ));
    }
    let rendered = rendered(asked.link, &now.managers, None, budget).await?;
    let left_out = left_out(&rendered.report);
    let items = count(now.digests.len(), "item");
    let text = format!(
        "{head} · {items} · {} tokens\n\n{}{}",
        rendered.tokens,
        rendered.text,
        named(&left_out)
    );
    asked.given.keep(now.answer(project, budget, left_out));
    Ok(text)
}

async fn changes(
    asked: &Asked<'_>,
    project: &Project,
    now: &Now,
    budget: u64,
    since: u64,
    before: &Answer,
) -> Result<String, Trouble> {
    let mut changed: Vec<&String> = now
        .digests
        .iter()
        .filter(|(id, digest)| before.digests.get(*id) != Some(*digest))
        .map(|(id, _)| id)
        .collect();
    changed.sort();
    let mut gone: Vec<&str> = before.digests.keys().map(String::as_str).collect();
    gone.retain(|id| !now.digests.contains_key(*id));
    gone.sort_unstable();
    if changed.is_empty() && gone.is_empty() {
        return Ok(format!("unchanged since {since} (0 tokens of items)\n"));
    }
    let head = format!("revision {} · changes since {since}", now.revision);
    let removed = match gone.is_empty() {
        true => String::new(),
        false => format!("\nNo longer marked: {}\n", gone.join(", ")),
    };
    if changed.is_empty() {
        asked.given.keep(now.answer(project, budget, before.left_out.clone()));
        return Ok(format!("{head} · 0 tokens\n{removed}"));
    }
    let rendered = rendered(asked.link, &now.managers, Some(&changed), budget).await?;
    let left_out = left_out(&rendered.report);
    let text = format!(
        "{head} · {} new or changed · {} tokens\n\n{}{}{removed}",
        count(changed.len(), "item"),
        rendered.tokens,
        rendered.text,
        named(&left_out)
    );
    asked.given.keep(now.answer(project, budget, left_out));
    Ok(text)
}

pub(in crate::mcp) async fn rendered(
    link: &Link,
    managers: &[String],
    ids: Option<&[&String]>,
    budget: u64,
) -> Result<Rendered, Trouble> {
    let mut params = json!({ "managers": managers, "max_tokens": budget });
    if let Some(ids) = ids {
        params["ids"] = json!(ids);
    }
    link.call("render_items", params).await
}

pub(in crate::mcp) fn left_out(report: &[Verdict]) -> Vec<Verdict> {
    report.iter().filter(|verdict| verdict.fate != "kept").cloned().collect()
}

/// Names the items that were left out or cut, in one line; empty if there are none.
pub(in crate::mcp) fn named(left_out: &[Verdict]) -> String {
    let each: Vec<_> =
        left_out.iter().map(|verdict| format!("{} ({})", verdict.id, verdict.fate)).collect();
    match each.is_empty() {
        true => String::new(),
        false => {
            format!("\nNot whole: {}. `explain` says why; `read` shows an item.\n", each.join(", "))
        }
    }
}

impl Now {
    /// Asks editors for their changes and lists the project's items, which brings live items up to
    /// date with their files. Both may change the revision, so it is read last.
    pub(in crate::mcp) async fn of(link: &Link, project: &Project) -> Result<Self, Trouble> {
        let is_late = edits(link).await?;
        let (managers, _) = layers(link, project).await?;
        let items: Option<Vec<Listed>> =
            link.call("list_items", json!({ "managers": managers })).await?;
        let (managers, revision) = layers(link, project).await?;
        let shown = items.into_iter().flatten().filter(|item| item.covered_by.is_none());
        let digests = shown.map(|item| (item.id.clone(), digest(&item))).collect();
        Ok(Self { managers, digests, revision, is_late })
    }

    fn answer(&self, project: &Project, budget: u64, left_out: Vec<Verdict>) -> Answer {
        let (revision, digests) = (self.revision, self.digests.clone());
        Answer { revision, project: project.key(), budget, digests, left_out }
    }
}

/// Returns a hash of the parts of an item that a model sees: the text, the place and the staleness.
fn digest(item: &Listed) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(item.content.as_bytes());
    for member in ["filename", "start_line", "end_line", "stale"] {
        hasher.update(b"\0").update(item.metadata[member].to_string().as_bytes());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

impl Given {
    fn at(&self, revision: u64, project: &str) -> Option<Answer> {
        let is_it = |it: &&Answer| it.revision == revision && it.project == project;
        self.answers().iter().rev().find(is_it).cloned()
    }

    fn latest(&self, project: &str) -> Option<Answer> {
        self.answers().iter().rev().find(|answer| answer.project == project).cloned()
    }

    fn keep(&self, answer: Answer) {
        let mut answers = self.answers();
        answers.push_back(answer);
        if answers.len() > ANSWERS_KEPT {
            answers.pop_front();
        }
    }

    /// Locks the answers. A panic cannot leave them inconsistent: each change is one step.
    fn answers(&self) -> MutexGuard<'_, VecDeque<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
