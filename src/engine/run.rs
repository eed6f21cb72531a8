//! The loop: whatever requests wait are applied, committed at once, and only then answered.

use tokio::sync::{mpsc, oneshot};

use super::{Engine, EngineError, Event};

/// How many requests may wait for the loop; a connection that has more waits.
pub const QUEUE_LENGTH: usize = 1024;
/// How many requests share one commit at most.
pub const MAX_BURST: usize = 1024;
/// How long no request must come for the store to do what it put off.
const QUIET: std::time::Duration = std::time::Duration::from_millis(200);

/// Told after the commit whether it succeeded, and then gives the answer.
type Deliver = Box<dyn FnOnce(Result<(), EngineError>) + Send>;
type Work = Box<dyn FnOnce(&mut Engine) -> Deliver + Send>;

/// Whence requests reach the loop. The loop ends when the last handle is dropped.
#[derive(Clone)]
pub struct Handle {
    sender: mpsc::Sender<Work>,
}

impl Handle {
    /// A handle and the queue for [`run`].
    pub fn channel() -> (Self, mpsc::Receiver<Work>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LENGTH);
        (Self { sender }, receiver)
    }

    /// Queues `operation` and gives its outcome to `answer` once it is durable. Requests of one
    /// caller run in the order of the calls.
    ///
    /// # Errors
    /// [`EngineError::Ended`] when the loop has ended; `answer` is then never called.
    pub async fn submit<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
        answer: impl FnOnce(Result<T, EngineError>) + Send + 'static,
    ) -> Result<(), EngineError> {
        self.sender.send(work(operation, answer)).await.map_err(|_| EngineError::Ended)
    }

    /// Runs `operation` and waits for its outcome.
    ///
    /// # Errors
    /// Those of the operation, and [`EngineError::Ended`].
    pub async fn ask<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (sender, receiver) = oneshot::channel();
        let answer = |outcome| drop(sender.send(outcome));
        self.submit(operation, answer).await?;
        receiver.await.unwrap_or(Err(EngineError::Ended))
    }

    /// [`ask`](Self::ask) for threads that may block.
    ///
    /// # Errors
    /// Those of the operation, and [`EngineError::Ended`].
    pub fn ask_blocking<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (sender, receiver) = oneshot::channel();
        let answer = |outcome| drop(sender.send(outcome));
        self.sender.blocking_send(work(operation, answer)).map_err(|_| EngineError::Ended)?;
        receiver.blocking_recv().unwrap_or(Err(EngineError::Ended))
    }
}

/// Owns the engine until the last [`Handle`] is gone. `publish` gets the events of each burst,
/// in order, before its answers go out.
pub async fn run(
    mut engine: Engine,
    mut queue: mpsc::Receiver<Work>,
    mut publish: impl FnMut(&[Event], &Engine),
) {
    let mut waiting: Vec<Work> = Vec::with_capacity(MAX_BURST);
    let mut answers = Vec::with_capacity(MAX_BURST);
    let mut events = Vec::new();
    while next(&mut engine, &mut queue, &mut waiting).await {
        for work in waiting.drain(..) {
            answers.push(work(&mut engine));
            events.append(&mut engine.events);
        }
        let failure = engine.commit().err().map(|error| error.to_string());
        match &failure {
            None => {
                events.iter().for_each(|event| engine.statistics.note(event));
                publish(&events, &engine);
            }
            Some(error) => tracing::error!("{} requests were not kept: {error}", answers.len()),
        }
        events.clear();
        for answer in answers.drain(..) {
            answer(match &failure {
                None => Ok(()),
                Some(error) => Err(EngineError::NotKept(error.clone())),
            });
        }
    }
    engine.settle();
}

/// Waits for requests; false when there will be none. What the store left for a quiet moment is
/// done in one.
async fn next(
    engine: &mut Engine,
    queue: &mut mpsc::Receiver<Work>,
    waiting: &mut Vec<Work>,
) -> bool {
    if !engine.store.is_settled() {
        match tokio::time::timeout(QUIET, queue.recv_many(waiting, MAX_BURST)).await {
            Ok(received) => return received > 0,
            Err(_) => engine.settle(),
        }
    }
    queue.recv_many(waiting, MAX_BURST).await > 0
}

fn work<T: Send + 'static>(
    operation: impl FnOnce(&mut Engine) -> Result<T, EngineError> + Send + 'static,
    answer: impl FnOnce(Result<T, EngineError>) + Send + 'static,
) -> Work {
    Box::new(move |engine| {
        let outcome = engine.request(operation);
        Box::new(move |kept| answer(kept.and(outcome)))
    })
}
