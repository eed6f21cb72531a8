//! The course of a turn: logs the question, builds a window, asks the model, and logs the answer.

use std::sync::Arc;

use super::begun::TurnState;
use super::{ChatTurn, Reply, TURN};
use crate::agent::notes::{self, TurnNotes};
use crate::agent::summary::{Described, DescriptionOutcome, described};
use crate::agent::window::{Built, Purpose, build_aside};
use crate::agent::{AgentError, AvailableModel, BrokenOff, TurnEvent};
use crate::curation::section::{CountedText, Section};
use crate::curation::summary::Summarizer;
use crate::curation::window::Window;
use crate::engine::{
    AskedWindow, Engine, EngineError, Material, NewTurn, SessionContext, Versioned,
};
use crate::provider::ProviderError;
use crate::provider::chat::{Request, Response, StreamEvent, Usage, cancelled, malformed};
use crate::session::message::{Message, ToolCall};
use crate::store::session::{SessionRow, Spent};
use crate::visible::visible;

/// A summarizer that turns can share.
type SharedSummarizer = dyn Summarizer + Send + Sync;

/// Maximum number of calls in one answer; an answer with more is malformed.
const MAX_CALLS_HEARD: usize = 128;

impl ChatTurn {
    /// Takes the turn. Once the question is in the log, every error says that it is there, even
    /// after a panic. The error after a panic has no answers.
    pub(super) async fn turn(self) -> Result<Reply, AgentError> {
        self.configured.find_limit().await;
        self.expect_room().await?;
        let (begun, answered) = self.begin().await?;
        if let Some(said) = answered {
            let whole = Response { text: said.content.to_string(), ..Response::default() };
            return Ok(self.reply(begun, whole, Some(said.number)));
        }
        let question = begun.turn.message;
        let in_turn =
            |error| AgentError::InTurn { question, answer: None, source: Box::new(error) };
        tokio::spawn(self.rest(begun))
            .await
            .unwrap_or_else(|_| Err(in_turn(AgentError::Defect(TURN))))
    }

    /// Takes the rest of the turn, after its question was logged.
    async fn rest(self, mut begun: TurnState) -> Result<Reply, AgentError> {
        match self.answered(&mut begun).await {
            Ok((whole, answer)) => Ok(self.reply(begun, whole, answer)),
            Err(error @ AgentError::InTurn { .. }) => Err(error),
            Err(error) => {
                let (question, source) = (begun.turn.message, Box::new(error));
                let answer = begun.answer.map(|number| BrokenOff { message: Some(number) });
                Err(AgentError::InTurn { question, answer, source })
            }
        }
    }

    /// Asks the model, and carries out its calls, until an answer has no calls. Returns that answer
    /// and, if any answer was logged, the number of the last one's message.
    async fn answered(&self, begun: &mut TurnState) -> Result<(Response, Option<u64>), AgentError> {
        if let Some(why) = &self.embedded.failure {
            self.status(format!("memories are searched by words only, since the embedding {why}"));
        }
        if begun.turn.summarized.is_some() {
            self.status("older turns were summarized".to_owned());
        }
        if let Some(wish) = &self.notes {
            self.status(format!("taking notes with the template {}", visible(&wish.template)));
            let managed = notes::manage(&self.job, self.row.id, wish, &self.configured).await?;
            self.report_notes(begun, &managed);
            begun.managed = Some(managed);
        }
        loop {
            let mut whole = self.answer(begun).await?;
            if self.is_last_word(begun) {
                // Some models make calls even when calls are forbidden.
                whole.calls.clear();
            }
            if whole.calls.is_empty() || self.tools.is_empty() {
                let answer = self.end_with(begun, &whole).await?.or(begun.answer);
                return Ok((whole, answer));
            }
            self.carry_out(begun, &whole).await?;
        }
    }

    /// Returns whether the latest request must forbid tool calls.
    pub(super) fn is_last_word(&self, begun: &TurnState) -> bool {
        begun.rounds > self.request.max_rounds
    }

