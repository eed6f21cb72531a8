//! The tool `context`: the marked items of a project, or the changes since an earlier answer.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;

use super::ToolCallContext;
use crate::mcp::agent::McpAgent;
use crate::mcp::answer::Trouble;
use crate::mcp::marked::{Digests, MarkedVerdict, Now, named, rendered};
use crate::mcp::project::AgentProject;
use crate::mcp::push::{MarkedChange, PushShown, PushedSession, SentOnce};
use crate::wording::counted;

/// Default budget, in tokens.
const DEFAULT_BUDGET: u64 = 8_000;
/// Maximum number of answers that are remembered, to find the changes since one of them.
const ANSWERS_KEPT: usize = 64;
/// Maximum number of sessions of agents whose last push is remembered. The server keeps as many.
const SESSIONS_KEPT: usize = 1_000;
/// Maximum size, in bytes of JSON, of the items that the user sends with a prompt.
const MOST_SENT: usize = 30_000;

#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct ContextArguments {
    /// Name or folder of the project, if several are open.
    project: Option<String>,
    #[schemars(description = format!("Maximum number of tokens; {DEFAULT_BUDGET} by default."))]
    budget: Option<u64>,
    /// Revision of an earlier answer.
    since: Option<u64>,
}

impl ContextArguments {
    /// Returns the arguments that ask for all items of a project.
    pub(in crate::mcp) fn of(project: &str) -> Self {
        Self { project: Some(project.to_owned()), ..Self::default() }
    }
}

/// The latest answers that were given to one agent, or over HTTP to all agents.
#[derive(Default)]
pub(in crate::mcp) struct GivenAnswers {
    /// Makes the session ids under which answers are recorded as pushes. Differs from process to
    /// process.
    ids: RandomState,
    /// The answers, from the oldest to the newest.
    answers: Mutex<VecDeque<ContextAnswer>>,
    /// Number of the last push that was recorded for an answer, by agent and session, from the oldest
    /// to the newest.
    recorded: Mutex<VecDeque<((String, String), u64)>>,
}

struct ContextAnswer {
    revision: u64,
    project: String,
    budget: u64,
    /// Digests of the items when the answer was given.
    digests: Digests,
}

pub(in crate::mcp) async fn answer(
    asked: &ToolCallContext<'_>,
    given: ContextArguments,
) -> Result<String, Trouble> {
    let project = asked.project(given.project.as_deref()).await?;
    let key = (McpAgent::new(asked.context.client_info()).name, asked.given.session_id(&project));
    let received = Some(asked.given.recorded(&key));
    let session = PushedSession { agent: &key.0, id: &key.1, received, ..PushedSession::default() };
    let pushed = session.before(asked.link, &project, received).await?;
    let now = &pushed.now;
    let mut sent = pushed.sent(asked.link, MOST_SENT).await?;
    let budget = given.budget.unwrap_or(DEFAULT_BUDGET);
    let question = ContextQuestion { asked, project: &project, now, budget };
    let (answer, shown) = question.answer(given.since).await?;
    if !shown.ids.is_empty() || !sent.is_nothing() {
        match session.record(asked.link, &project, &pushed, shown, &sent).await {
            Ok(number) => asked.given.note_recorded(key, number),
            // The items were sent with another prompt meanwhile.
            Err(Trouble::Refused(_)) if !sent.is_nothing() => sent = SentOnce::default(),
            Err(trouble) => return Err(trouble),
        }
    }
    let sent = if sent.is_nothing() { String::new() } else { format!("\n{}", sent.text) };
    let late = "\nThe editor did not answer, so text that is not saved may be missing.\n";
    Ok(answer + &sent + if now.late_editors > 0 { late } else { "" })
}

/// Renders the items of a project again, within the budget of the latest answer about it, or else
/// the default budget. Returns the outcome of each item.
pub(super) async fn outcome(
    asked: &ToolCallContext<'_>,
    project: &AgentProject,
) -> Result<Vec<MarkedVerdict>, Trouble> {
    let managers = asked.layers(project).await?;
    let budget = asked.given.latest_budget(&project.key()).unwrap_or(DEFAULT_BUDGET);
    Ok(rendered(asked.link, &managers, None, budget).await?.report)
}

/// A question about the marked items of a project.
struct ContextQuestion<'a> {
    asked: &'a ToolCallContext<'a>,
    project: &'a AgentProject,
    now: &'a Now,
    budget: u64,
}

