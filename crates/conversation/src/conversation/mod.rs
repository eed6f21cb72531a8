//! The public interface of the library: conversations with models, with managed contexts.
//!
//! A [`Conversation`] is a session in memory, or in a state folder that belongs to this process
//! while the conversation is open. The type is a façade over [`agent`](crate::agent), which the
//! server uses too. When a method returns, its changes are stored durably.

mod builder;
mod error;
mod items;
mod message;
mod others;
mod provider;
mod state;
mod tool;
mod turn;
mod window;

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use self::builder::Builder;
pub use self::error::{Error, Refusal, StoreErrorKind};
pub use self::items::{Item, ItemView};
pub use self::message::Message;
pub use self::others::ConversationInfo;
pub use self::provider::Provider;
#[cfg(feature = "providers")]
pub use self::provider::Server;
use self::state::{OpenState, SharedConversation};
use self::tool::Offering;
pub use self::tool::{Tool, ToolContext};
pub use self::turn::{PartialReply, Turn, TurnStream};
pub use self::window::WindowRequest;
use crate::agent::{Decision, Job, Services};
use crate::curation::prune::HistoryStats;
use crate::curation::quality::Quality;
use crate::curation::section::Sections;
use crate::curation::strategy;
use crate::curation::summary::Summarizer;
use crate::engine::{
    self, Caller, Costs, Engine, EngineError, Grounded, Keep, Noted, PrunedView, Query, RolledBack,
    SessionContext, Summarized, TurnDone, TurnsMoved, memories_for,
};
use crate::store::memory::MemoryScope;
use crate::store::session::CheckpointRow;

/// A conversation with a model, including everything that manages its context.
///
/// Clones share the conversation, and [`Builder::open`] can open further handles. Every method can
/// be called from any task; turns of one conversation run one after another. After [`close`](Self::close), methods return
/// [`Error::Closed`].
#[derive(Clone)]
pub struct Conversation {
    inner: Arc<ConversationInner>,
}

struct ConversationInner {
    services: Arc<Services>,
    state: OpenState,
    runtime: tokio::runtime::Handle,
    shared: Arc<SharedConversation>,
    id: u64,
    name: String,
    manager: String,
    project: Option<String>,
    model: Option<String>,
    tools: Vec<Offering>,
    allowed: Vec<String>,
    /// Names of the tools before whose calls the user is asked.
    asked: Vec<String>,
    sections: Sections,
    summarizer: Arc<dyn Summarizer + Send + Sync>,
}

impl fmt::Debug for Conversation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConversationInner { name, project, .. } = &*self.inner;
        let mut shown = formatter.debug_struct("Conversation");
        shown.field("name", name).field("project", project).finish_non_exhaustive()
    }
}

impl ConversationInner {
    /// Returns a job that is never cancelled.
    fn job(&self) -> Job {
        let cancelled = Arc::new(CancellationToken::new());
        Job { services: Arc::clone(&self.services), caller: Caller::Nobody, cancelled }
    }
}

/// Returns the names of the strategies for choosing messages, the default one first.
pub fn strategies() -> Vec<&'static str> {
    strategy::names()
}

