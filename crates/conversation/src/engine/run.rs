//! The loop: applies all waiting requests that are quick, commits them together, and only then
//! answers. The requests of one commit are a burst; see [`queue`](super::queue).
//!
//! Requests that are sure to be quick run in the loop itself, on the thread of the connections. For
//! all other requests, the engine is lent to another thread; meanwhile, the thread of the
//! connections is free to answer requests that do not need the engine.

use std::cell::Cell;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::lend::lend;
use super::queue::{Deliver, QueuedRequests, QueuedTask, QueuedWork, RequestBurst};
use super::{Caller, Engine, EngineError, Event, Reach};
use crate::wording::counted;

/// Maximum number of requests that the loop has not taken from its channel yet. Beyond it,
/// connections wait.
pub(super) const QUEUE_LENGTH: usize = 1024;
/// Maximum number of requests in one commit.
pub(super) const MAX_BURST: usize = 1024;
/// Idle time after which the store does its postponed work.
const QUIET: std::time::Duration = std::time::Duration::from_millis(200);

/// Sends requests to the loop. The loop ends when the last handle is dropped.
#[derive(Clone)]
pub struct Handle {
    sender: mpsc::Sender<QueuedTask>,
}

impl Handle {
    /// Creates a handle, and the queue for [`run`].
    pub fn channel() -> (Self, mpsc::Receiver<QueuedTask>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        (Self { sender }, receiver)
    }

    /// Queues `operation` and passes its outcome to `answer` once it is durable. Requests of one
    /// caller run in order. `reach` tells whether the request is quick.
    ///
    /// # Errors
    /// [`EngineError::Ended`] if the loop has ended; `answer` is not called then.
    pub async fn submit<T: Send + 'static>(
        &self,
        caller: Caller,
        reach: Reach,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
        answer: impl FnOnce(Result<T, EngineError>) + Send + 'static,
    ) -> Result<(), EngineError> {
        let task = QueuedTask { caller, reach, work: work(caller, operation, answer) };
        self.sender.send(task).await.map_err(|_| EngineError::Ended)
    }

    /// Runs `operation` and waits for its outcome.
    ///
    /// # Errors
    /// Returns the operation's error, or [`EngineError::Ended`].
    pub async fn ask<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (sender, receiver) = oneshot::channel();
        let answer = |outcome| drop(sender.send(outcome));
        self.submit(Caller::Nobody, Reach::Anything, operation, answer).await?;
        receiver.await.unwrap_or(Err(EngineError::Ended))
    }

    /// Like [`ask`](Self::ask), for threads that may block.
    ///
    /// # Errors
    /// Returns the operation's error, or [`EngineError::Ended`].
    pub fn ask_blocking<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.ask_blocking_for(Caller::Nobody, operation)
    }

    /// Like [`ask_blocking`](Self::ask_blocking), on behalf of a caller.
    ///
    /// # Errors
    /// Returns the operation's error, or [`EngineError::Ended`]; the latter also if an operation of
    /// the engine asks, since the engine would wait for itself.
    pub fn ask_blocking_for<T: Send + 'static>(
        &self,
        caller: Caller,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        self.begin_for(caller, operation)?.wait()
    }

    /// Queues `operation` on behalf of a caller, and does not wait for its outcome. For threads that
    /// may block.
    ///
    /// # Errors
    /// [`EngineError::Ended`], also if an operation of the engine calls this.
    pub fn begin_for<T: Send + 'static>(
        &self,
        caller: Caller,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<Pending<T>, EngineError> {
        if IS_AT_WORK.get() {
            return Err(EngineError::Ended);
        }
        let (sender, receiver) = oneshot::channel();
        let answer = |outcome| drop(sender.send(outcome));
        let task =
            QueuedTask { caller, reach: Reach::Anything, work: work(caller, operation, answer) };
        self.sender.blocking_send(task).map_err(|_| EngineError::Ended)?;
        Ok(Pending(receiver))
    }
}

/// The outcome of an operation that was queued.
pub struct Pending<T>(oneshot::Receiver<Result<T, EngineError>>);

impl<T> Pending<T> {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// Returns the operation's error, or [`EngineError::Ended`].
    pub fn wait(self) -> Result<T, EngineError> {
        self.0.blocking_recv().unwrap_or(Err(EngineError::Ended))
    }
}

thread_local! {
    /// True while this thread carries out an operation of an engine.
    static IS_AT_WORK: Cell<bool> = const { Cell::new(false) };
}

/// Outcome of a burst.
struct BurstOutcome {
    /// Answers, each with whether its request or an earlier one of the burst changed the state.
    answers: Vec<(bool, Deliver)>,
    events: Vec<Event>,
    failure: Option<EngineError>,
}

