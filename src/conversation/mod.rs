//! A library for programs that hold one conversation with a model and want its context kept good.
//! It has everything of the session family, without a server.
//!
//! A [`Conversation`] is a session in memory, or in a state folder that it owns as long as it lives.
//! When a method returns, every change it made is durable.
//!
//! ```
//! use contexture::conversation::Conversation;
//! use contexture::curation::config::TurnConfig;
//!
//! # fn main() -> Result<(), contexture::conversation::ConversationError> {
//! let mut conversation = Conversation::builder("tla")
//!     .config(TurnConfig { max_tokens: 4096, checkpoint_interval: 5, ..TurnConfig::default() })
//!     .open()?;
//! let turn = conversation.process_turn("What does src/main.rs do?")?;
//! let window = conversation.window()?;
//! assert!(window.tokens <= 4096 && turn.quality_score > 0.0);
//! // … send window.parts to a model …
//! conversation.add_response("It starts the program.")?;
//! # Ok(())
//! # }
//! ```

mod builder;

use std::sync::Arc;

use crate::agent::AgentError;
use crate::agent::window::{self, Built};
use crate::curation::config::ConfigError;
use crate::curation::prune::HistoryStats;
use crate::curation::quality::Quality;
use crate::curation::section::Counted;
use crate::curation::strategy::{self, Strategy};
use crate::curation::summary::Summarizer;
use crate::curation::window::Window;
use crate::engine::{
    Costs, Engine, EngineError, Grounded, Keep, NewMessage, NewTurn, PrunedView, Query,
    RollbackUndone, RolledBack, SessionContext, SessionSettings, Summarized, TurnDone,
    memories_for,
};
use crate::files::{DEFAULT_MAX_FILE_BYTES, ReadOptions};
use crate::session::Session;
use crate::session::message::{Phase, Role, ToolCall};
use crate::store::StoreError;
use crate::store::memory::MemoryScope;
use crate::store::ownership::{FolderError, Owned};
use crate::store::session::CheckpointRow;
use crate::tokens::Counter;

pub use self::builder::Builder;
pub use crate::agent::window::Purpose;

/// A conversation, with everything that keeps its context good.
pub struct Conversation {
    engine: Engine,
    id: u64,
    model: Option<String>,
    counter: Arc<dyn Counter>,
    strategy: &'static dyn Strategy,
    summarizer: Box<dyn Summarizer>,
    grounding: String,
    _folder: Option<Owned>,
}

/// A message that is not a turn of the user or a plain answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// Author of the message.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Tool calls of an assistant's message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that a tool's message answers.
    pub tool_call_id: Option<String>,
    /// Phase of the work.
    pub phase: Option<Phase>,
    /// Never left out of a window if true.
    pub pinned: bool,
}

/// The reason why an operation failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// The state folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// No strategy has this name.
    #[error("no strategy {name:?}; there are {}", strategy::names().join(", "))]
    NoSuchStrategy {
        /// Name that was given.
        name: String,
    },
    /// The engine refused the operation.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A window could not be built for another reason.
    #[error(transparent)]
    Agent(AgentError),
}

impl From<AgentError> for ConversationError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Engine(error) => Self::Engine(error),
            error => Self::Agent(error),
        }
    }
}

