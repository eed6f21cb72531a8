//! Carries out the steps of a call, and sends its answer.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::Server;
use super::outbox::{LargePlaces, Out};
use super::reply::EncodedReply;
use crate::engine::{EngineError, Reach};
use crate::rpc::{
    self, CallCancelled, Finish, Step, Subscribed, Work, engine_error, internal_error,
};
use crate::value::Value;
use crate::wire::message::WireError;

/// Message size in bytes above which a message is decoded and its call begun on another thread:
/// counting the tokens of that much text takes some milliseconds.
pub(super) const LARGE_MESSAGE: usize = 16 << 10;

/// Carries out the steps of a call and sends its answer; for a step in the engine, the answer
/// follows after the commit.
pub(super) async fn settle(server: &Server, step: Result<Step, WireError>, reply: EncodedReply) {
    match awaited(step, &reply).await {
        Err(error) => reply.send(Err(error)),
        Ok(Step::Done(value)) => reply.send(Ok(value)),
        Ok(Step::Subscribe(wanted)) => {
            let answer = Value::of(&Subscribed { topics: &wanted.topics });
            reply.outbox.send(Out::Subscribe(wanted, server.events.subscribe()));
            reply.send(Ok(answer));
        }
        Ok(Step::ShutDown) => {
            reply.send(Ok(Value::Bool(true)));
            server.ending().cancel();
        }
        Ok(Step::Cancel(target)) => {
            let cancelled = reply.running.cancel(&target);
            reply.send(Ok(Value::of(&CallCancelled { cancelled })));
        }
        Ok(Step::Await(_) | Step::AwaitEnd(_)) => reply.send(Err(defect("the call"))),
        Ok(Step::State(reach, operation)) => {
            let reach = if reply.bytes > LARGE_MESSAGE { Reach::Anything } else { reach };
            let caller = reply.caller;
            let cancelled = Arc::clone(&reply.cancelled);
            let operation = move |engine: &mut _| match cancelled.is_cancelled() {
                true => Err(EngineError::Cancelled),
                false => operation(engine),
            };
            let large = Arc::clone(&server.large);
            let answer = move |outcome| finish(outcome, reply, large);
            if let Err(error) = server.tools().engine.submit(caller, reach, operation, answer).await
            {
                tracing::debug!("a call came too late: {error}");
            }
        }
    }
}

/// Waits for work outside the engine, which may be followed by more such work, and returns the
/// step after it. If the call is given up, drops the work. However, work that must end by itself
/// may take up to [`rpc::LONGEST_END`] to end when its client cancels the call. A panic in the
/// work fails only this call.
async fn awaited(
    mut step: Result<Step, WireError>,
    reply: &EncodedReply,
) -> Result<Step, WireError> {
    loop {
        let (work, ends_itself) = match step {
            Ok(Step::Await(work)) => (work, false),
            Ok(Step::AwaitEnd(work)) => (work, true),
            step => return step,
        };
        let mut work = AbortOnDropHandle::new(tokio::spawn(work));
        let panicked = |_| Err(defect("work outside the engine"));
        step = tokio::select! {
            biased;
            error = reply.given_up() => {
                let end = match ends_itself && reply.cancelled.is_cancelled() {
                    true => tokio::time::timeout(rpc::LONGEST_END, &mut work).await.ok(),
                    false => None,
                };
                end.map_or(Err(error), |end| end.unwrap_or_else(panicked))
            }
            step = &mut work => step.unwrap_or_else(panicked),
        };
    }
}

/// Sends the answer of a committed call, or starts the work that must be done before the answer.
fn finish(outcome: Result<Finish, EngineError>, reply: EncodedReply, large: Arc<Semaphore>) {
    match outcome {
        Err(error) => reply.send(Err(engine_error(error))),
        Ok(Finish::Now(value)) => reply.send(Ok(value)),
        Ok(Finish::Refused(error)) => reply.send(Err(error)),
        Ok(Finish::Later(work)) => drop(tokio::spawn(finish_later(work, reply, large))),
    }
}

/// Waits for places among the large answers of the client and of all clients, runs the work that
/// follows a commit, and sends the answer.
async fn finish_later(work: Work, reply: EncodedReply, large: Arc<Semaphore>) {
    let cancelled = Arc::clone(&reply.cancelled);
    let places = Arc::clone(&reply.places);
    let working = async {
        // The semaphores are never closed.
        let own = places.acquire_owned().await.ok();
        let of_all = large.acquire_owned().await.ok();
        let outcome = tokio::task::spawn_blocking(work).await;
        let places = own.zip(of_all).map(|(own, of_all)| LargePlaces { own, of_all });
        (outcome.unwrap_or_else(|_| Err(defect("finishing the call"))), places)
    };
    tokio::select! {
        // Checked first, so that work for a client that has gone never begins.
        biased;
        () = cancelled.cancelled() => reply.send(Err(engine_error(EngineError::Cancelled))),
        (outcome, places) = working => reply.send_from(outcome, places),
    }
}

pub(super) fn defect(what: &str) -> WireError {
    internal_error(&format!("{what}; the server keeps running, and its log has details"))
}