    fn status(&self, phrase: String) {
        self.events.send(TurnEvent::Status(phrase));
    }

    /// Logs the question and processes the turn. If an earlier request with the same key has a
    /// complete answer, returns that answer too. An earlier request with a partial answer or none
    /// is continued.
    async fn begin(&self) -> Result<(TurnState, Option<Arc<Message>>), AgentError> {
        let (id, message) = (self.row.id, self.request.message.clone());
        let vector = self.embedded.vector.clone();
        let (key, configured) = (self.request.key.clone(), self.configured.clone());
        let (summarizer, described) = self.summarizer().await?;
        let (coherence, if_version) = (self.request.coherence, self.request.if_version);
        // With note-taking, the note-taker is asked before the window is built.
        let is_window_next = self.notes.is_none();
        let (managers, max_tokens) = (self.request.managers.clone(), self.request.max_tokens);
        let asked = self.job.ask(move |engine| {
            let row = engine.row(id)?;
            let context = context(engine, row, &configured, max_tokens)?;
            let turn = engine.once("chat", key.as_deref(), |engine| {
                engine.expect_session(id, if_version)?;
                engine.withdraw_same(id, &message.content)?;
                let turn = NewTurn { method: "chat", message, coherence, vector };
                engine.process_turn(&context, turn, &*summarizer)
            })?;
            let answered = match key {
                Some(key) => engine.answered(id, turn.message, &key)?,
                None => None,
            };
            let is_window_next = is_window_next && answered.is_none();
            let read = || material(engine, context.row, &configured, managers);
            let material = is_window_next.then(read).transpose()?;
            if answered.is_some() {
                engine.end_turn(id);
            }
            Ok((turn, answered, material, engine.version(&Versioned::Session(id))?))
        });
        let (turn, answered, material, version) = asked.await?;
        self.events.begun();
        let begun = TurnState {
            turn,
            material,
            asked: None,
            described,
            managed: None,
            rounds: 0,
            ran: Vec::new(),
            answer: None,
            usage: Usage::default(),
            cost: Some(0.0),
            window_tokens: 0,
            items: Vec::new(),
            pictures: Vec::new(),
            refused: None,
            is_budget_set: false,
            limit: 0,
            version,
        };
        Ok((begun, answered))
    }

    /// Returns the summarizer for this turn. If a summary is due and a model is configured to
    /// describe the messages that it replaces, asks this model first, and also returns the outcome
    /// of asking.
    async fn summarizer(
        &self,
    ) -> Result<(Arc<SharedSummarizer>, Option<DescriptionOutcome>), AgentError> {
        let usual = || Ok((Arc::clone(&self.request.summarizer), None));
        if self.job.services.summarizer.is_none() {
            return usual();
        }
        let (id, message) = (self.row.id, self.request.message.clone());
        let (configured, max_tokens) = (self.configured.clone(), self.request.max_tokens);
        let ahead = self.job.ask(move |engine| {
            let row = engine.row(id)?;
            let context = context(engine, row, &configured, max_tokens)?;
            engine.turn_ahead(&context, &message)
        });
        let Some(ahead) = ahead.await? else { return usual() };
        self.status("summarizing older turns".to_owned());
        let Described { prepared, outcome } = described(&self.job, ahead).await?;
        if let Some(DescriptionOutcome { provider, failure: Some(why) }) = &outcome {
            self.status(format!(
                "{provider} did not describe the summarized turns: {}",
                visible(why)
            ));
        }
        Ok((Arc::new(prepared), outcome))
    }

    /// Builds the window, and returns it with the number of its line in the usage log.
    pub(super) async fn window(
        &self,
        begun: &mut TurnState,
    ) -> Result<(Arc<Window>, u64), AgentError> {
        let built = match self.managed_window(begun).await? {
            Some(built) => built,
            None => self.build(self.material(begun).await?, begun).await?,
        };
        let Built { window, items, pictures } = built;
        begun.pictures = pictures;
        begun.window_tokens = window.tokens;
        begun.items.clone_from(&items);
        let window = Arc::new(window);
        let (id, noted) = (self.row.id, Arc::clone(&window));
        let line = self.job.ask(move |engine| engine.note_window(id, &noted, items)).await?;
        Ok((window, line))
    }

