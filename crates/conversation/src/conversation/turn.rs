//! A turn with a model: its options, its events, and its reply.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::DropGuard;

use super::error::{Refusal, check_range};
use super::tool::{self, WaitingTurns};
use super::{Conversation, Error, Message};
use crate::agent::tools::CalledTool;
use crate::agent::{
    self, Approvals, ChatRequest, Decision, EventSink, Job, Later, MAX_ROUNDS, Reply, TurnEvent,
};
use crate::curation::config::{Range, SettingValue, TurnConfig};
use crate::engine::Caller;
use crate::provider::chat::{OutputSchema, ToolChoice};
use crate::session::message::Phase;

/// Maximum number of unread events before the turn waits for the reader. Up to the same number of
/// further events, such as results of tools, may follow without waiting.
const WAITING: usize = 256;
/// Possible ratings of an answer's coherence.
const RATINGS: Range = Range::Ratio(0.0, 1.0);
/// Possible sampling temperatures.
const TEMPERATURES: Range = Range::Ratio(0.0, 2.0);
/// Possible numbers of requests that offer tools.
const ROUNDS: Range = Range::Count(0, 1_000);

/// A turn that has not begun. Await it for the [`Reply`], or [`stream`](Self::stream) its events.
#[derive(Debug)]
#[must_use = "a turn does nothing until it is awaited or streamed"]
pub struct Turn {
    conversation: Conversation,
    /// The user's message; `None` to ask the last question again.
    message: Option<Message>,
    phase: Option<Phase>,
    provider: Option<String>,
    model: Option<String>,
    max_tokens: Option<u64>,
    coherence: Option<f64>,
    max_rounds: u64,
    temperature: Option<f64>,
    tools: Option<Vec<String>>,
    choice: ToolChoice,
    output: Option<OutputSchema>,
}

impl Turn {
    pub(super) fn new(conversation: Conversation, message: Option<Message>) -> Self {
        Self {
            conversation,
            message,
            phase: None,
            provider: None,
            model: None,
            max_tokens: None,
            coherence: None,
            max_rounds: MAX_ROUNDS,
            temperature: None,
            tools: None,
            choice: ToolChoice::default(),
            output: None,
        }
    }

    /// Chooses the provider by name. The default is the provider that has the name or model set by
    /// [`Builder::model`](super::Builder::model), or else the first provider.
    pub fn provider(self, name: impl Into<String>) -> Self {
        Self { provider: Some(name.into()), ..self }
    }

    /// Chooses the model. Without [`provider`](Self::provider), this also chooses a provider that
    /// has this name or this model, if there is one.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the maximum number of tokens in a window of this turn.
    pub fn max_tokens(self, max_tokens: u64) -> Self {
        Self { max_tokens: Some(max_tokens), ..self }
    }

    /// Sets a rating of the last answer's coherence, from 0 to 1, which affects the quality of the
    /// context.
    pub fn coherence(self, rating: f64) -> Self {
        Self { coherence: Some(rating), ..self }
    }

    /// Sets the maximum number of requests to the model that offer tools, at most 1,000; 8 by
    /// default. Tool calls
    /// in the answer to the last of these requests are refused, and the model is asked to answer
    /// without tool calls.
    pub fn max_rounds(self, max_rounds: u64) -> Self {
        Self { max_rounds, ..self }
    }