impl Conversation {
    /// Starts to open the conversation with this name.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::named(name.into())
    }

    /// Processes a turn of the user and keeps the context good; see [`Engine::process_turn`].
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn process_turn(&mut self, input: &str) -> Result<TurnDone, ConversationError> {
        self.process_judged_turn(input, None)
    }

    /// Like [`Self::process_turn`], with a rating of the last answer's coherence, from 0 to 1.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn process_judged_turn(
        &mut self,
        input: &str,
        coherence: Option<f64>,
    ) -> Result<TurnDone, ConversationError> {
        let message = self.counted(Utterance::of(Role::User, input));
        let turn = NewTurn { message, coherence, vector: None };
        let (context, summarizer) = (self.context()?, &*self.summarizer);
        let done =
            self.engine.run_alone(|engine| engine.process_turn(&context, turn, summarizer))?;
        self.grounding.clone_from(&done.grounding);
        Ok(done)
    }

    /// Adds the model's answer. Returns its number.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn add_response(&mut self, text: &str) -> Result<u64, ConversationError> {
        self.say(Utterance::of(Role::Assistant, text))
    }

    /// Adds a message of any kind. Returns its number.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn say(&mut self, utterance: Utterance) -> Result<u64, ConversationError> {
        let (id, message) = (self.id, self.counted(utterance));
        let said = self.engine.run_alone(|engine| engine.add_messages(id, vec![message]))?;
        Ok(said.numbers.last().copied().unwrap_or_default())
    }

    /// Builds the window for the model: the memories found for the last turn, the summary, and the
    /// messages that fit.
    ///
    /// # Errors
    /// [`EngineError::BudgetTooSmall`].
    pub fn window(&mut self) -> Result<Window, ConversationError> {
        self.window_for(Purpose::default())
    }

    /// Builds a window with sections, for a phase, for a query, or within another budget.
    ///
    /// # Errors
    /// [`EngineError::BudgetTooSmall`].
    pub fn window_for(&mut self, mut purpose: Purpose) -> Result<Window, ConversationError> {
        let row = self.engine.row(self.id)?;
        let context = self.engine.context_of(row, None)?;
        let material = self.engine.material(context)?;
        purpose.strategy = purpose.strategy.or(Some(self.strategy));
        purpose.max_tokens = purpose.max_tokens.or(Some(material.context.settings.turn.max_tokens));
        if !self.grounding.is_empty() {
            let grounding = || Counted::new(&*self.grounding, &*self.counter);
            purpose.sections.grounding.get_or_insert_with(grounding);
        }
        let options = ReadOptions { max_bytes: DEFAULT_MAX_FILE_BYTES };
        let Built { window, items } = window::build(&*self.counter, &options, material, purpose)?;
        let id = self.id;
        self.engine.run_alone(|engine| engine.note_window(id, &window, items))?;
        Ok(window)
    }

    /// Returns how full the model is with the messages in view.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn stats(&mut self) -> Result<HistoryStats, ConversationError> {
        let costs = self.costs()?;
        Ok(self.engine.session_stats(self.id, &costs)?)
    }

    /// Returns the quality of the context, from 0 to 1, with its four parts.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn quality(&mut self) -> Result<Quality, ConversationError> {
        let context = self.context()?;
        Ok(self.engine.quality_score(&context)?)
    }

    /// Summarizes all turns except the last `keep_turns` now.
    ///
    /// # Errors
    /// [`EngineError::NotSummarized`] if that would not help.
    pub fn summarize(&mut self, keep_turns: usize) -> Result<Summarized, ConversationError> {
        let (id, costs) = (self.id, self.costs()?);
        let max_tokens = self.settings()?.turn.max_tokens;
        let (keep, summarizer) = (Keep::Turns(keep_turns), &*self.summarizer);
        Ok(self.engine.run_alone(|engine| {
            engine.summarize_session(id, keep, max_tokens, &costs, summarizer)
        })?)
    }

    /// Leaves out the least important messages until the rest costs at most `max_tokens`. `None`
    /// stands for the model's target.
    ///
    /// # Errors
    /// [`EngineError::BudgetTooSmall`].
    pub fn prune(&mut self, max_tokens: Option<u64>) -> Result<PrunedView, ConversationError> {
        let (id, costs) = (self.id, self.costs()?);
        let prune = |engine: &mut Engine| engine.prune_session(id, max_tokens, &costs, "prune");
        Ok(self.engine.run_alone(prune)?)
    }

    /// Takes a checkpoint. Returns its number, or `None` without versioning.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn checkpoint(&mut self, message: &str) -> Result<Option<u64>, ConversationError> {
        let id = self.id;
        Ok(self.engine.run_alone(|engine| engine.checkpoint(id, message))?)
    }

    /// Returns the checkpoints, oldest first.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn checkpoints(&mut self) -> Result<Vec<CheckpointRow>, ConversationError> {
        Ok(self.engine.read().checkpoints(self.id)?)
    }

    /// Goes back to a checkpoint, by default to the last one.
    ///
    /// # Errors
    /// [`EngineError::NoVersioning`], [`EngineError::NoCheckpoint`].
    pub fn rollback(&mut self, checkpoint: Option<u64>) -> Result<RolledBack, ConversationError> {
        let id = self.id;
        Ok(self.engine.run_alone(|engine| engine.rollback(id, checkpoint))?)
    }

    /// Undoes the last rollback.
    ///
    /// # Errors
    /// [`EngineError::NoRollback`].
    pub fn undo_rollback(&mut self) -> Result<RollbackUndone, ConversationError> {
        let id = self.id;
        Ok(self.engine.run_alone(|engine| engine.undo_rollback(id))?)
    }

    /// Remembers a text for later turns of this conversation. Returns the memory's number.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn remember(&mut self, text: &str) -> Result<u64, ConversationError> {
        let scope = MemoryScope::Session(self.id);
        Ok(self.engine.run_alone(|engine| engine.remember(scope, text, None))?)
    }

    /// Returns the memories that fit a text best, at most as many as a turn gets.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn ground_query(&mut self, text: &str) -> Result<Grounded, ConversationError> {
        let limit = self.settings()?.turn.grounding_memories;
        let query = Query {
            text: text.to_owned(),
            vector: None,
            filter: memories_for(&self.engine.row(self.id)?),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            in_view: None,
        };
        Ok(self.engine.run_alone(|engine| engine.ground(&query))?)
    }

    /// Returns the log and the part of it that is in view.
    ///
    /// # Errors
    /// [`ConversationError::Engine`].
    pub fn session(&mut self) -> Result<&Session, ConversationError> {
        Ok(self.engine.session(self.id)?)
    }

    fn settings(&mut self) -> Result<SessionSettings, ConversationError> {
        Ok(SessionSettings::parse(&self.engine.row(self.id)?.settings)?)
    }

    fn context(&mut self) -> Result<SessionContext, ConversationError> {
        let row = self.engine.row(self.id)?;
        Ok(self.engine.context_of(row, self.model.as_deref())?)
    }

    fn costs(&mut self) -> Result<Costs, ConversationError> {
        Ok(self.engine.costs(self.model.as_deref())?)
    }

    fn counted(&self, utterance: Utterance) -> NewMessage {
        let Utterance { role, content, tool_calls, tool_call_id, phase, pinned } = utterance;
        let tokens = NewMessage::tokens_of(&*self.counter, &content, &tool_calls);
        NewMessage {
            role,
            content: content.into(),
            phase,
            tool_calls,
            tool_call_id,
            pinned,
            tokens,
            counted_by: self.counter.name(),
            timestamp: None,
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.engine.settle();
    }
}

impl Utterance {
    /// Creates an utterance that has only an author and a text.
    pub fn of(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            phase: None,
            pinned: false,
        }
    }
}