    /// Builds a window with the notes in place of the history; `None` if there are no notes. If no
    /// such window can be built, gives up the notes and returns `None`.
    async fn managed_window(&self, begun: &mut TurnState) -> Result<Option<Built>, AgentError> {
        if !begun.managed.as_ref().is_some_and(TurnNotes::has_view) {
            return Ok(None);
        }
        let mut material = self.material(begun).await?;
        if let Some(managed) = &begun.managed {
            managed.apply(&mut material);
        }
        let built = self.build(material, begun).await;
        let Some(managed) = &mut begun.managed else { return Ok(None) };
        let reason = match built {
            Ok(built) if has_summary(&built.window) => {
                managed.mark_used(&self.job.services).await;
                return Ok(Some(built));
            }
            Ok(_) => "the window has no room for the notes".to_owned(),
            Err(error) => error.to_string(),
        };
        managed.give_up(&self.job.services, reason).await;
        Ok(None)
    }

    async fn material(&self, begun: &mut TurnState) -> Result<Material, AgentError> {
        match begun.material.take() {
            Some(read) => Ok(read),
            None => self.read_material().await,
        }
    }

    pub(super) async fn read_material(&self) -> Result<Material, AgentError> {
        let (id, configured) = (self.row.id, self.configured.clone());
        let managers = self.request.managers.clone();
        let read = move |engine: &mut Engine| {
            let row = engine.row(id)?;
            material(engine, row, &configured, managers)
        };
        self.job.ask(read).await
    }

    async fn build(&self, material: Material, begun: &mut TurnState) -> Result<Built, AgentError> {
        let of_session = material.context.settings.turn.max_tokens;
        begun.is_budget_set = self.request.max_tokens.or(of_session).is_some();
        begun.limit = material.context.costs.model.limit;
        let max_tokens = begun.refused.as_ref().map(|refused| refused.max_tokens);
        self.build_with(material, begun.turn.grounding.clone(), max_tokens).await
    }

    /// Builds a window, on a thread that may block, since the files of live items are read.
    pub(super) async fn build_with(
        &self,
        material: Material,
        grounding: String,
        max_tokens: Option<u64>,
    ) -> Result<Built, AgentError> {
        let counter = &*self.job.services.counter;
        let mut sections = self.request.sections.clone();
        if sections.grounding.is_none() && !grounding.is_empty() {
            sections.grounding = Some(CountedText::new(grounding, counter));
        }
        if let Some(schemas) = self.schemas() {
            let said = sections.tool_schemas.map_or(String::new(), |said| said.text.to_string());
            sections.tool_schemas = Some(CountedText::new(said + &schemas, counter));
        }
        let (phase, of_request) = (self.request.phase, self.request.max_tokens);
        let (max_tokens, may_grow) = (max_tokens.or(of_request), of_request.is_none());
        let restored = self.request.restored.clone();
        let takes_pdf = self.configured.provider.takes_pdf();
        let purpose = Purpose {
            phase,
            max_tokens,
            may_grow,
            takes_pdf,
            sections,
            restored,
            ..Purpose::default()
        };
        build_aside(&self.job, TURN, material, purpose).await
    }

