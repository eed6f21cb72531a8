//! Stored sessions: messages, states of their views, checkpoints, and the usage of their windows.
//!
//! Plain data. Sessions are identified by their numbers; the store does not read their settings
//! and states.

use serde::Serialize;

pub use super::origin::{RecordedOrigin, last_said};
use crate::context::place;
use crate::session::message::{Phase, Role};

/// Minimum number of windows whose usage is kept; the sums cover all windows.
pub const USAGE_KEPT: u64 = 10_000;

/// A session to be created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewSession {
    /// Name of the session, unique among those that are not deleted.
    pub name: String,
    /// Context manager whose items the session shows; empty for the session's own manager, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// Folder of the session's project, as a client named it, if any.
    pub project: Option<String>,
    /// Project that only a file, a recording or another machine names; see [`SessionRow::told`].
    pub told: Option<String>,
    /// Settings of the session, as JSON for the engine.
    pub settings: String,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// The session that this session continues, if any, and the number of shared messages. Shared
    /// messages are not copied: they are the first messages of both sessions.
    pub parent: Option<(u64, u64)>,
    /// File that the session is imported from, if any.
    pub source: Option<String>,
}

/// A message without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unembedded {
    /// Number of the session that the message's row belongs to; for a message shared by forks, the
    /// session in which it was said.
    pub session: u64,
    /// Number of the message.
    pub number: u64,
    /// Text of the message.
    pub content: String,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionRow {
    /// Number of the session, which never changes.
    pub id: u64,
    /// Name of the session.
    pub name: String,
    /// Context manager whose items the session shows; empty for the session's own manager, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// Folder of the session's project, as a client named it, if any. It decides which files, items
    /// and memories the session reaches.
    pub project: Option<String>,
    /// Project that only a file, a recording or another machine names. It may name any folder, so it
    /// opens nothing: sessions are only listed and found by it.
    pub told: Option<String>,
    /// Settings of the session, as JSON for the engine.
    pub settings: String,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// Time of the last message, or of the creation if there are no messages; Unix seconds.
    pub updated: i64,
    /// Time at which the session was deleted, in Unix seconds; `None` if it is not deleted. All its
    /// data is kept.
    pub deleted: Option<i64>,
    /// The session that this session continues, if any, and the number of shared messages.
    pub parent: Option<(u64, u64)>,
    /// Number of messages, including those shared with the parent.
    pub messages: u64,
    /// Number of messages by the user.
    pub turns: u64,
    /// Total tokens of the messages.
    pub tokens: u64,
    /// Figures learned in the session's turns, as JSON. If this is empty, those in the session's
    /// newest state apply.
    pub learned: String,
    /// Version after its last change.
    pub version: u64,
    /// File that the session was imported from, if any.
    pub source: Option<String>,
    /// Author of the last message, if there is one.
    pub last_role: Option<Role>,
    /// Beginning of the last text of the user or the model, on one line.
    pub last_words: String,
    /// Facts that an agent recorded about the session.
    pub origin: RecordedOrigin,
    /// Name of the machine from which the session came; `None` if it began here.
    pub machine: Option<String>,
}

/// The place up to which a file was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingRow {
    /// Number of the session that the file became.
    pub session: u64,
    /// The place, as the importer wrote it.
    pub mark: String,
}

impl SessionRow {
    /// Returns the name of the context manager whose items the session shows: the manager with
    /// which it was created, or else its own.
    pub fn manager_name(&self) -> String {
        match self.manager.is_empty() {
            true => place::session_manager(self.id),
            false => self.manager.clone(),
        }
    }

    /// Returns the project that the session is about, whoever says so: to be shown, and to list the
    /// session by.
    pub fn named_project(&self) -> Option<&str> {
        self.project.as_deref().or(self.told.as_deref())
    }
}

/// A state of a session's view of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Number of the state in its session, counted from 1 by the engine.
    pub number: u64,
    /// Name of the method that made the state, such as `rollback`.
    pub kind: String,
    /// Number of messages in the session's log when the state was made.
    pub base: u64,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// The state itself, as JSON.
    pub state: String,
}

/// A state without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSummary {
    /// Number of the state in its session.
    pub number: u64,
    /// Name of the method that made the state.
    pub kind: String,
    /// Number of messages in the session's log when the state was made.
    pub base: u64,
    /// Creation time in Unix seconds.
    pub created: i64,
}

/// A checkpoint to be added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewCheckpoint {
    /// Number of the state to return to.
    pub state: u64,
    /// Number of messages in the session's log before the checkpoint.
    pub position: u64,
    /// Number of turns before the checkpoint.
    pub turn: u64,
    /// Label of the checkpoint.
    pub message: String,
    /// True if the checkpoint was made automatically.
    pub automatic: bool,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// Number of the set with the context items as of the checkpoint, if they were saved; see
    /// [`write_set`](super::Writing::write_set).
    pub items: Option<u64>,
}

/// A stored checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Number of the checkpoint, unique among the checkpoints of all sessions.
    pub id: u64,
    /// The checkpoint as it was added.
    pub made: NewCheckpoint,
}

/// A hit of a search over sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// Session that has the matching name, or in which the matching message was said. Forks that
    /// share the message are not listed.
    pub session: u64,
    /// Name of the session.
    pub name: String,
    /// Number of the matching message; `None` when the name matches.
    pub message: Option<u64>,
    /// Author of the message; `None` when the name matches.
    pub role: Option<Role>,
    /// Time of the message in Unix seconds; `None` when the name matches.
    pub timestamp: Option<i64>,
    /// Excerpt around the first matching word, on one line.
    pub snippet: String,
    /// BM25 score, above 0. Scores of names and of messages are not comparable.
    pub score: f64,
}