    /// Sets the sampling temperature, from 0 to 2: 0 picks the likeliest tokens, and higher values give more
    /// varied answers.
    pub fn temperature(self, temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..self }
    }

    /// Sets the phase of the work, which decides which sections the window has.
    pub fn phase(self, phase: Phase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Offers the model only the tools with these names; by default, all tools of the conversation.
    pub fn tools<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { tools: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Says whether the model has to call a tool in its first answer of the turn, and which one. In
    /// the later answers of the turn, the model chooses.
    pub fn tool_choice(self, choice: ToolChoice) -> Self {
        Self { choice, ..self }
    }

    /// Asks for an answer in the form of JSON that a schema describes. What servers accept as a
    /// schema differs; most want an object that requires each of its properties and no others.
    pub fn output(self, schema: OutputSchema) -> Self {
        Self { output: Some(schema), ..self }
    }

    /// Begins the turn and returns a stream of its events, which arrive as they happen. Dropping
    /// the stream early cancels the turn, and keeps the question and the answer so far.
    ///
    /// A stream that is neither read nor dropped holds up its turn and the turns after it.
    pub fn stream(self) -> TurnStream {
        let (sender, events) = mpsc::channel(2 * WAITING);
        let approvals = self.conversation.inner.services.approvals.clone();
        let (outcome, cancel) = self.begin(Arc::new(Events(sender)));
        TurnStream { events, outcome, approvals, partial: PartialReply::default(), cancel }
    }

    /// Begins the turn in a task of its own. Dropping the guard cancels the turn.
    fn begin(self, events: Arc<dyn EventSink>) -> (JoinHandle<Result<Reply, Error>>, DropGuard) {
        let inner = Arc::clone(&self.conversation.inner);
        // Closing the conversation cancels its turns, whatever they wait for.
        let cancelled = inner.services.ending.child_token();
        let guard = cancelled.clone().drop_guard();
        let runtime = inner.runtime.clone();
        // The task of the turn does not know who waits for it.
        let waiting = WaitingTurns::here();
        let turn = async move {
            if waiting.has(&self.conversation) {
                return Err(Error::Busy(inner.name.clone()));
            }
            self.check()?;
            // Turns of one conversation run one after another, whatever the handles.
            let Some(_turn) = cancelled.run_until_cancelled(inner.shared.turns.lock()).await else {
                let is_closed = inner.services.ending.is_cancelled();
                return Err(if is_closed { Error::Closed } else { Error::Cancelled });
            };
            let (services, cancelled) = (Arc::clone(&inner.services), Arc::new(cancelled));
            let job = Job { services, caller: Caller::Nobody, cancelled };
            let question = match &self.message {
                Some(question) => question.clone(),
                None => self.conversation.take_back_question().await?,
            };
            let request = self.request(&job, question.clone(), &waiting).await?;
            let answered = agent::chat(job, request, events).await;
            *inner.shared.failed() = answered.is_err().then_some(question);
            Ok(answered?)
        };
        (runtime.spawn(turn), guard)
    }

    fn check(&self) -> Result<(), Error> {
        TurnConfig { max_tokens: self.max_tokens, ..TurnConfig::default() }.check()?;
        check_range("coherence", self.coherence.map(SettingValue::Ratio), RATINGS)?;
        check_range("temperature", self.temperature.map(SettingValue::Ratio), TEMPERATURES)?;
        check_range("max-rounds", Some(SettingValue::Count(self.max_rounds)), ROUNDS)?;
        let tools = &self.conversation.inner.tools;
        tool::check_exist(self.tools.as_deref().unwrap_or_default(), tools)?;
        match &self.choice {
            ToolChoice::Tool(name) => tool::check_exist(std::slice::from_ref(name), tools),
            _ => Ok(()),
        }
    }

    async fn request(
        self,
        job: &Job,
        question: Message,
        waiting: &WaitingTurns,
    ) -> Result<ChatRequest, Error> {
        let Self { conversation, phase, provider, model, max_tokens, .. } = self;
        let Self { coherence, max_rounds, temperature, tools, choice, output, .. } = self;
        let inner = &conversation.inner;
        let all = || inner.tools.iter().map(|tool| tool.name().to_owned()).collect();
        let tools = tools.unwrap_or_else(all);
        let phase = phase.or(question.phase);
        let question = Message { phase, ..question };
        let counted = job.aside("a turn", move |job| question.counted(&job.counter())).await?;
        let toolbox = inner.tools.iter().map(|tool| tool.for_turn(&conversation, waiting));
        Ok(ChatRequest {
            managers: None,
            restored: Vec::new(),
            session: Some(inner.name.clone()),
            message: counted,
            coherence,
            phase,
            sections: inner.sections.clone(),
            provider,
            model,
            max_rounds,
            temperature,
            max_tokens,
            summarizer: Arc::clone(&inner.summarizer),
            manage: None,
            template: None,
            toolbox: toolbox.collect(),
            tools: Some(tools),
            choice,
            output,
            allow: inner.allowed.clone(),
            if_version: None,
            key: None,
        })
    }
}

impl Conversation {
    /// Takes the last question out of view, with what follows it, and returns it.
    async fn take_back_question(&self) -> Result<Message, Error> {
        let id = self.inner.id;
        let failed = self.inner.shared.failed().clone();
        let content = failed.as_ref().map(|failed| failed.content.clone());
        let taken = self.ask(move |engine| engine.take_back_question(id, content.as_deref()));
        let taken = taken.await?;
        failed.or(taken.map(|taken| Message::from(&*taken))).ok_or_else(|| {
            let what = "the conversation has no question to ask again";
            Error::refused(Refusal::NothingToRetry, what)
        })
    }
}

impl IntoFuture for Turn {
    type Output = Result<Reply, Error>;
    type IntoFuture = Later<'static, Self::Output>;

    /// Runs the turn. Dropping the future cancels the turn. Calls that need permission are refused,
    /// since nobody receives the questions.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (outcome, _cancel) = self.begin(Arc::new(()));
            ended(outcome.await)
        })
    }
}