    /// Asks the model, and passes on its answer until the answer ends or the turn is cancelled.
    pub(super) async fn stream(
        &self,
        request: &Request,
        whole: &mut Response,
    ) -> Result<(), ProviderError> {
        let provider = &*self.configured.provider;
        let gone = self.given_up();
        tokio::pin!(gone);
        let mut reply = tokio::select! {
            reply = provider.chat(request) => reply?,
            () = &mut gone => return Err(cancelled(provider)),
        };
        loop {
            let piece = tokio::select! {
                piece = reply.next() => piece?,
                () = &mut gone => return Err(cancelled(provider)),
            };
            let Some(mut piece) = piece else { return Ok(()) };
            if let StreamEvent::Call(call) = &mut piece {
                call.name = self.meant(&call.name).to_owned();
            }
            let event = match &piece {
                StreamEvent::Text(text) => Some(TurnEvent::Text(text.clone())),
                StreamEvent::Reasoning(text) => Some(TurnEvent::Reasoning(text.clone())),
                StreamEvent::Call(ToolCall { id, name, arguments }) => {
                    let (id, tool) = (id.clone(), name.clone());
                    Some(TurnEvent::ToolCall { id, tool, arguments: arguments.clone() })
                }
                StreamEvent::Usage(_) | StreamEvent::Opaque(_) | StreamEvent::Stopped(_) => None,
            };
            if let Some(event) = event {
                self.events.send(event);
            }
            whole.add(piece);
            if whole.calls.len() > MAX_CALLS_HEARD {
                let what = format!("the answer makes more than {MAX_CALLS_HEARD} tool calls");
                return Err(malformed(provider, &what));
            }
            tokio::select! {
                () = self.events.room() => {}
                () = &mut gone => return Err(cancelled(provider)),
            }
        }
    }

    /// Adds the usage and cost of the answer `whole` to those of the turn, and keeps the answer's
    /// own in `begun.asked`, to be stored with the answer.
    pub(super) fn report(
        &self,
        begun: &mut TurnState,
        line: u64,
        window: &Window,
        whole: &Response,
    ) {
        let Usage { input, output, cache_read, .. } = whole.usage;
        let model = self.configured.provider.model().to_owned();
        let provider = self.configured.name.clone();
        let cost = self.configured.cost(&whole.usage);
        begun.spend(whole.usage, cost);
        let spent = Spent { provider, model, input, output, cached: cache_read, cost };
        let counted = window.tokens;
        if let Some(reported) = input {
            self.configured.rooms.compared(&spent.model, counted, reported);
        }
        begun.asked = Some(AskedWindow { line, counted, spent });
    }

    /// Adds the usage and cost of note-taking to those of the turn if a model was asked for notes.
    fn report_notes(&self, begun: &mut TurnState, managed: &TurnNotes) {
        let view = &managed.view;
        let (provider, model) = (view.provider.as_deref(), view.model.as_deref());
        if managed.cached || view.payload.is_empty() {
            return;
        }
        let (input, output) = (view.input_tokens, view.output_tokens);
        let usage = Usage { input, output, ..Usage::default() };
        let manager = self.job.services.providers.find(provider, model).ok();
        let cost = manager.and_then(|manager| manager.cost(&usage));
        begun.spend(usage, cost);
    }
}

/// Loads the session for a turn with this model, in which a window may have `max_tokens`, by
/// default what the session's settings say.
pub(super) fn context(
    engine: &mut Engine,
    row: SessionRow,
    configured: &AvailableModel,
    max_tokens: Option<u64>,
) -> Result<SessionContext, EngineError> {
    let context = engine.context_of(row, None)?;
    let mut context = configured.in_context(engine, context)?;
    context.settings.turn.max_tokens = max_tokens.or(context.settings.turn.max_tokens);
    Ok(context)
}

/// Reads what the window for this model is built from: the session's messages, and the items of the
/// given managers, or of the session's managers if none are given.
pub(super) fn material(
    engine: &mut Engine,
    row: SessionRow,
    configured: &AvailableModel,
    managers: Option<Vec<String>>,
) -> Result<Material, EngineError> {
    let mut context = context(engine, row, configured, None)?;
    context.managers = managers.unwrap_or(context.managers);
    engine.material(context)
}

fn has_summary(window: &Window) -> bool {
    window.parts.iter().any(|part| part.section == Section::Summary)
}