/// Composition of a window, in tokens. Only the counts are serialized, with the names that clients
/// know.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageRow {
    /// Number of the session; `None` for a window without a session.
    #[serde(skip)]
    pub session: Option<u64>,
    /// Time in Unix seconds.
    #[serde(skip)]
    pub at: i64,
    /// Phase of the work, if known.
    #[serde(skip)]
    pub phase: Option<Phase>,
    /// Name of the strategy.
    #[serde(skip)]
    pub strategy: String,
    /// Tokens of the system prompt.
    #[serde(rename = "system-prompt")]
    pub system: u64,
    /// Tokens of the design document.
    #[serde(rename = "design-doc")]
    pub design: u64,
    /// Tokens of the type definitions.
    pub types: u64,
    /// Tokens of the unit of code in progress, its tests, and the code that failing tests name.
    #[serde(rename = "current-context")]
    pub current: u64,
    /// Tokens of the messages.
    pub messages: u64,
    /// Tokens of the whole window, including parts that are not listed here.
    pub total: u64,
    /// Token budget.
    pub budget: u64,
    /// Cost of asking a model with this window; `None` when none was asked.
    #[serde(skip)]
    pub spent: Option<Spent>,
}

/// Cost of asking a model with a window. The provider counted the tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spent {
    /// Name of the provider.
    pub provider: String,
    /// Name of the model.
    pub model: String,
    /// Input tokens including cached ones, if reported.
    pub input: Option<u64>,
    /// Output tokens, if reported.
    pub output: Option<u64>,
    /// Input tokens that came from a cache, if reported.
    pub cached: Option<u64>,
    /// Cost in US dollars, if prices and counts are known.
    pub cost: Option<f64>,
}

/// Sums over the windows of a phase. All fields but the cost are serialized, with the names that
/// clients know.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseUsage {
    /// The phase; `nil` for the windows without one.
    pub phase: Option<Phase>,
    /// Number of windows.
    pub windows: u64,
    /// Tokens of the system prompts.
    #[serde(rename = "system-prompt")]
    pub system: u64,
    /// Tokens of the design documents.
    #[serde(rename = "design-doc")]
    pub design: u64,
    /// Tokens of the type definitions.
    pub types: u64,
    /// Tokens of the units of code in progress, their tests, and the code that failing tests name.
    #[serde(rename = "current-context")]
    pub current: u64,
    /// Tokens of the messages.
    pub messages: u64,
    /// Tokens of the whole windows, including parts that are not listed here.
    pub total: u64,
    /// Sum of the token budgets.
    pub budget: u64,
    /// Number of windows for which a provider reported token counts.
    pub reported: u64,
    /// Input tokens that providers reported, including cached ones.
    pub input: u64,
    /// Output tokens that providers reported.
    pub output: u64,
    /// Input tokens that came from caches, as providers reported.
    pub cached: u64,
    /// Number of windows with a known cost.
    pub priced: u64,
    /// Total cost of the windows with a known cost, in US dollars.
    #[serde(skip)]
    pub cost: f64,
}

/// The items that an agent's session has after a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushState {
    /// Number of the push; 0 before the first.
    pub number: u64,
    /// The items, as JSON in the caller's format.
    pub items: String,
}

/// The record of the pushes to an agent's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRow {
    /// Name of the agent.
    pub agent: String,
    /// Id that the agent gives the session.
    pub session: String,
    /// State after the latest push.
    pub latest: PushState,
    /// State before the latest push.
    pub earlier: PushState,
    /// Time of the latest push, in Unix seconds; 0 if unknown.
    pub at: i64,
    /// Folder of the project; empty if unknown.
    pub project: String,
    /// Tokens of the items that the latest push showed.
    pub tokens: u64,
}

/// A wish to send an item with the next prompt of an agent's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPush {
    /// Number of the wish; never used twice.
    pub number: u64,
    /// Manager of the item.
    pub manager: String,
    /// Number of the item.
    pub item: u64,
    /// Name of the agent; empty for any agent.
    pub agent: String,
    /// Id of the agent's session; empty for any session.
    pub session: String,
    /// Folder of the project; empty for any project.
    pub project: String,
    /// Time of the wish, in Unix seconds.
    pub at: i64,
    /// Mark of the manager's change that `undo` would have undone at the time of the wish; 0 if
    /// there was none.
    pub change: u64,
}

/// An item that went with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenPush {
    /// Name of the agent.
    pub agent: String,
    /// Id of the agent's session.
    pub session: String,
    /// Number of the item.
    pub item: u64,
    /// Time of the push, in Unix seconds.
    pub at: i64,
}

impl Default for PushState {
    fn default() -> Self {
        Self { number: 0, items: "[]".into() }
    }
}

impl PushRow {
    /// Returns the state after push `number`. An unknown number gives an empty state.
    pub fn at(&self, number: u64) -> PushState {
        [&self.latest, &self.earlier]
            .into_iter()
            .find(|state| state.number == number)
            .cloned()
            .unwrap_or_default()
    }
}

/// Returns a folder's name without a slash at its end, since the folder is the same with and
/// without it. The root keeps its slash.
pub fn bare_folder(folder: &str) -> &str {
    match folder.trim_end_matches('/') {
        "" => folder,
        bare => bare,
    }
}
