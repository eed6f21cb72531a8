//! A turn with a model: its options, its events, and its reply.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::DropGuard;

use super::{Conversation, Error, Message, tool};
use crate::agent::{
    self, Approvals, ChatRequest, Decision, EventSink, Job, Later, MAX_ROUNDS, Reply, TurnEvent,
};
use crate::engine::Caller;
use crate::session::message::Phase;

/// Maximum number of unread events before the turn waits for the reader. Up to the same number of
/// further events, such as results of tools, may follow without waiting.
const WAITING: usize = 256;

/// A turn that has not begun. Await it for the [`Reply`], or [`stream`](Self::stream) its events.
#[derive(Debug)]
#[must_use = "a turn does nothing until it is awaited or streamed"]
pub struct Turn {
    conversation: Conversation,
    message: Message,
    provider: Option<String>,
    model: Option<String>,
    max_tokens: Option<u64>,
    coherence: Option<f64>,
    max_rounds: u64,
    temperature: Option<f64>,
    tools: Option<Vec<String>>,
}

impl Turn {
    pub(super) fn new(conversation: Conversation, message: Message) -> Self {
        Self {
            conversation,
            message,
            provider: None,
            model: None,
            max_tokens: None,
            coherence: None,
            max_rounds: MAX_ROUNDS,
            temperature: None,
            tools: None,
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

    /// Sets the maximum number of requests to the model that offer tools; 8 by default. Tool calls
    /// in the answer to the last of these requests are refused, and the model is asked to answer
    /// without tool calls.
    pub fn max_rounds(self, max_rounds: u64) -> Self {
        Self { max_rounds, ..self }
    }

    /// Sets the sampling temperature: 0 picks the likeliest tokens, and higher values give more
    /// varied answers.
    pub fn temperature(self, temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..self }
    }

    /// Sets the phase of the work, which decides which sections the window has.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.message.phase = Some(phase);
        self
    }

    /// Offers the model only the tools with these names; by default, all tools of the conversation.
    pub fn tools<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { tools: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Begins the turn and returns a stream of its events, which arrive as they happen. Dropping
    /// the stream early cancels the turn, and keeps the question and the answer so far.
    ///
    /// A stream that is neither read nor dropped holds up its turn and the turns after it. So does
    /// a tool that awaits a turn of its own conversation.
    pub fn stream(self) -> TurnStream {
        let (sender, events) = mpsc::channel(2 * WAITING);
        let approvals = self.conversation.inner.services.approvals.clone();
        let (outcome, cancel) = self.begin(Arc::new(Events(sender)));
        TurnStream { events, outcome, approvals, _cancel: cancel }
    }

    /// Begins the turn in a task of its own. Dropping the guard cancels the turn.
    fn begin(self, events: Arc<dyn EventSink>) -> (JoinHandle<Result<Reply, Error>>, DropGuard) {
        let inner = Arc::clone(&self.conversation.inner);
        // Closing the conversation cancels its turns, whatever they wait for.
        let cancelled = inner.services.ending.child_token();
        let guard = cancelled.clone().drop_guard();
        let runtime = inner.runtime.clone();
        let turn = async move {
            // Turns of one conversation run one after another.
            let Some(_turn) = cancelled.run_until_cancelled(inner.turns.lock()).await else {
                let is_closed = inner.services.ending.is_cancelled();
                return Err(if is_closed { Error::Closed } else { Error::Cancelled });
            };
            let (services, cancelled) = (Arc::clone(&inner.services), Arc::new(cancelled));
            let job = Job { services, caller: Caller::Nobody, cancelled };
            let request = self.request(&job).await?;
            Ok(agent::chat(job, request, events).await?)
        };
        (runtime.spawn(turn), guard)
    }

    async fn request(self, job: &Job) -> Result<ChatRequest, Error> {
        let Self { conversation, message, provider, model, max_tokens, .. } = self;
        let Self { coherence, max_rounds, temperature, tools, .. } = self;
        let inner = &conversation.inner;
        let all = || inner.tools.iter().map(|tool| tool.name().to_owned()).collect();
        let tools = tools.unwrap_or_else(all);
        tool::check_exist(&tools, &inner.tools)?;
        let phase = message.phase;
        let counted = job.aside("a turn", move |job| message.counted(&job.counter())).await?;
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
            toolbox: inner.tools.clone(),
            tools: Some(tools),
            allow: inner.allowed.clone(),
            if_version: None,
            key: None,
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
    _cancel: DropGuard,
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
        self.events.recv().await
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
        self.events.poll_recv(context)
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
