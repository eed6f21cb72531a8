//! Stored sessions: messages, states of their views, checkpoints, and the usage of their windows.
//!
//! Plain data and a trait. A session is a number; its settings and states are opaque here.

use serde::Serialize;

use super::StoreError;
use super::view::{NewView, Notes, ViewQuery, ViewRow};
use crate::session::message::{Message, Phase, Role};

/// Minimum number of windows whose usage is kept; the sums cover all windows.
pub const USAGE_KEPT: u64 = 10_000;

/// A session to be created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewSession {
    /// Its name, unique among live sessions.
    pub name: String,
    /// The context manager whose items it shows; empty for one of its own, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// Folder of the project it belongs to.
    pub project: Option<String>,
    /// Settings that the engine keeps with it, as JSON.
    pub settings: String,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// The session that it continues, and the number of messages they share. The messages are not
    /// copied: they are the first messages of both sessions.
    pub parent: Option<(u64, u64)>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its number, which never changes.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The context manager whose items it shows; empty for one of its own, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// Folder of the project it belongs to.
    pub project: Option<String>,
    /// Settings that the engine keeps with it, as JSON.
    pub settings: String,
    /// Creation time in Unix seconds.
    pub created: i64,
    /// Time of the last message, or of the creation if there is none; Unix seconds.
    pub updated: i64,
    /// Time at which it was deleted, in Unix seconds. All its data is kept.
    pub deleted: Option<i64>,
    /// The session that it continues, and the number of messages they share.
    pub parent: Option<(u64, u64)>,
    /// Number of messages, including those of its parent.
    pub messages: u64,
    /// Number of messages by the user.
    pub turns: u64,
    /// Total tokens of the messages.
    pub tokens: u64,
    /// What turns have found out about it, JSON; empty when that stands in its newest state.
    pub learned: String,
}

impl SessionRow {
    /// Returns the context manager whose items it shows: the one it was created with, or else its
    /// own.
    pub fn manager_name(&self) -> String {
        match self.manager.is_empty() {
            true => format!("*session {}*", self.id),
            false => self.manager.clone(),
        }
    }
}

/// A state of a session's view of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRow {
    /// Its number in the session, counted from 1 by the engine.
    pub number: u64,
    /// The event that made it: `turn`, `summary`, `rollback` and the like.
    pub kind: String,
    /// Number of messages in the log at that time.
    pub base: u64,
    /// Unix seconds.
    pub created: i64,
    /// The state itself, as JSON.
    pub state: String,
}

/// A state without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSummary {
    /// Its number in the session.
    pub number: u64,
    /// The event that made it.
    pub kind: String,
    /// Number of messages in the log at that time.
    pub base: u64,
    /// Unix seconds.
    pub created: i64,
}

/// A checkpoint to be added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewCheckpoint {
    /// Number of the state to return to.
    pub state: u64,
    /// Number of messages in the log.
    pub position: u64,
    /// Number of turns in the session.
    pub turn: u64,
    /// Label of the checkpoint.
    pub message: String,
    /// Set when it was made automatically.
    pub automatic: bool,
    /// Unix seconds.
    pub created: i64,
    /// Set of the context items at that time, from [`write_set`](super::Store::write_set).
    pub items: Option<u64>,
}

/// A stored checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Its number, unique among the checkpoints of all sessions.
    pub id: u64,
    /// The checkpoint as it was added.
    pub made: NewCheckpoint,
}

/// A hit of a search over sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The session that has the message, not the forks that share it.
    pub session: u64,
    /// Name of the session.
    pub name: String,
    /// Number of the matching message; `None` when the name matches.
    pub message: Option<u64>,
    /// Author of the message.
    pub role: Option<Role>,
    /// Excerpt around the first matching word, on one line.
    pub snippet: String,
    /// BM25 score, above 0. Scores of names and of messages are not comparable.
    pub score: f64,
}

/// Composition of a window, in tokens. Serialized, it has the counts, with the names that clients
/// know.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct UsageRow {
    /// The session, if there is one.
    #[serde(skip)]
    pub session: Option<u64>,
    /// Unix seconds.
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
    /// Tokens of the current unit and other context of the moment.
    #[serde(rename = "current-context")]
    pub current: u64,
    /// Tokens of the messages.
    pub messages: u64,
    /// Total tokens.
    pub total: u64,
    /// Token budget.
    pub budget: u64,
    /// Cost of asking a model with this window; `None` when none was asked.
    #[serde(skip)]
    pub spent: Option<Spent>,
}

/// Cost of asking a model with a window, in the provider's tokens.
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
    /// Price in the currency of the configured prices, if prices and counts are known.
    pub cost: Option<f64>,
}

/// Sums over the windows of a phase, in tokens. Serialized, it has the counts, with the names that
/// clients know.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PhaseUsage {
    /// The phase; `None` for the windows without one.
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
    /// Tokens of the current units and other context of the moment.
    #[serde(rename = "current-context")]
    pub current: u64,
    /// Tokens of the messages.
    pub messages: u64,
    /// Total tokens.
    pub total: u64,
    /// Token budget.
    pub budget: u64,
    /// Number of windows for which a provider reported token counts.
    pub reported: u64,
    /// Input tokens of these windows, as counted by the providers.
    pub input: u64,
    /// Output tokens of these windows.
    pub output: u64,
    /// Input tokens that came from caches.
    pub cached: u64,
    /// Number of windows with a known cost.
    pub priced: u64,
    /// Total cost of these windows, in the currency of the configured prices.
    #[serde(skip)]
    pub cost: f64,
}

