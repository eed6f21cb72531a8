//! Counts the tokens that a turn would send now. All such figures that clients show come from here.

use std::sync::Arc;

use serde::Serialize;

use super::turn::context;
use super::{ChatRequest, ChatTurn, TURN};
use crate::agent::window::{Built, Purpose, build_aside};
use crate::agent::{AgentError, Embedded, Job};
use crate::curation::notes::without_directive;
use crate::curation::report::{SentCount, Stable};
use crate::engine::{Engine, Material, NewMessage, Summarizing};
use crate::ids::SessionId;
use crate::store::session::SessionRow;
use crate::tokens::model::{LimitFrom, Model};

/// The number of tokens that would be sent to the model now, and its limits.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub struct RequestCount {
    /// Name of the session.
    pub session: String,
    /// Id of the session.
    pub session_id: SessionId,
    /// Name of the model; `nil` if none is chosen.
    pub model: Option<String>,
    /// Tokens that would be sent.
    pub tokens: u64,
    /// Maximum number of tokens that the model takes.
    pub limit: u64,
    /// Source of the limit; `:default` if nobody tells it, so that it is assumed.
    pub limit_from: LimitFrom,
    /// Maximum number of tokens in the window.
    pub max_tokens: u64,
    /// How many of the messages would be sent.
    pub messages: SentCount,
    /// Tokens of everything that was offered for the window.
    pub offered: u64,
    /// Comparison with the window that was sent last; `nil` if there is none. What a prompt cache
    /// can use ends where the two differ.
    pub stable: Option<Stable>,
    /// True if the counts are the model's own rather than estimates.
    pub exact: bool,
    /// True if the messages in view take more than 80 % of the model's limit.
    pub needs_pruning: bool,
}

/// Counts the tokens that a request would send now: the texts, items and messages of its window,
/// and the user's message unless it is empty. Returns the window, too. Sends nothing, and changes
/// nothing but live items, which are brought up to date.
/// Without a configured provider, counts for the model that the request, the session or the
/// configuration names, if any.
///
/// # Errors
/// Any [`AgentError`].
pub async fn count(job: Job, request: ChatRequest) -> Result<(RequestCount, Built), AgentError> {
    let name = request.session.clone();
    let (row, settings) = job.ask(move |engine| engine.find_with_settings(name.as_deref())).await?;
    let (provider, model) = (request.provider.as_deref(), request.model.as_deref());
    let (model, built) = match job.services.providers.chosen(provider, model, &settings) {
        Err(AgentError::Unconfigured) => unconfigured(&job, &row, request).await?,
        Err(error) => return Err(error),
        Ok(_) => {
            let session = (row.clone(), settings);
            let chat = ChatTurn::prepare(
                job.clone(),
                request,
                Embedded::default(),
                Arc::new(()),
                session,
            )?;
            chat.would_send().await?
        }
    };
    let (id, of_model) = (row.id, model.clone());
    let needs_pruning = job.ask(move |engine| {
        let costs = engine.costs(Some(&of_model.name))?;
        let costs = crate::engine::Costs { model: of_model, ..costs };
        Ok(engine.session_stats(id, &costs)?.needs_pruning)
    });
    let report = &built.window.report;
    let count = RequestCount {
        session: row.name,
        session_id: SessionId(id),
        needs_pruning: needs_pruning.await?,
        tokens: built.window.tokens,
        offered: report.tokens_before,
        stable: report.stable,
        max_tokens: report.max_tokens,
        messages: report.messages,
        limit: model.limit,
        limit_from: model.limit_from,
        exact: report.exact,
        model: Some(model.name).filter(|name| name != UNNAMED),
    };
    Ok((count, built))
}

/// Name of the model in the token costs if no model was chosen.
const UNNAMED: &str = "default";

impl ChatTurn {
    /// Builds the window that would be sent, and returns it with the model. Leaves out the user's
    /// message if it is empty. If the turn would summarize older turns, the window has a summary
    /// without a description by a model.
    pub(super) async fn would_send(&self) -> Result<(Model, Built), AgentError> {
        self.configured.find_limit().await;
        let mut material = self.read_material().await?;
        let model = material.context.costs.model.clone();
        let message = self.request.message.clone();
        say(&self.job, &mut material, message.clone()).await?;
        if !message.content.is_empty() {
            self.summarize(&mut material, message).await?;
        }
        Ok((model, self.build_with(material, String::new(), None).await?))
    }
}

impl ChatTurn {
    /// Puts a summary into the material if the turn with this message would make one.
    async fn summarize(
        &self,
        material: &mut Material,
        message: NewMessage,
    ) -> Result<(), AgentError> {
        let (id, configured, max_tokens) =
            (self.row.id, self.configured.clone(), self.request.max_tokens);
        let ahead = self.job.ask(move |engine| {
            let row = engine.row(id)?;
            let context = context(engine, row, &configured, max_tokens)?;
            engine.turn_ahead(&context, &message)
        });
        let Some(ahead) = ahead.await? else { return Ok(()) };
        let made = self.job.aside(TURN, move |_| {
            let numbers: Vec<u64> = ahead.messages.iter().map(|folded| folded.number).collect();
            ahead.summary().ok().map(|made| (made, numbers))
        });
        let Some((made, numbers)) = made.await? else { return Ok(()) };
        let text = Arc::<str>::from(made.render());
        let before = material.summary.take().map(|summary| summary.covers);
        let mut covers = before.unwrap_or_default();
        numbers.into_iter().for_each(|number| covers.insert(number, number));
        let position = material.messages.last().map_or(0, |last| last.number);
        let tokens = self.job.services.counter.count(&text);
        material.summary = Some(Summarizing { text, tokens, covers, position, source: Some(made) });
        Ok(())
    }
}

/// Builds the window for a session while no provider is configured, and returns it with the model.
async fn unconfigured(
    job: &Job,
    row: &SessionRow,
    request: ChatRequest,
) -> Result<(Model, Built), AgentError> {
    let (row, model, managers) = (row.clone(), request.model, request.managers);
    let read = move |engine: &mut Engine| {
        let mut context = engine.context_of(row, model.as_deref())?;
        context.managers = managers.unwrap_or(context.managers);
        engine.material(context)
    };
    let mut material = job.ask(read).await?;
    say(job, &mut material, request.message).await?;
    let model = material.context.costs.model.clone();
    let purpose = Purpose {
        phase: request.phase,
        may_grow: true,
        sections: request.sections,
        ..Purpose::default()
    };
    Ok((model, build_aside(job, TURN, material, purpose).await?))
}

/// Adds the user's message to the end of the material, unless the message is empty.
async fn say(job: &Job, material: &mut Material, message: NewMessage) -> Result<(), AgentError> {
    if message.content.is_empty() {
        return Ok(());
    }
    let id = material.context.row.id;
    let number = job.ask(move |engine| Ok(engine.session(id)?.length())).await? + 1;
    // The cached words are found by message number, and a later message may get the number of this
    // one.
    material.words = None;
    material.said += 1;
    material.messages.push(without_directive(&Arc::new(message.into_message(number, 0))));
    Ok(())
}
