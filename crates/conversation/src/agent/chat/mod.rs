//! A turn with a model, from the user's words to the answer in the log.
//!
//! The engine processes the turn, a note-taker writes notes if the request or the settings ask for
//! them, a window is built, and the answer is streamed. Tool calls in the answer are carried out,
//! and the model is asked again. If anything fails after the user's message is in the log, the
//! message stays there, together with any part of the answer that was received. If there is no such
//! part, the message is taken out of the conversation, so that it can be asked again.

mod begun;
mod calls;
mod count;
mod fit;
mod log;
mod reply;
mod schema;
mod turn;

use std::sync::Arc;

pub use self::begun::MAX_ROUNDS;
pub use self::calls::MAX_CALLS;
pub use self::count::{RequestCount, count};
pub use self::reply::Preview;
pub use self::reply::Reply;
use super::notes::WantedNotes;
use super::tools::OfferedTool;
use super::{AgentError, AvailableModel, Embedded, EventSink, Job};
use crate::curation::notes::{NotesOptions, directive};
use crate::curation::section::Sections;
use crate::curation::summary::Summarizer;
use crate::engine::{Engine, NewMessage, SessionSettings};
use crate::provider::chat::{OutputSchema, ToolChoice};
use crate::session::message::Phase;
use crate::store::session::SessionRow;

/// A request for a turn with a model.
pub struct ChatRequest {
    /// Name of the session; the current one by default.
    pub session: Option<String>,
    /// The user's message.
    pub message: NewMessage,
    /// Coherence of the last answer, from 0 to 1, if the answer was rated.
    pub coherence: Option<f64>,
    /// Phase of the work.
    pub phase: Option<Phase>,
    /// Texts to include with the conversation.
    pub sections: Sections,
    /// Name of the provider; by default, [`Providers::chosen`](super::Providers::chosen) finds one.
    pub provider: Option<String>,
    /// Name of the model; by default, the one configured for `provider`. Without a provider, the
    /// session's model is used, or else the default one.
    pub model: Option<String>,
    /// Maximum number of requests with tools; see [`MAX_ROUNDS`].
    pub max_rounds: u64,
    /// Sampling temperature; by default the provider's.
    pub temperature: Option<f64>,
    /// Maximum number of tokens in a window of the turn; by default, the session's setting.
    pub max_tokens: Option<u64>,
    /// Summarizer to use if older turns are summarized in this turn.
    pub summarizer: Arc<dyn Summarizer + Send + Sync>,
    /// True to take notes for this turn, false to take none. By default, notes are taken if
    /// `template` is given or the session's settings ask for notes. A directive in the message to
    /// take notes takes precedence.
    pub manage: Option<bool>,
    /// Name of the template for the notes; by default, the session's.
    pub template: Option<String>,
    /// All tools from which to choose.
    pub toolbox: Vec<Arc<dyn OfferedTool>>,
    /// Names of the tools that the model may call; by default, the tools in the session's settings,
    /// and the tools that every turn offers.
    pub tools: Option<Vec<String>>,
    /// Whether the model has to call a tool in its first answer.
    pub choice: ToolChoice,
    /// The form of the answer; `None` for text.
    pub output: Option<OutputSchema>,
    /// Names of the tools that the model may call without permission each time, besides those in
    /// the session's settings.
    pub allow: Vec<String>,
    /// Managers whose items to include; by default those of the session.
    pub managers: Option<Vec<String>>,
    /// Numbers of messages to bring back into the windows of the turn.
    pub restored: Vec<u64>,
    /// Key by which the request is recognized if it is repeated.
    pub key: Option<String>,
    /// Version that the session must have when the question is logged.
    pub if_version: Option<u64>,
}

/// A turn of a chat, with the settings of its session.
struct ChatTurn {
    job: Job,
    events: Arc<dyn EventSink>,
    configured: AvailableModel,
    row: SessionRow,
    request: ChatRequest,
    embedded: Embedded,
    /// The notes to take, if any.
    notes: Option<WantedNotes>,
    /// Tools that the model may call.
    tools: Vec<Arc<dyn OfferedTool>>,
    /// Managers that the model's tools reach: those whose items the turn shows, and the session's
    /// own.
    managers: Vec<String>,
    /// Names of the tools that the session's settings allow the model to call without permission
    /// each time.
    stored: Vec<String>,
}