/// Reads sessions.
pub trait ReadSessions {
    /// Returns a session, deleted or not.
    fn session(&mut self, id: u64) -> Result<Option<SessionRow>, StoreError>;

    /// Returns the live session with this name.
    fn session_named(&mut self, name: &str) -> Result<Option<SessionRow>, StoreError>;

    /// Returns the live sessions, or all, by time of the last message, newest first.
    fn sessions(&mut self, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError>;

    /// Returns the messages numbered `from` to `to`, both included, in order. Missing ones are left
    /// out.
    fn messages(&mut self, session: u64, from: u64, to: u64) -> Result<Vec<Message>, StoreError>;

    /// Returns the number of messages of a session; 0 when there is no such session.
    fn message_count(&mut self, session: u64) -> Result<u64, StoreError>;

    /// Returns the state with the highest number.
    fn newest_state(&mut self, session: u64) -> Result<Option<StateRow>, StoreError>;

    /// Returns the state with this number.
    fn state(&mut self, session: u64, number: u64) -> Result<Option<StateRow>, StoreError>;

    /// Returns at most `limit` states, newest first.
    fn states(&mut self, session: u64, limit: u64) -> Result<Vec<StateSummary>, StoreError>;

    /// Returns the checkpoints of a session, oldest first.
    fn checkpoints(&mut self, session: u64) -> Result<Vec<CheckpointRow>, StoreError>;

    /// Returns a checkpoint of this session.
    fn checkpoint(&mut self, session: u64, id: u64) -> Result<Option<CheckpointRow>, StoreError>;

    /// Searches names and messages for the words of a free text. Returns at most `limit` hits:
    /// names first, then messages, each best first. A hit has all the words; only if there is none,
    /// hits with some of the words are returned. When tens of thousands of messages match, only the
    /// newest are ranked.
    fn search_sessions(
        &mut self,
        text: &str,
        limit: u64,
        with_deleted: bool,
    ) -> Result<Vec<SearchHit>, StoreError>;

    /// Returns the usage of at most `limit` windows of a session and a phase (`None`: of all),
    /// oldest first.
    fn usage(
        &mut self,
        session: Option<u64>,
        phase: Option<Phase>,
        limit: u64,
    ) -> Result<Vec<UsageRow>, StoreError>;

    /// Returns the sums over all windows of a session, or of all sessions, in the order of the
    /// phases.
    fn usage_by_phase(&mut self, session: Option<u64>) -> Result<Vec<PhaseUsage>, StoreError>;

    /// Returns the stored notes that match the query, newest first.
    fn views(&mut self, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, StoreError>;

    /// Returns the latest notes of the session with a number below `id`, written for a turn that
    /// began before message `message`.
    fn notes_before(
        &mut self,
        session: u64,
        message: u64,
        id: u64,
    ) -> Result<Option<Notes>, StoreError>;

    /// Returns the latest notes written for the same turn by the same model from the same prompt.
    fn view_like(&mut self, view: &NewView) -> Result<Option<ViewRow>, StoreError>;

    /// Returns the calibration of a model's token counts, as text of the engine.
    fn calibration(&mut self, model: &str) -> Result<Option<String>, StoreError>;
}

/// Changes sessions. Writes belong to the running request.
pub trait WriteSessions: ReadSessions {
    /// Creates a session and returns its number.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`].
    fn create_session(&mut self, session: &NewSession) -> Result<u64, StoreError>;

    /// Renames a session.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when another live session has the name, even if the renamed one is
    /// deleted.
    fn rename_session(&mut self, id: u64, name: &str) -> Result<(), StoreError>;

    /// Replaces the settings of a session.
    fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), StoreError>;

    /// Replaces what turns have found out about a session.
    fn set_learned(&mut self, id: u64, learned: &str) -> Result<(), StoreError>;

    /// Marks a session as deleted at this time in Unix seconds, or restores it when `at` is `None`.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when it would be restored but another live session has its name.
    fn set_session_deleted(&mut self, id: u64, at: Option<i64>) -> Result<(), StoreError>;

    /// Appends messages to the log. Their numbers must continue those of the log.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the numbers do not continue the log; then nothing is appended.
    fn append_messages(&mut self, session: u64, messages: &[Message]) -> Result<(), StoreError>;

    /// Adds a state of the session's view.
    fn append_state(&mut self, session: u64, state: &StateRow) -> Result<(), StoreError>;

    /// Adds a checkpoint and returns its number.
    fn add_checkpoint(
        &mut self,
        session: u64,
        checkpoint: &NewCheckpoint,
    ) -> Result<u64, StoreError>;

    /// Records the usage of a window and returns the number of its row.
    fn log_usage(&mut self, usage: &UsageRow) -> Result<u64, StoreError>;

    /// Adds the cost of asking a model to the row with this number and to the sums. Does nothing
    /// when the row is no longer kept.
    fn add_spent(&mut self, number: u64, spent: &Spent) -> Result<(), StoreError>;

    /// Records the notes of a turn and returns their number.
    fn add_view(&mut self, view: &NewView) -> Result<u64, StoreError>;

    /// Stores the calibration of a model's token counts.
    fn set_calibration(&mut self, model: &str, text: &str) -> Result<(), StoreError>;
}
