//! A turn with a model: its options, its events, and its reply.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Conversation, Error, Message};
use crate::agent::{
    self, Approvals, ChatRequest, Decision, EventSink, Job, Later, Reply, TurnEvent,
};
use crate::session::message::Phase;

/// Maximum number of events that wait to be taken before the turn waits too. It may have as many
/// again that do not wait, such as results of tools.
const WAITING: usize = 256;

/// A turn with a model that has not begun. Await it for the [`Reply`], or [`stream`](Self::stream)
/// its events.
#[must_use = "a turn does nothing until it is awaited or streamed"]
pub struct Turn {
    conversation: Conversation,
    message: Message,
    provider: Option<String>,
    model: Option<String>,
    max_tokens: Option<u64>,
    coherence: Option<f64>,
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
            tools: None,
        }
    }

    /// Chooses the provider, by its name; by default the first.
    pub fn provider(self, name: impl Into<String>) -> Self {
        Self { provider: Some(name.into()), ..self }
    }

    /// Chooses another model of the provider.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the maximum number of tokens in a window of this turn.
    pub fn max_tokens(self, max_tokens: u64) -> Self {
        Self { max_tokens: Some(max_tokens), ..self }
    }

    /// Rates the coherence of the last answer, from 0 to 1, for the quality of the context.
    pub fn coherence(self, rating: f64) -> Self {
        Self { coherence: Some(rating), ..self }
    }

    /// Sets the phase of the work, which decides on the sections of the window.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.message.phase = Some(phase);
        self
    }

    /// Offers only the tools with these names; by default all tools of the conversation.
    pub fn tools<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        Self { tools: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Begins the turn, and returns its events as they happen. When the stream is dropped before
    /// its end, the turn is cancelled; the question, and what came of the answer, are kept.
    pub fn stream(self) -> TurnStream {
        let (sender, events) = mpsc::channel(2 * WAITING);
        let approvals = self.conversation.inner.services.approvals.clone();
        let (outcome, cancel) = self.begin(Arc::new(Events(sender)));
        TurnStream { events, outcome, approvals, _cancel: cancel }
    }

    /// Begins the turn in a task of its own. Dropping the guard cancels it.
    fn begin(self, events: Arc<dyn EventSink>) -> (JoinHandle<Result<Reply, Error>>, DropGuard) {
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let inner = Arc::clone(&self.conversation.inner);
        let runtime = inner.runtime.clone();
        let turn = async move {
            // Turns of a conversation come one after the other.
            let Some(_turn) = cancelled.run_until_cancelled(inner.turns.lock()).await else {
                return Err(Error::Cancelled);
            };
            let job = Job { services: Arc::clone(&inner.services), cancelled: Arc::new(cancelled) };
            let request = self.request(&job).await?;
            Ok(agent::chat(job, request, events).await?)
        };
        (runtime.spawn(turn), guard)
    }

    async fn request(self, job: &Job) -> Result<ChatRequest, Error> {
        let Self { conversation, message, provider, model, max_tokens, coherence, tools } = self;
        let inner = &conversation.inner;
        let known: Vec<&str> = inner.tools.iter().map(|tool| tool.name()).collect();
        let tools = tools.unwrap_or_else(|| known.iter().map(|name| (*name).to_owned()).collect());
        if let Some(name) = tools.iter().find(|name| !known.contains(&name.as_str())) {
            let what = format!("is not there; there are {}", known.join(", "));
            return Err(Error::Tool { name: name.clone(), what });
        }
        let phase = message.phase;
        let counted = job.aside("a turn", move |job| message.counted(&job.counter())).await?;
        Ok(ChatRequest {
            session: Some(inner.name.clone()),
            message: counted,
            coherence,
            phase,
            sections: inner.sections.clone(),
            provider,
            model,
            max_tokens,
            summarizer: Arc::clone(&inner.summarizer),
            manage: None,
            template: None,
            toolbox: inner.tools.clone(),
            tools: Some(tools),
            allow: inner.allowed.clone(),
            key: None,
        })
    }
}

impl IntoFuture for Turn {
    type Output = Result<Reply, Error>;
    type IntoFuture = Later<'static, Self::Output>;

    /// Takes the turn. When the future is dropped, the turn is cancelled. Calls of tools that a
    /// person must allow are refused, as nobody hears of them.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (outcome, _cancel) = self.begin(Arc::new(()));
            ended(outcome.await)
        })
    }
}

/// Returns the outcome of a turn's task.
fn ended(outcome: Result<Result<Reply, Error>, JoinError>) -> Result<Reply, Error> {
    outcome.unwrap_or_else(|error| Err(Error::Internal(format!("the turn ended: {error}"))))
}

/// The events of a turn, in the order in which they happen, and then its reply.
///
/// It is a [`Stream`]. For programs that use none, [`next`](Self::next) does the same.
#[must_use = "dropping the stream cancels the turn"]
pub struct TurnStream {
    events: mpsc::Receiver<TurnEvent>,
    outcome: JoinHandle<Result<Reply, Error>>,
    approvals: Approvals,
    _cancel: DropGuard,
}

impl TurnStream {
    /// Returns the next event; `None` when the turn has ended.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        self.events.recv().await
    }

    /// Waits for the end of the turn and returns its reply. Events that were not taken are skipped,
    /// and questions among them are answered with a refusal.
    ///
    /// # Errors
    /// Every [`Error`] of a turn.
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

/// Sends the events of a turn to its stream.
struct Events(mpsc::Sender<TurnEvent>);

impl EventSink for Events {
    fn send(&self, event: TurnEvent) -> bool {
        self.0.try_send(event).is_ok()
    }

    fn room(&self) -> Later<'_, ()> {
        // The room is given back at once: what is sent next has it.
        Box::pin(async { drop(self.0.reserve_many(WAITING).await) })
    }
}