impl ContextQuestion<'_> {
    /// Returns an answer with all items, or with the changes since the revision `since`. Also
    /// returns the items that the answer shows.
    async fn answer(&self, since: Option<u64>) -> Result<(String, PushShown), Trouble> {
        let Some(since) = since else { return self.whole().await };
        if let Some(before) = self.asked.given.at(since, &self.project.key()) {
            return self.changes(since, &before).await;
        }
        let unknown = format!(
            "Revision {since} is no longer known here, so here is the whole context, not the changes.\n\n"
        );
        let (text, shown) = self.whole().await?;
        Ok((unknown + &text, shown))
    }

    async fn whole(&self) -> Result<(String, PushShown), Trouble> {
        let digests = &self.now.digests;
        let head = format!("revision {} · project {}", self.now.revision, self.project.label());
        if digests.is_empty() {
            self.keep();
            let nothing = "nothing is marked (0 tokens). The user marks items in Emacs; `search` \
                           finds sessions and memories.";
            return Ok((format!("{head} · {nothing}\n"), PushShown::default()));
        }
        let head = format!("{head} · {}", counted(digests.len() as u64, "item"));
        let (text, tokens) = self.rendered(&head, None).await?;
        Ok((text, PushShown { ids: digests.keys().cloned().collect(), tokens }))
    }

    async fn changes(&self, since: u64, before: &Digests) -> Result<(String, PushShown), Trouble> {
        let change = MarkedChange::between(before, &self.now.digests);
        if change.is_nothing() {
            let text = format!("unchanged since revision {since} (0 tokens of items)\n");
            return Ok((text, PushShown::default()));
        }
        let head = format!("revision {} · changes since {since}", self.now.revision);
        let removed = change.gone_text(usize::MAX);
        let ids = change.changed;
        if ids.is_empty() {
            self.keep();
            return Ok((format!("{head} · 0 tokens\n{removed}"), PushShown::default()));
        }
        let head = format!("{head} · {} new or changed", counted(ids.len() as u64, "item"));
        let (text, tokens) = self.rendered(&head, Some(&ids)).await?;
        Ok((text + &removed, PushShown { ids, tokens }))
    }

    /// Renders the items `ids`, or all items if that is `None`, below `head`. Also returns the
    /// number of tokens of the items.
    async fn rendered(&self, head: &str, ids: Option<&[String]>) -> Result<(String, u64), Trouble> {
        let shown = rendered(self.asked.link, &self.now.managers, ids, self.budget).await?;
        self.keep();
        let (tokens, cut) = (counted(shown.tokens, "token"), named(&shown.report));
        Ok((format!("{head} · {tokens}\n\n{}{cut}", shown.text), shown.tokens))
    }

    /// Remembers what the agent was given, to find the changes since then.
    fn keep(&self) {
        let (revision, digests) = (self.now.revision, self.now.digests.clone());
        let (project, budget) = (self.project.key(), self.budget);
        let mut answers = locked(&self.asked.given.answers);
        answers.push_back(ContextAnswer { revision, project, budget, digests });
        if answers.len() > ANSWERS_KEPT {
            answers.pop_front();
        }
    }
}

impl GivenAnswers {
    /// Returns the id of an agent's session in a project. It depends on the whole name of the folder,
    /// since other projects may have the same label.
    fn session_id(&self, project: &AgentProject) -> String {
        format!("mcp-{:08x}-{}", self.ids.hash_one(project.key()) as u32, project.label())
    }

    /// Returns the number of the last push that was recorded for a session; 0 if there is none.
    fn recorded(&self, key: &(String, String)) -> u64 {
        let recorded = locked(&self.recorded);
        recorded.iter().find(|(known, _)| known == key).map_or(0, |(_, number)| *number)
    }

    /// Remembers the number of a push, and forgets the sessions whose last push is the oldest.
    fn note_recorded(&self, key: (String, String), number: u64) {
        let mut recorded = locked(&self.recorded);
        recorded.retain(|(known, _)| *known != key);
        recorded.push_back((key, number));
        if recorded.len() > SESSIONS_KEPT {
            recorded.pop_front();
        }
    }

    /// Returns the digests of the items in the answer with this revision.
    fn at(&self, revision: u64, project: &str) -> Option<Digests> {
        let is_it = |it: &&ContextAnswer| it.revision == revision && it.project == project;
        locked(&self.answers).iter().rfind(is_it).map(|answer| answer.digests.clone())
    }

    fn latest_budget(&self, project: &str) -> Option<u64> {
        let is_it = |it: &&ContextAnswer| it.project == project;
        locked(&self.answers).iter().rfind(is_it).map(|answer| answer.budget)
    }
}

/// Locks a mutex of [`GivenAnswers`]. A panic cannot leave the data inconsistent: each change is one step.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_project_has_sessions_of_its_own_and_the_latest_are_remembered() {
        let temp = tempfile::tempdir().unwrap();
        let project = |parent: &str| {
            let folder = temp.path().join(parent).join("app");
            std::fs::create_dir_all(folder.join(".git")).unwrap();
            AgentProject::of(&folder)
        };
        let (given, a, b) = (GivenAnswers::default(), project("a"), project("b"));
        assert_eq!(a.label(), b.label());
        assert_eq!(given.session_id(&a), given.session_id(&AgentProject::of(Path::new(&a.key()))));
        assert_ne!(given.session_id(&a), given.session_id(&b));
        let key = |number: usize| (format!("agent-{number}"), given.session_id(&a));
        for number in 0..=SESSIONS_KEPT {
            given.note_recorded(key(number), number as u64);
            given.note_recorded(key(number), number as u64 + 1);
        }
        assert_eq!(locked(&given.recorded).len(), SESSIONS_KEPT);
        assert_eq!((given.recorded(&key(0)), given.recorded(&key(1))), (0, 2));
    }
}