/// Returns the result of a turn's task. If the task was cancelled, its runtime has ended, and the
/// conversation with it.
fn ended(outcome: Result<Result<Reply, Error>, JoinError>) -> Result<Reply, Error> {
    outcome.unwrap_or_else(|error| match error.is_cancelled() {
        true => Err(Error::Closed),
        false => Err(Error::Internal(format!("the turn ended unexpectedly: {error}"))),
    })
}

/// The events of a turn, in order. For the turn's reply, call [`reply`](Self::reply).
///
/// This is a [`Stream`]. To read the events without the `Stream` trait, call [`next`](Self::next).
#[must_use = "dropping the stream cancels the turn"]
pub struct TurnStream {
    events: mpsc::Receiver<TurnEvent>,
    outcome: JoinHandle<Result<Reply, Error>>,
    approvals: Approvals,
    partial: PartialReply,
    cancel: DropGuard,
}

/// What there was of a turn when it was cancelled.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartialReply {
    /// Text of the last answer, as far as it came.
    pub text: String,
    /// Reasoning of the model for the last answer, as far as it came.
    pub reasoning: String,
    /// Tool calls that have ended, in order.
    pub calls: Vec<CalledTool>,
    /// The whole reply, if the turn ended before it could be cancelled.
    pub reply: Option<Box<Reply>>,
    /// Calls that have no result yet: id and arguments.
    open: Vec<(String, String)>,
}

impl PartialReply {
    fn add(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Text(text) => self.text += text,
            TurnEvent::Reasoning(text) => self.reasoning += text,
            TurnEvent::ToolCall { id, arguments, .. } => {
                self.open.push((id.clone(), arguments.clone()));
            }
            TurnEvent::ToolResult { id, tool, outcome, text } => {
                let at = self.open.iter().position(|(open, _)| open == id);
                let arguments = at.map(|at| self.open.remove(at).1).unwrap_or_default();
                let (id, tool, outcome) = (id.clone(), tool.clone(), *outcome);
                self.calls.push(CalledTool { id, tool, arguments, outcome, text: text.clone() });
                // The next answer begins.
                self.text.clear();
                self.reasoning.clear();
            }
            TurnEvent::Status(_) | TurnEvent::Retry(_) | TurnEvent::Approval(_) => {}
        }
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waiting, ended) = (self.events.len(), self.outcome.is_finished());
        let mut shown = formatter.debug_struct("TurnStream");
        shown.field("waiting", &waiting).field("ended", &ended).finish_non_exhaustive()
    }
}

impl TurnStream {
    /// Returns the next event; `None` after the turn has ended.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        let event = self.events.recv().await?;
        self.partial.add(&event);
        Some(event)
    }

    /// Cancels the turn, waits for its end, and returns what there was of it. The conversation
    /// keeps the question and the answer so far.
    ///
    /// # Errors
    /// Any [`Error`] of a turn but [`Error::Cancelled`].
    pub async fn cancel(self) -> Result<PartialReply, Error> {
        let Self { mut events, outcome, mut partial, cancel, .. } = self;
        drop(cancel);
        while let Some(event) = events.recv().await {
            partial.add(&event);
        }
        match ended(outcome.await) {
            Ok(reply) => Ok(PartialReply { reply: Some(Box::new(reply)), ..partial }),
            Err(Error::Cancelled) => Ok(partial),
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of the turn and returns its reply. Skips unread events, and refuses calls
    /// that still need permission.
    ///
    /// # Errors
    /// Any [`Error`] of a turn.
    pub async fn reply(mut self) -> Result<Reply, Error> {
        while let Some(event) = self.next().await {
            if let TurnEvent::Approval(approval) = event {
                self.approvals.answer(approval.number, Decision::Refuse);
            }
        }
        ended((&mut self.outcome).await)
    }
}

impl Stream for TurnStream {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        let polled = self.events.poll_recv(context);
        if let Poll::Ready(Some(event)) = &polled {
            self.partial.add(event);
        }
        polled
    }
}

/// The sender of a turn's events to its stream.
struct Events(mpsc::Sender<TurnEvent>);

impl EventSink for Events {
    fn send(&self, event: TurnEvent) -> bool {
        self.0.try_send(event).is_ok()
    }

    fn room(&self) -> Later<'_, ()> {
        // Only waits: the reserved room is released at once, for the next events.
        Box::pin(async { drop(self.0.reserve_many(WAITING).await) })
    }
}
