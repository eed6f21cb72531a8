//! A turn with a model, from the user's words to the answer in the log.
//!
//! The turn is processed as the engine does it, notes are taken of its history if they are to be, a
//! window is built, and the answer is streamed. The tools that it calls are carried out, and the
//! model is asked again. Once the user's message is in the log, whatever fails leaves it there, with
//! what came of an answer.

mod begun;
mod calls;
mod fit;
mod log;
mod reply;
mod turn;

use std::sync::Arc;

pub use self::reply::{Preview, Reply};
use super::notes::Wish;
use super::tools::OfferedTool;
use super::{AgentError, Configured, Embedded, EventSink, Job};
use crate::curation::notes::{NotesOptions, directive};
use crate::curation::section::Sections;
use crate::curation::summary::Summarizer;
use crate::engine::{Engine, NewMessage, SessionSettings};
use crate::session::message::Phase;
use crate::store::session::SessionRow;

/// A request to a model, with all that decides on the turn.
pub struct ChatRequest {
    /// Name of the session; the current one by default.
    pub session: Option<String>,
    /// The user's message.
    pub message: NewMessage,
    /// Coherence of the last answer from 0 to 1, if it was judged.
    pub coherence: Option<f64>,
    /// Phase of the work.
    pub phase: Option<Phase>,
    /// Texts besides the conversation.
    pub sections: Sections,
    /// Name of the provider; see [`Providers::chosen`](super::Providers::chosen).
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Maximum number of tokens in a window of the turn; by default the session decides.
    pub max_tokens: Option<u64>,
    /// Describes older turns when they are summarized.
    pub summarizer: Arc<dyn Summarizer + Send + Sync>,
    /// Turns notes on or off for this turn; by default the session decides.
    pub manage: Option<bool>,
    /// Template for the notes.
    pub template: Option<String>,
    /// All the tools that there are.
    pub toolbox: Vec<Arc<dyn OfferedTool>>,
    /// Names of the tools that the model may call; by default those of the session.
    pub tools: Option<Vec<String>>,
    /// Names of the tools that it may call without being allowed to each time, besides those of the
    /// session.
    pub allow: Vec<String>,
    /// Name by which a repeated request is known.
    pub key: Option<String>,
}

/// A turn of a chat, with what the session's settings say of it.
struct Chat {
    job: Job,
    events: Arc<dyn EventSink>,
    configured: Configured,
    row: SessionRow,
    message: NewMessage,
    coherence: Option<f64>,
    phase: Option<Phase>,
    sections: Sections,
    embedded: Embedded,
    key: Option<String>,
    max_tokens: Option<u64>,
    summarizer: Arc<dyn Summarizer + Send + Sync>,
    /// The notes to be taken, if any.
    notes: Option<Wish>,
    /// Tools that the model may call.
    tools: Vec<Arc<dyn OfferedTool>>,
    /// Names of those that it may call without being allowed to each time.
    allowed: Vec<String>,
}

/// Takes a turn with a model. The turn goes on when what this returns is dropped, and ends soon after
/// its job is cancelled; then it has kept what had come.
///
/// # Errors
/// Every [`AgentError`]; [`AgentError::InTurn`] once the question is in the log.
pub async fn chat(
    job: Job,
    request: ChatRequest,
    events: Arc<dyn EventSink>,
) -> Result<Reply, AgentError> {
    let embedded = job.embed(&request.message.content).await?;
    let turns = job.services.turns.clone();
    let chat = hold(job, request, embedded, events);
    turns.spawn(chat).await.unwrap_or_else(|_| Err(broken()))
}

/// Returns what would be sent, without sending or changing anything. It looks for no memories.
///
/// # Errors
/// Every [`AgentError`].
pub async fn preview(job: Job, request: ChatRequest) -> Result<Preview, AgentError> {
    let session = request.session.clone();
    let read = move |engine: &mut Engine| engine.find_with_settings(session.as_deref());
    let session = job.ask(read).await?;
    Chat::prepare(job, request, Embedded::default(), Arc::new(()), session)?.preview().await
}

fn broken() -> AgentError {
    AgentError::Defect("chat; the server goes on")
}

/// Takes the whole turn. Other turns of the session are refused meanwhile.
async fn hold(
    job: Job,
    request: ChatRequest,
    embedded: Embedded,
    events: Arc<dyn EventSink>,
) -> Result<Reply, AgentError> {
    let (engine, session) = (job.services.engine.clone(), request.session.clone());
    let session = job.ask(move |engine| engine.begin_turn(session.as_deref())).await?;
    let id = session.0.id;
    let outcome = match Chat::prepare(job, request, embedded, events, session) {
        Ok(chat) => tokio::spawn(chat.turn()).await.unwrap_or_else(|_| Err(broken())),
        Err(error) => Err(error),
    };
    // A turn that succeeds has ended with its answer.
    if outcome.is_err() {
        let end = move |engine: &mut Engine| {
            engine.end_turn(id);
            Ok(())
        };
        engine.ask(end).await?;
    }
    outcome
}

impl Chat {
    fn prepare(
        job: Job,
        request: ChatRequest,
        embedded: Embedded,
        events: Arc<dyn EventSink>,
        (row, settings): (SessionRow, SessionSettings),
    ) -> Result<Self, AgentError> {
        let (provider, model) = (request.provider.as_deref(), request.model.as_deref());
        let configured = job.services.providers.chosen(provider, model, &settings)?;
        let directed = directive(&request.message.content).map(|(name, _)| name.to_owned());
        let managed = directed.is_some()
            || request.manage.unwrap_or(request.template.is_some() || settings.manage);
        let template = directed.or(request.template);
        let notes = managed.then(|| Wish {
            template: template.unwrap_or_else(|| settings.template_name().to_owned()),
            said: NotesOptions::default(),
        });
        let names = request.tools.unwrap_or(settings.tools);
        let named =
            |name: &String| request.toolbox.iter().find(|tool| tool.name() == name).cloned();
        let tools = names.iter().filter_map(named).collect();
        let mut allowed = settings.allowed_tools;
        allowed.extend(request.allow);
        Ok(Self {
            job,
            events,
            configured,
            row,
            message: request.message,
            coherence: request.coherence,
            phase: request.phase,
            sections: request.sections,
            embedded,
            key: request.key,
            max_tokens: request.max_tokens,
            summarizer: request.summarizer,
            notes,
            tools,
            allowed,
        })
    }

    /// Waits until nobody wants the turn any more: its caller, or a server that ends.
    async fn given_up(&self) {
        tokio::select! {
            () = self.job.cancelled.cancelled() => {}
            () = self.job.services.ending.cancelled() => {}
        }
    }
}