/// Takes a turn with a model. Once begun, it continues even if the returned future is dropped.
/// After `job` is cancelled, the turn ends soon and keeps the part of the answer that has arrived.
///
/// # Errors
/// Any [`AgentError`]. Once the user's message is in the log, all errors are
/// [`AgentError::InTurn`].
pub async fn chat(
    job: Job,
    request: ChatRequest,
    events: Arc<dyn EventSink>,
) -> Result<Reply, AgentError> {
    let embedded = job.embed(&request.message.content).await?;
    let turns = job.services.turns.clone();
    let chat = hold(job, request, embedded, events);
    turns.spawn(chat).await.unwrap_or(Err(AgentError::Defect(TURN)))
}

/// Returns the request that would be sent, without sending it. Does not search for memories.
/// Changes nothing but live items, which are brought up to date.
///
/// # Errors
/// Any [`AgentError`].
pub async fn preview(job: Job, request: ChatRequest) -> Result<Preview, AgentError> {
    let session = request.session.clone();
    let expected = request.if_version;
    let read = move |engine: &mut Engine| {
        let found = engine.find_with_settings(session.as_deref())?;
        engine.expect_session(found.0.id, expected)?;
        Ok(found)
    };
    let session = job.ask(read).await?;
    ChatTurn::prepare(job, request, Embedded::default(), Arc::new(()), session)?.preview().await
}

/// Part that is said to have a defect if a turn panics.
const TURN: &str = "a turn; other turns keep running";

/// Takes the turn from beginning to end. Until it ends, other turns of the session are refused.
async fn hold(
    job: Job,
    request: ChatRequest,
    embedded: Embedded,
    events: Arc<dyn EventSink>,
) -> Result<Reply, AgentError> {
    let (engine, session) = (job.services.engine.clone(), request.session.clone());
    let session = job.ask(move |engine| engine.begin_turn(session.as_deref())).await?;
    let id = session.0.id;
    let outcome = match ChatTurn::prepare(job, request, embedded, events, session) {
        Ok(chat) => tokio::spawn(chat.turn()).await.unwrap_or(Err(AgentError::Defect(TURN))),
        Err(error) => Err(error),
    };
    // A successful turn was already ended when its answer was stored.
    if let Err(error) = &outcome {
        let question = match error {
            AgentError::InTurn { question, .. } => Some(*question),
            _ => None,
        };
        let end = move |engine: &mut Engine| {
            engine.end_turn(id);
            question.map_or(Ok(()), |question| engine.withdraw(id, question))
        };
        // If the engine has ended, so has the turn.
        if let Err(error) = engine.ask(end).await {
            tracing::warn!("cannot take back a question without an answer: {error}");
        }
    }
    outcome
}

/// Chooses tools by their names. Without names, chooses the tools in the session's settings and the
/// tools that every turn offers. If several tools have the same name, the first is used.
fn chosen(
    toolbox: &[&Arc<dyn OfferedTool>],
    names: Option<&[String]>,
    of_session: &[String],
) -> Vec<Arc<dyn OfferedTool>> {
    let unasked = toolbox.iter().filter(|tool| names.is_none() && tool.is_offered_unasked());
    let unasked = unasked.map(|tool| tool.name());
    let mut tools: Vec<Arc<dyn OfferedTool>> = Vec::new();
    for name in names.unwrap_or(of_session).iter().map(|name| &**name).chain(unasked) {
        let is_new = !tools.iter().any(|tool| tool.name() == name);
        let found = toolbox.iter().find(|tool| is_new && tool.name() == name);
        tools.extend(found.map(|tool| Arc::clone(tool)));
    }
    tools
}

impl ChatTurn {
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
        let template = directed.or(request.template.clone());
        let notes = managed.then(|| WantedNotes {
            template: template.unwrap_or_else(|| settings.template_name().to_owned()),
            said: NotesOptions::default(),
        });
        let toolbox: Vec<_> = request.toolbox.iter().filter(|tool| tool.is_for(&row)).collect();
        let tools = chosen(&toolbox, request.tools.as_deref(), &settings.tools);
        let mut managers = request.managers.clone().unwrap_or_else(|| settings.managers(&row));
        if !managers.contains(&row.manager_name()) {
            managers.push(row.manager_name());
        }
        let stored = settings.allowed_tools;
        Ok(Self { job, events, configured, row, request, embedded, notes, tools, managers, stored })
    }

    /// Waits until the caller cancels the turn or the server ends.
    async fn given_up(&self) {
        tokio::select! {
            () = self.job.cancelled.cancelled() => {}
            () = self.job.services.ending.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests;
