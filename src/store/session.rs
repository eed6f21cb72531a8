//! What a store keeps of sessions: their messages, the states of their views, checkpoints, and
//! what their windows were made of.
//!
//! Plain data and a trait. A session is a number; what its settings and states mean is not known
//! here.

use super::StoreError;
use super::view::{NewView, Notes, ViewQuery, ViewRow};
use crate::session::message::{Message, Phase, Role};

/// Of how many windows the usage is kept at least; the sums count all of them.
pub const USAGE_KEPT: u64 = 10_000;

/// A session about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewSession {
    /// Its name, which no other live session may have.
    pub name: String,
    /// The context manager whose items it shows; empty for one of its own, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// The folder of the project that it is about.
    pub project: Option<String>,
    /// Whatever the engine keeps with it, JSON.
    pub settings: String,
    /// Unix seconds.
    pub created: i64,
    /// The session that it continues, and after how many of its messages. They are not copied:
    /// the first messages of the new session are those of the old one.
    pub parent: Option<(u64, u64)>,
}

/// A session as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its number; the same for ever.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The context manager whose items it shows; empty for one of its own, see
    /// [`SessionRow::manager_name`].
    pub manager: String,
    /// The folder of the project that it is about.
    pub project: Option<String>,
    /// Whatever the engine keeps with it, JSON.
    pub settings: String,
    /// When it was made, Unix seconds.
    pub created: i64,
    /// When its last message was said, or when it was made; Unix seconds.
    pub updated: i64,
    /// When it was deleted, Unix seconds; nothing else of it is lost by that.
    pub deleted: Option<i64>,
    /// The session that it continues, and after how many of its messages.
    pub parent: Option<(u64, u64)>,
    /// How many messages it has, with those of its parent.
    pub messages: u64,
    /// How many of them are the user's.
    pub turns: u64,
    /// The tokens of the messages together.
    pub tokens: u64,
}

impl SessionRow {
    /// The context manager whose items it shows: the one it was made with, else one of its own.
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
    /// Its number in the session, from 1, given by the engine.
    pub number: u64,
    /// What made it: `turn`, `summary`, `rollback` and the like.
    pub kind: String,
    /// How many messages the log had then.
    pub base: u64,
    /// Unix seconds.
    pub created: i64,
    /// The state itself, JSON.
    pub state: String,
}

/// A state without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSummary {
    /// Its number in the session.
    pub number: u64,
    /// What made it.
    pub kind: String,
    /// How many messages the log had then.
    pub base: u64,
    /// Unix seconds.
    pub created: i64,
}

/// A checkpoint about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewCheckpoint {
    /// The number of the state to go back to.
    pub state: u64,
    /// How many messages the log had.
    pub position: u64,
    /// How many turns the session had.
    pub turn: u64,
    /// What it is called.
    pub message: String,
    /// Whether nobody asked for it.
    pub automatic: bool,
    /// Unix seconds.
    pub created: i64,
    /// The set of the context items then, from [`write_set`](super::Store::write_set).
    pub items: Option<u64>,
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointRow {
    /// Its number, which no other checkpoint of any session has.
    pub id: u64,
    /// What it was made of.
    pub made: NewCheckpoint,
}

/// Something found in the sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The session in which it was said, not the forks that share it.
    pub session: u64,
    /// The session's name.
    pub name: String,
    /// Which message fits, `None` when the name does.
    pub message: Option<u64>,
    /// Who said it.
    pub role: Option<Role>,
    /// A piece of the text around the first word that was found, on one line.
    pub snippet: String,
    /// How well it fits by BM25, above 0; those of names and of messages do not compare.
    pub score: f64,
}

/// What a window was made of, in tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsageRow {
    /// The session, if it was one's.
    pub session: Option<u64>,
    /// Unix seconds.
    pub at: i64,
    /// The phase of the work, if one was given.
    pub phase: Option<Phase>,
    /// The strategy's name.
    pub strategy: String,
    /// The system prompt's.
    pub system: u64,
    /// The design document's.
    pub design: u64,
    /// The type definitions'.
    pub types: u64,
    /// The current unit's and whatever else is about the moment.
    pub current: u64,
    /// The messages'.
    pub messages: u64,
    /// All together.
    pub total: u64,
    /// How many there might have been.
    pub budget: u64,
    /// What came of asking a model with it; `None` when none was asked.
    pub spent: Option<Spent>,
}

/// What asking a model with a window took, in the provider's tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spent {
    /// What the provider is called.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// Of the request, with what came from a cache, if it was reported.
    pub input: Option<u64>,
    /// Of the answer, if it was reported.
    pub output: Option<u64>,
    /// Of the input, what came from a cache, if it was reported.
    pub cached: Option<u64>,
    /// In the currency of the configured prices, if these and the counts are known.
    pub cost: Option<f64>,
}

/// The windows of a phase together, in tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PhaseUsage {
    /// The phase; `None` for the windows without one.
    pub phase: Option<Phase>,
    /// How many windows there were.
    pub windows: u64,
    /// The system prompts'.
    pub system: u64,
    /// The design documents'.
    pub design: u64,
    /// The type definitions'.
    pub types: u64,
    /// The current units' and whatever else was about the moment.
    pub current: u64,
    /// The messages'.
    pub messages: u64,
    /// All together.
    pub total: u64,
    /// How many there might have been.
    pub budget: u64,
    /// Of how many windows a provider reported what it counted.
    pub reported: u64,
    /// The input of these, in the providers' tokens.
    pub input: u64,
    /// Their output.
    pub output: u64,
    /// Of the input, what came from caches.
    pub cached: u64,
    /// Of how many windows the cost is known.
    pub priced: u64,
    /// The cost of these, in the currency of the configured prices.
    pub cost: f64,
}