impl Conversation {
    /// Returns a builder that opens the conversation with this name.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::named(name.into())
    }

    /// Creates a turn with a model. The turn begins when it is awaited for its reply, or when its
    /// events are streamed. The turn shows the model a window within the budget, with the message,
    /// and carries out the model's tool calls until an answer contains no calls.
    pub fn chat(&self, message: impl Into<Message>) -> Turn {
        Turn::new(self.clone(), Some(message.into()))
    }

    /// Creates a turn that asks the last question again. When the turn begins, the question and
    /// everything after it leave the conversation; [`undo_view`](Self::undo_view) brings them back.
    /// A question whose turn failed is asked again, too, until the conversation is closed.
    ///
    /// # Errors
    /// The turn fails with [`Error::Refused`] if there is no question.
    pub fn retry(&self) -> Turn {
        Turn::new(self.clone(), None)
    }

    /// Answers a turn's question of whether a tool may be called. `number` is the number of the
    /// question, which [`TurnEvent::Approval`](crate::TurnEvent::Approval) contains. Returns
    /// whether the turn was still waiting for the answer.
    pub fn approve(&self, number: u64, decision: Decision) -> bool {
        self.inner.services.approvals.answer(number, decision)
    }

    /// Processes a user's turn for a program that calls the model itself. Adds the message and
    /// finds memories. Then, as far as the settings allow, summarizes older turns if the messages
    /// in view are too large, and rolls back if the quality is too low, or else takes a checkpoint
    /// if one is due.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn process_turn(&self, message: impl Into<Message>) -> Result<TurnDone, Error> {
        self.process_judged_turn(message, None).await
    }

    /// Processes a turn like [`Self::process_turn`], with a rating of the last answer's coherence,
    /// from 0 to 1.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn process_judged_turn(
        &self,
        message: impl Into<Message>,
        coherence: Option<f64>,
    ) -> Result<TurnDone, Error> {
        let (job, message) = (self.inner.job(), message.into());
        let vector = job.embed(&message.content).await?.vector;
        let message =
            job.aside("a turn", move |job| message.counted(&*job.services.counter)).await?;
        let turn = engine::NewTurn { method: "process-turn", message, coherence, vector };
        let summarizer = Arc::clone(&self.inner.summarizer);
        let process = move |engine: &mut Engine, context: SessionContext| {
            engine.process_turn(&context, turn, &*summarizer)
        };
        let done = self.ask_in_context(process).await?;
        self.inner.shared.grounding().clone_from(&done.grounding);
        Ok(done)
    }

    /// Returns a request for the window to send to a model that your program calls: the items, the
    /// summary, the memories of the last processed turn, and the messages that fit. Await the
    /// request to get the window.
    ///
    /// # Errors
    /// The awaited result is [`Error::BudgetTooSmall`] if the parts that cannot be left out cost
    /// more than the budget.
    pub fn window(&self) -> WindowRequest {
        WindowRequest::new(self.clone())
    }

    /// Adds an answer from a model that your program called. Returns the number of the message.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn add_response(&self, text: impl Into<String>) -> Result<u64, Error> {
        self.say(Message::assistant(text)).await
    }

    /// Adds a message of any role. Returns the number of the message.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn say(&self, message: impl Into<Message>) -> Result<u64, Error> {
        let (id, job, message) = (self.inner.id, self.inner.job(), message.into());
        let message = job
            .aside("adding a message", move |job| message.counted(&*job.services.counter))
            .await?;
        let said = self.ask(move |engine| engine.add_messages(id, vec![message])).await?;
        Ok(said.numbers.last().copied().unwrap_or_default())
    }

    /// Returns the messages in view, oldest first, without those that were pruned, summarized or
    /// rolled back.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn messages(&self) -> Result<Vec<Message>, Error> {
        let id = self.inner.id;
        let in_view = move |engine: &mut Engine| {
            Ok(engine.session(id)?.in_view().map(|message| Message::from(&**message)).collect())
        };
        self.ask(in_view).await
    }

    /// Returns the report of the last window: the parts that were kept or left out, with the
    /// reasons. Only the last 64 reports of all conversations that share a state are kept, in
    /// memory. Returns `None` if no report of this conversation is kept.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn report(&self) -> Result<Option<Noted>, Error> {
        let id = self.inner.id;
        self.ask(move |engine| Ok(engine.windows(id).into_iter().next())).await
    }

    /// Returns how much the messages and the summary in view fill of what a window may have: the
    /// maximum that the conversation was opened with, or the model's limit if that is smaller.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn stats(&self) -> Result<HistoryStats, Error> {
        let stats = |engine: &mut Engine, context: SessionContext| {
            engine.session_stats(context.row.id, &limited(context))
        };
        self.ask_in_context(stats).await
    }

    /// Returns the quality of the context, from 0 to 1, with its four parts.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn quality(&self) -> Result<Quality, Error> {
        self.ask_in_context(|engine, context| engine.quality_score(&context)).await
    }

    /// Replaces the messages of all turns except the last `keep_turns` with a summary. Messages
    /// that cannot be left out, such as pinned ones, stay.
    ///
    /// # Errors
    /// [`Error::Refused`] if a summary would not help, or the summarizer fails.
    pub async fn summarize(&self, keep_turns: usize) -> Result<Summarized, Error> {
        let summarizer = Arc::clone(&self.inner.summarizer);
        self.ask_in_context(move |engine, context| {
            let (id, max_tokens) = (context.row.id, context.max_tokens());
            let keep = Keep::Turns(keep_turns);
            engine.summarize_session(id, keep, max_tokens, &context.costs, &*summarizer)
        })
        .await
    }

    /// Takes the least important messages out of view until the rest costs at most `max_tokens`; by
    /// default, the target share of the limit that [`stats`](Self::stats) returns.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] if the messages that cannot be left out cost more.
    pub async fn prune(&self, max_tokens: Option<u64>) -> Result<PrunedView, Error> {
        self.ask_in_context(move |engine, context| {
            engine.prune_session(context.row.id, max_tokens, &limited(context))
        })
        .await
    }

    /// Takes a checkpoint, which `message` describes. Returns the checkpoint's number; `None` if
    /// versioning is off.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn checkpoint(&self, message: impl Into<String>) -> Result<Option<u64>, Error> {
        let (id, message) = (self.inner.id, message.into());
        self.ask(move |engine| engine.checkpoint(id, &message)).await
    }

    /// Returns the checkpoints, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointRow>, Error> {
        let id = self.inner.id;
        self.ask(move |engine| Ok(engine.read().checkpoints(id)?)).await
    }

    /// Returns to a checkpoint, by default the last one: restores the messages in view, the pins
    /// and the items. Later messages leave the conversation, and
    /// [`undo_view`](Self::undo_view) brings them back.
    ///
    /// # Errors
    /// [`Error::Refused`] if versioning is off, or if the checkpoint does not exist.
    pub async fn rollback(&self, checkpoint: Option<u64>) -> Result<RolledBack, Error> {
        let id = self.inner.id;
        self.ask(move |engine| engine.rollback(id, checkpoint)).await
    }

    /// Undoes the last pruning, summary, rollback or restoration. Undoing a rollback brings back
    /// the messages and items from before it; messages that were added after it leave the
    /// conversation.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is nothing to undo.
    pub async fn undo_view(&self) -> Result<TurnsMoved, Error> {
        let id = self.inner.id;
        self.ask(move |engine| Ok(engine.undo_session(id)?.1)).await
    }

    /// Remembers a text for later turns of this conversation, and of no other. Returns the number
    /// of the memory.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn remember(&self, text: impl Into<String>) -> Result<u64, Error> {
        let (scope, text) = (MemoryScope::Session(self.inner.id), text.into());
        let vector = self.inner.job().embed(&text).await?.vector;
        self.ask(move |engine| {
            let vector = vector.as_ref().map(|(model, vector)| (&**model, &**vector));
            engine.remember(scope, &text, vector)
        })
        .await
    }

    /// Returns the memories that match a text best, at most as many as a turn gets. The search
    /// counts as a use of these memories, which makes them fade more slowly.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn ground_query(&self, text: impl Into<String>) -> Result<Grounded, Error> {
        let text = text.into();
        let vector = self.inner.job().embed(&text).await?.vector;
        self.ask_in_context(move |engine, context| {
            let limit = context.settings.turn.grounding_memories;
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let filter = memories_for(&context.row);
            engine.ground(&Query { text, vector, filter, limit, in_view: None, strengthen: true })
        })
        .await
    }

    /// Closes the conversation, its clones, and all conversations that share its state. Running
    /// turns are cancelled and keep the answer so far. After this method returns, another process
    /// can open the state folder.
    ///
    /// When the last of these conversations is dropped, and no turn is running, the state is closed
    /// in the background, and nothing is lost.
    pub async fn close(self) {
        self.inner.state.close().await;
    }

    async fn ask<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Error> {
        Ok(self.inner.services.engine.ask(operation).await?)
    }

    /// Runs an operation in the engine, with the session's settings and costs.
    async fn ask_in_context<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine, SessionContext) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Error> {
        let (id, model) = (self.inner.id, self.inner.model.clone());
        let providers = self.inner.services.providers.clone();
        self.ask(move |engine| {
            let row = engine.row(id)?;
            let context = providers.turn_context(engine, row, model.as_deref())?;
            operation(engine, context)
        })
        .await
    }
}

/// Returns the costs of a session with the smaller one of its budget and the model's limit.
fn limited(context: SessionContext) -> Costs {
    let budget = context.settings.turn.max_tokens.unwrap_or(u64::MAX);
    let mut costs = context.costs;
    costs.model.limit = costs.model.limit.min(budget);
    costs
}