/// Runs the loop until the last [`Handle`] is dropped, or the engine is told to
/// [`end`](Engine::end). `publish` gets the events of each committed burst, in order, before the
/// answers of the burst are sent.
pub async fn run(
    engine: Engine,
    mut queue: mpsc::Receiver<QueuedTask>,
    mut publish: impl FnMut(&[Event], &Engine),
) {
    let mut engine = Box::new(engine);
    let mut waiting = QueuedRequests::default();
    let mut received = Vec::with_capacity(MAX_BURST);
    while let Some(returned) = next(engine, &mut queue, waiting.is_empty(), &mut received).await {
        engine = returned;
        waiting.extend(received.drain(..));
        if waiting.is_empty() {
            engine.settle();
            return;
        }
        // While commits fail, each request is committed alone, so that no read fails because of a
        // change.
        let together = if engine.refusal().is_some() { 1 } else { MAX_BURST };
        let RequestBurst { works, is_quick } = waiting.burst(&engine, together);
        let done = match is_quick {
            true => carry_out(&mut engine, works),
            false => {
                let lent = lend(engine, |engine| carry_out(engine, works)).await;
                let Some((returned, done)) = lent else { return };
                engine = returned;
                done
            }
        };
        let has_ended = engine.has_ended;
        if has_ended {
            engine.settle();
        }
        deliver(&engine, done, &mut publish);
        if has_ended {
            return;
        }
    }
}

/// Moves the queued requests to `received`. `is_idle` means that no request received earlier is
/// waiting; if none is queued either, does postponed work step by step, then waits for a request.
/// `received` then stays empty only if no more requests can come. Returns `None` if the engine is
/// lost.
async fn next(
    engine: Box<Engine>,
    queue: &mut mpsc::Receiver<QueuedTask>,
    is_idle: bool,
    received: &mut Vec<QueuedTask>,
) -> Option<Box<Engine>> {
    if !is_idle {
        while let Ok(task) = queue.try_recv() {
            received.push(task);
        }
        return Some(engine);
    }
    let mut engine = engine;
    while engine.has_put_off() {
        match queue.try_recv() {
            Err(TryRecvError::Empty) => (engine, ()) = lend(engine, Engine::do_put_off).await?,
            Err(TryRecvError::Disconnected) => return Some(engine),
            Ok(task) => {
                received.push(task);
                return Some(engine);
            }
        }
    }
    if !engine.store.is_settled() {
        match tokio::time::timeout(QUIET, queue.recv_many(received, MAX_BURST)).await {
            Ok(_) => return Some(engine),
            Err(_) => (engine, ()) = lend(engine, Engine::settle).await?,
        }
    }
    queue.recv_many(received, MAX_BURST).await;
    Some(engine)
}

impl Engine {
    /// Does the work that the store postponed to a quiet moment.
    pub fn settle(&mut self) {
        let failed_before = self.store.refusal().is_some();
        match self.store.settle() {
            Ok(()) if self.store.is_settled() => self.quiet.notify_one(),
            Ok(()) => {}
            Err(error) if failed_before => tracing::debug!("{error}"),
            Err(error) => tracing::error!("cannot empty the write-ahead log yet: {error}"),
        }
    }
}

/// Applies a burst and commits it.
fn carry_out(engine: &mut Engine, works: Vec<QueuedWork>) -> BurstOutcome {
    let mut events = Vec::new();
    let mut answers = Vec::with_capacity(works.len());
    let failed_before = engine.refusal().is_some();
    for work in works {
        IS_AT_WORK.set(true);
        let answer = work(engine);
        IS_AT_WORK.set(false);
        answers.push((engine.store.has_changes(), answer));
        events.append(&mut engine.events);
    }
    let failure = engine.commit().err();
    match &failure {
        None => events.iter().for_each(|event| engine.statistics.note(event)),
        // Report a full disk once, not for every request that fails because of it.
        Some(error) if failed_before => {
            tracing::debug!("cannot store the changes of requests: {error}")
        }
        Some(error) => {
            let requests = counted(answers.len() as u64, "request");
            tracing::error!("cannot store the changes of {requests}: {error}");
        }
    }
    BurstOutcome { answers, events, failure }
}

/// Publishes the events, unless the commit failed, and sends the answers.
fn deliver(engine: &Engine, done: BurstOutcome, publish: &mut impl FnMut(&[Event], &Engine)) {
    let BurstOutcome { answers, events, failure } = done;
    if failure.is_none() {
        publish(&events, engine);
    }
    for (follows_changes, answer) in answers {
        answer(match &failure {
            Some(error) if follows_changes => {
                Err(EngineError::NotKept { kind: error.kind(), why: error.to_string() })
            }
            // Reads before any change stay valid although the commit failed.
            _ => Ok(()),
        });
    }
}

fn work<T: Send + 'static>(
    caller: Caller,
    operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    answer: impl FnOnce(Result<T, EngineError>) + Send + 'static,
) -> QueuedWork {
    Box::new(move |engine| {
        engine.sessions.caller = caller;
        engine.step = 0;
        let outcome = engine.request(operation);
        Box::new(move |kept| answer(kept.and(outcome)))
    })
}
