//! The tool `context`: the marked items of a project, or the changes since an earlier answer.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use super::Asked;
use crate::mcp::agent::agent_of;
use crate::mcp::answer::Trouble;
use crate::mcp::marked::{Digests, Now, Verdict, left_out, named, rendered};
use crate::mcp::project::Project;
use crate::mcp::push::{AgentSession, Sent, Shown};
use crate::wording::counted;

/// Default budget, in tokens.
const DEFAULT_BUDGET: u64 = 8_000;
/// Maximum number of answers that are remembered, to find the changes since one of them.
const ANSWERS_KEPT: usize = 64;
/// Maximum size, in bytes of JSON, of the items that the user sends with a prompt.
const MOST_SENT: usize = 30_000;

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

/// The latest answers that were given to one agent, or over HTTP to all agents.
pub(in crate::mcp) struct Given {
    /// Beginning of the ids of the sessions to which answers are recorded as pushes. It differs
    /// from process to process.
    name: String,
    /// The answers, from the oldest to the newest.
    answers: Mutex<VecDeque<Answer>>,
    /// Number of the last push that was recorded for an answer, by agent and session.
    recorded: Mutex<HashMap<(String, String), u64>>,
}

impl Default for Given {
    fn default() -> Self {
        let name = format!("mcp-{:08x}", RandomState::new().hash_one(()) as u32);
        Self { name, answers: Mutex::default(), recorded: Mutex::default() }
    }
}

#[derive(Clone)]
struct Answer {
    revision: u64,
    project: String,
    budget: u64,
    /// Digests of the items when the answer was given.
    digests: Digests,
    left_out: Vec<Verdict>,
}

pub(in crate::mcp) async fn answer(asked: &Asked<'_>, given: Arguments) -> Result<String, Trouble> {
    let project = asked.project(given.project.as_deref()).await?;
    let agent = agent_of(asked.context).name;
    let id = format!("{}-{}", asked.given.name, project.label());
    let received = asked.given.recorded().get(&(agent.clone(), id.clone())).copied().or(Some(0));
    let session = AgentSession {
        agent: &agent,
        id: &id,
        received,
        is_anew: false,
        compacted: None,
        recording: None,
        room: MOST_SENT,
    };
    let pushed = session.before(asked.link, &project, received).await?;
    let now = &pushed.now;
    let mut sent = pushed.sent(asked.link, MOST_SENT).await?;
    let (answer, shown) = answer_about(asked, &project, now, &given).await?;
    if !shown.ids.is_empty() || !sent.is_nothing() {
        match session.record(asked.link, &project, &pushed, shown, &sent).await {
            Ok(number) => drop(asked.given.recorded().insert((agent, id), number)),
            // The items were sent with another prompt meanwhile.
            Err(Trouble::Refused(_)) if !sent.is_nothing() => sent = Sent::default(),
            Err(trouble) => return Err(trouble),
        }
    }
    let sent = if sent.is_nothing() { String::new() } else { format!("\n{}", sent.text) };
    let late = "\nThe editor did not answer, so text that is not saved may be missing.\n";
    Ok(answer + &sent + if now.late_editors > 0 { late } else { "" })
}

/// Returns an answer with all items, or with the changes since the revision that `given` names.
/// Also returns the items that the answer shows.
async fn answer_about(
    asked: &Asked<'_>,
    project: &Project,
    now: &Now,
    given: &Arguments,
) -> Result<(String, Shown), Trouble> {
    let budget = given.budget.unwrap_or(DEFAULT_BUDGET);
    let before = given.since.map(|since| (since, asked.given.at(since, &project.key())));
    match before {
        Some((since, Some(before))) => changes(asked, project, now, budget, since, &before).await,
        Some((since, None)) => {
            let unknown = format!(
                "Revision {since} is no longer known here, so here is the whole context, not the changes.\n\n"
            );
            let (text, shown) = whole(asked, project, now, budget).await?;
            Ok((unknown + &text, shown))
        }
        None => whole(asked, project, now, budget).await,
    }
}

/// Renders the items of a project again, within the budget of the latest answer about it, or else
/// the default budget. Returns the outcome of each item.
pub(super) async fn outcome(asked: &Asked<'_>, project: &Project) -> Result<Vec<Verdict>, Trouble> {
    let managers = asked.layers(project).await?;
    let latest = asked.given.latest(&project.key());
    let budget = latest.as_ref().map_or(DEFAULT_BUDGET, |answer| answer.budget);
    Ok(rendered(asked.link, &managers, None, budget).await?.report)
}

async fn whole(
    asked: &Asked<'_>,
    project: &Project,
    now: &Now,
    budget: u64,
) -> Result<(String, Shown), Trouble> {
    let head = format!("revision {} · project {}", now.revision, project.label());
    if now.digests.is_empty() {
        asked.given.keep(Answer::at(now, project, budget, Vec::new()));
        let nothing = "nothing is marked (0 tokens). The user marks items in Emacs; `search` finds \
                       sessions and memories.";
        return Ok((format!("{head} · {nothing}\n"), Shown::default()));
    }
    let rendered = rendered(asked.link, &now.managers, None, budget).await?;
    let left_out = left_out(&rendered.report);
    let items = counted(now.digests.len() as u64, "item");
    let text = format!(
        "{head} · {items} · {}\n\n{}{}",
        counted(rendered.tokens, "token"),
        rendered.text,
        named(&left_out)
    );
    asked.given.keep(Answer::at(now, project, budget, left_out));
    Ok((text, Shown { ids: now.digests.keys().cloned().collect(), tokens: rendered.tokens }))
}

async fn changes(
    asked: &Asked<'_>,
    project: &Project,
    now: &Now,
    budget: u64,
    since: u64,
    before: &Answer,
) -> Result<(String, Shown), Trouble> {
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
        let text = format!("unchanged since revision {since} (0 tokens of items)\n");
        return Ok((text, Shown::default()));
    }
    let head = format!("revision {} · changes since {since}", now.revision);
    let removed = match gone.is_empty() {
        true => String::new(),
        false => format!("\nNo longer marked: {}\n", gone.join(", ")),
    };
    if changed.is_empty() {
        asked.given.keep(Answer::at(now, project, budget, before.left_out.clone()));
        return Ok((format!("{head} · 0 tokens\n{removed}"), Shown::default()));
    }
    let rendered = rendered(asked.link, &now.managers, Some(&changed), budget).await?;
    let left_out = left_out(&rendered.report);
    let text = format!(
        "{head} · {} new or changed · {}\n\n{}{}{removed}",
        counted(changed.len() as u64, "item"),
        counted(rendered.tokens, "token"),
        rendered.text,
        named(&left_out)
    );
    asked.given.keep(Answer::at(now, project, budget, left_out));
    let ids = changed.into_iter().cloned().collect();
    Ok((text, Shown { ids, tokens: rendered.tokens }))
}

impl Answer {
    fn at(now: &Now, project: &Project, budget: u64, left_out: Vec<Verdict>) -> Self {
        let (revision, digests) = (now.revision, now.digests.clone());
        Self { revision, project: project.key(), budget, digests, left_out }
    }
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

    /// Locks the answers. A panic cannot leave the answers inconsistent: each change is one step.
    fn answers(&self) -> MutexGuard<'_, VecDeque<Answer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the numbers of the recorded pushes. A panic cannot leave the numbers inconsistent:
    /// each change is one step.
    fn recorded(&self) -> MutexGuard<'_, HashMap<(String, String), u64>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