/// The sessions' part of a [`Store`](super::Store). Writes belong to the request that is running,
/// like all others.
pub trait SessionStore {
    /// Makes a session and gives its number.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`].
    fn create_session(&mut self, session: &NewSession) -> Result<u64, StoreError>;

    /// A session, deleted or not.
    fn session(&mut self, id: u64) -> Result<Option<SessionRow>, StoreError>;

    /// The live session with this name.
    fn session_named(&mut self, name: &str) -> Result<Option<SessionRow>, StoreError>;

    /// The live sessions, or all, those with the newest message first.
    fn sessions(&mut self, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError>;

    /// Gives a session another name.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when a live session has it, be the renamed one deleted or not.
    fn rename_session(&mut self, id: u64, name: &str) -> Result<(), StoreError>;

    /// Replaces what the engine keeps with a session.
    fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), StoreError>;

    /// Marks a session as deleted, with the time in Unix seconds, or as live again.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when it would be live and another live session has its name.
    fn set_session_deleted(&mut self, id: u64, at: Option<i64>) -> Result<(), StoreError>;

    /// Appends messages to the log; the first has the number after the last one's.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the numbers do not follow; then nothing is appended.
    fn append_messages(&mut self, session: u64, messages: &[Message]) -> Result<(), StoreError>;

    /// The messages with these numbers, both included, in their order; those that are not there
    /// are left out.
    fn messages(&mut self, session: u64, from: u64, to: u64) -> Result<Vec<Message>, StoreError>;

    /// How many messages a session has; 0 when there is no such session.
    fn message_count(&mut self, session: u64) -> Result<u64, StoreError>;

    /// Adds a state of the session's view.
    fn append_state(&mut self, session: u64, state: &StateRow) -> Result<(), StoreError>;

    /// The state with the highest number.
    fn newest_state(&mut self, session: u64) -> Result<Option<StateRow>, StoreError>;

    /// The state with this number.
    fn state(&mut self, session: u64, number: u64) -> Result<Option<StateRow>, StoreError>;

    /// The last states, at most `limit`, newest first.
    fn states(&mut self, session: u64, limit: u64) -> Result<Vec<StateSummary>, StoreError>;

    /// Adds a checkpoint and gives its number.
    fn add_checkpoint(
        &mut self,
        session: u64,
        checkpoint: &NewCheckpoint,
    ) -> Result<u64, StoreError>;

    /// Every checkpoint of a session, oldest first.
    fn checkpoints(&mut self, session: u64) -> Result<Vec<CheckpointRow>, StoreError>;

    /// A checkpoint of this session.
    fn checkpoint(&mut self, session: u64, id: u64) -> Result<Option<CheckpointRow>, StoreError>;

    /// What fits the words of a free text: first the names, then the messages, each best first,
    /// at most `limit` together. What has all the words is wanted; only when nothing has, what has
    /// some of them. Of tens of thousands of messages that fit, the newest are ranked.
    fn search_sessions(
        &mut self,
        text: &str,
        limit: u64,
        with_deleted: bool,
    ) -> Result<Vec<SearchHit>, StoreError>;

    /// Notes what a window was made of, and gives the line's number.
    fn log_usage(&mut self, usage: &UsageRow) -> Result<u64, StoreError>;

    /// Adds to the line with this number, and to the sums, what asking a model with its window
    /// took. A line that was forgotten meanwhile stays so, and the sums are as before.
    fn add_spent(&mut self, number: u64, spent: &Spent) -> Result<(), StoreError>;

    /// The last windows, of one session or all, of one phase or all, at most `limit`, newest last.
    fn usage(
        &mut self,
        session: Option<u64>,
        phase: Option<Phase>,
        limit: u64,
    ) -> Result<Vec<UsageRow>, StoreError>;

    /// Sums over all windows there ever were, of one session or all, in the order of the phases.
    fn usage_by_phase(&mut self, session: Option<u64>) -> Result<Vec<PhaseUsage>, StoreError>;

    /// Notes what became of the managing of a turn, and gives its number.
    fn add_view(&mut self, view: &NewView) -> Result<u64, StoreError>;

    /// The last of those that are wanted, newest first.
    fn views(&mut self, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, StoreError>;

    /// The notes that were made last for a turn of the session that began before message
    /// `message`, in a view with a number below `id`.
    fn notes_before(
        &mut self,
        session: u64,
        message: u64,
        id: u64,
    ) -> Result<Option<Notes>, StoreError>;

    /// The view that was made last of the same turn by the same model from the same prompt as
    /// `view`.
    fn view_like(&mut self, view: &NewView) -> Result<Option<ViewRow>, StoreError>;

    /// What was learned of a model's counts, as text of the engine's.
    fn calibration(&mut self, model: &str) -> Result<Option<String>, StoreError>;

    /// Keeps what was learned of a model's counts.
    fn set_calibration(&mut self, model: &str, text: &str) -> Result<(), StoreError>;
}
