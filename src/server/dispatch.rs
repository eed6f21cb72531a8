//! Runs one client's calls in order and sends each answer to the client or to the caller inside the
//! server. A panic in a method becomes an error reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Server;
use super::outbox::{Out, Outbox};
use super::running::Running;
use super::sent::SentTo;
use crate::engine::{Caller, EngineError, Reach};
use crate::rpc::{
    self, Call, CallCancelled, Finish, Method, Pace, Step, Subscribed, Work, engine_error,
    internal_error,
};
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::message::{Id, Request, WireError};

/// Maximum number of queued calls of one client. Beyond it, messages wait in the transport.
pub(super) const WAITING_CALLS: usize = 4096;
/// Message size in bytes above which decoding, and beginning the call, runs on a thread of its own:
/// counting the tokens of that much text takes some milliseconds.
pub(super) const LARGE_MESSAGE: usize = 16 << 10;
/// Maximum number of calls of one client that run alongside its others, such as directory walks.
const CALLS_ASIDE: usize = 4;
/// Maximum number of calls of one client that wait for outside work, such as answers of models.
/// They take no place from calls that compute.
const CALLS_ELSEWHERE: usize = 256;
/// Maximum number of large answers of one client that are in progress or unread: one is written
/// while the next is made. Further calls wait, and hold no copy of any content.
const LARGE_ANSWERS: usize = 2;

/// Result of a call.
pub(super) type Outcome = Result<Value, WireError>;

/// A call on its way to the dispatcher.
pub(super) struct Waiting {
    pub(super) request: Request,
    /// Caller inside the server that waits for the answer; `None` if the client does.
    pub(super) answer_to: Option<oneshot::Sender<Outcome>>,
    /// Receiver of the call's progress; `None` if it is the client.
    pub(super) peer: Option<Arc<dyn rpc::Peer>>,
    /// Rights of the caller, from how it reached the server.
    pub(super) access: rpc::Access,
    /// Dialect of the client.
    pub(super) dialect: Dialect,
    pub(super) cancelled: Arc<CancellationToken>,
    /// Length of the call's message in bytes.
    pub(super) bytes: usize,
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// Calls methods from inside the server as the client would. The calls are cancelled with the
/// connection.
pub(super) struct Inside {
    pub(super) calls: mpsc::Sender<Waiting>,
    pub(super) access: rpc::Access,
    pub(super) gone: CancellationToken,
}

impl rpc::Caller for Inside {
    fn call(&self, method: &str, params: Value) -> rpc::Later<'_, Outcome> {
        let request = Request { id: None, method: method.to_owned(), params };
        self.ask(request, None, self.gone.child_token())
    }

    fn stream(
        &self,
        method: &str,
        params: Value,
        progress: Arc<dyn rpc::Peer>,
        cancelled: CancellationToken,
    ) -> rpc::Later<'_, Outcome> {
        // Progress goes only to calls with an id; this one is never seen elsewhere.
        let request = Request { id: Some(Id::Int(0)), method: method.to_owned(), params };
        let token = self.gone.child_token();
        let mut call = self.ask(request, Some(progress), token.clone());
        Box::pin(async move {
            if let Some(outcome) = cancelled.run_until_cancelled(&mut call).await {
                return outcome;
            }
            token.cancel();
            call.await
        })
    }
}

impl Inside {
    fn ask(
        &self,
        request: Request,
        peer: Option<Arc<dyn rpc::Peer>>,
        cancelled: CancellationToken,
    ) -> rpc::Later<'_, Outcome> {
        Box::pin(async move {
            let _dropped = cancelled.clone().drop_guard();
            let cancelled = Arc::new(cancelled);
            let (answer_to, answer) = oneshot::channel();
            let answer_to = Some(answer_to);
            let (access, dialect) = (self.access, Dialect::Slynk);
            let (bytes, room) = (0, None);
            let waiting =
                Waiting { request, answer_to, peer, access, dialect, cancelled, bytes, room };
            // Both fail only once the connection has ended.
            let _ = self.calls.send(waiting).await;
            answer.await.unwrap_or_else(|_| Err(engine_error(EngineError::Cancelled)))
        })
    }
}

/// Runs a client's calls, beginning each after the one before.
pub(super) async fn dispatch(
    server: Server,
    outbox: Outbox,
    running: Running,
    mut waiting: mpsc::Receiver<Waiting>,
) {
    let peer: Arc<dyn rpc::Peer> = Arc::new(outbox.clone());
    let caller = server.next_caller();
    let places = Arc::new(Semaphore::new(LARGE_ANSWERS));
    let aside = Arc::new(Semaphore::new(CALLS_ASIDE));
    let elsewhere = Arc::new(Semaphore::new(CALLS_ELSEWHERE));
    while let Some(next) = waiting.recv().await {
        let Waiting { request, answer_to, peer: own, access, dialect, cancelled, bytes, room } =
            next;
        let Request { id, method, params } = request;
        let found = rpc::find(&method);
        let reply = Reply {
            dialect,
            method: found.as_ref().ok().copied(),
            outbox: outbox.clone(),
            to: answer_to.map_or(To::Client(id.clone()), To::Caller),
            cancelled: cancelled.clone(),
            running: running.clone(),
            places: places.clone(),
            caller,
            bytes,
            _room: room,
        };
        let method = match found {
            Ok(method) => method,
            Err(error) => {
                discard(params);
                reply.send(Err(error));
                continue;
            }
        };
        let peer = own.unwrap_or_else(|| peer.clone());
        let tools = Arc::clone(server.tools());
        let call = Call { tools, peer, access, dialect, is_session_named: true, id, cancelled };
        match method.pace {
            Pace::Prompt if bytes <= LARGE_MESSAGE => {
                let step = begin(method, call, params);
                settle(&server, step, reply).await;
            }
            Pace::Prompt | Pace::InOrder => {
                let sent_to = SentTo::read(&server, caller, method, &params).await;
                let step = begin_aside(method, call, params, sent_to, &reply).await;
                settle(&server, step, reply).await;
            }
            Pace::Aside => {
                let (server, aside) = (server.clone(), aside.clone());
                let elsewhere = elsewhere.clone();
                let sent_to = SentTo::read(&server, caller, method, &params).await;
                tokio::spawn(async move {
                    let mut place = place_in(&aside, &reply.cancelled).await;
                    let mut step = match place {
                        Ok(_) => begin_aside(method, call, params, sent_to, &reply).await,
                        Err(ref error) => {
                            discard(params);
                            Err(error.clone())
                        }
                    };
                    if matches!(step, Ok(Step::Await(_) | Step::AwaitEnd(_))) {
                        // Freed first, so that a call that waits keeps none from working.
                        drop(place);
                        place = place_in(&elsewhere, &reply.cancelled).await;
                        step = place.as_ref().map_err(Clone::clone).and(step);
                    }
                    settle(&server, step, reply).await;
                    drop(place);
                });
            }
        }
    }
}

/// Drops a value, on a thread of its own if that takes long.
pub(super) fn discard(value: Value) {
    if value.exceeds(LARGE_MESSAGE) {
        tokio::task::spawn_blocking(move || drop(value));
    }
}

/// Destination of a call's answer.
enum To {
    /// The client, under the request's id; nowhere for a notification.
    Client(Option<Id>),
    /// The caller inside the server.
    Caller(oneshot::Sender<Outcome>),
}

struct Reply {
    dialect: Dialect,
    method: Option<&'static Method>,
    outbox: Outbox,
    to: To,
    cancelled: Arc<CancellationToken>,
    running: Running,
    places: Arc<Semaphore>,
    caller: Caller,
    /// Length of the call's message in bytes.
    bytes: usize,
    /// Permits that the call's message holds until it is answered.
    _room: Option<OwnedSemaphorePermit>,
}

impl Reply {
    fn send(self, outcome: Outcome) {
        self.send_from(outcome, None);
    }

    /// Sends an answer that may hold a place among the large ones.
    fn send_from(self, outcome: Outcome, place: Option<OwnedSemaphorePermit>) {
        let outcome = outcome.map_err(|error| rpc::spelled(error, self.dialect, self.method));
        match (self.to, &outcome) {
            (To::Client(id @ Some(_)), _) => self.outbox.reply_from(id, outcome, place),
            (To::Client(None), Err(error)) => tracing::debug!("a notification failed: {error}"),
            (To::Client(None), Ok(_)) => {}
            // The caller may have stopped waiting.
            (To::Caller(caller), _) => drop(caller.send(outcome)),
        }
    }
}

fn begin(method: &'static Method, call: Call, params: Value) -> Result<Step, WireError> {
    catch_unwind(AssertUnwindSafe(|| method.run(call, params)))
        .unwrap_or_else(|_| Err(defect(method.name)))
}

/// Waits for a place, or until the call is cancelled.
async fn place_in<'a>(
    places: &'a Semaphore,
    cancelled: &CancellationToken,
) -> Result<SemaphorePermit<'a>, WireError> {
    let gone = || engine_error(EngineError::Cancelled);
    tokio::select! {
        // The semaphores are never closed.
        place = places.acquire() => place.map_err(|_| gone()),
        () = cancelled.cancelled() => Err(gone()),
    }
}

/// Begins a call on a thread that may block. A cancelled call is answered at once, and what its
/// thread still produces is dropped.
async fn begin_aside(
    method: &'static Method,
    mut call: Call,
    params: Value,
    sent_to: SentTo,
    reply: &Reply,
) -> Result<Step, WireError> {
    let begun = async {
        call.is_session_named = !sent_to.is_current();
        let (params, has_session) = sent_to.named_in(params).await;
        let work = tokio::task::spawn_blocking(move || begin(method, call, params));
        let step = work.await.unwrap_or_else(|_| Err(defect(method.name)))?;
        // An error in the parameters takes precedence.
        has_session.map(|()| step)
    };
    tokio::select! {
        step = begun => step,
        () = reply.cancelled.cancelled() => Err(engine_error(EngineError::Cancelled)),
    }
}

async fn settle(server: &Server, step: Result<Step, WireError>, reply: Reply) {
    match awaited(step, &reply.cancelled).await {
        Err(error) => reply.send(Err(error)),
        Ok(Step::Done(value)) => reply.send(Ok(value)),
        Ok(Step::Subscribe(topics)) => {
            let answer = Value::of(&Subscribed { topics: &topics });
            reply.outbox.send(Out::Subscribe(topics, server.events.subscribe()));
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
            let answer = move |outcome| finish(outcome, reply);
            if let Err(error) = server.tools().engine.submit(caller, reach, operation, answer).await
            {
                tracing::debug!("a call came too late: {error}");
            }
        }
    }
}

/// Waits for outside work until a step needs none; one result may call for more. If the call is
/// cancelled, drops the work, or lets it end by itself for up to [`rpc::LONGEST_END`] if it must. A panic
/// in the work fails only this call.
async fn awaited(
    mut step: Result<Step, WireError>,
    cancelled: &CancellationToken,
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
            () = cancelled.cancelled() => {
                let end = match ends_itself {
                    true => tokio::time::timeout(rpc::LONGEST_END, &mut work).await.ok(),
                    false => None,
                };
                end.map_or(Err(engine_error(EngineError::Cancelled)), |end| end.unwrap_or_else(panicked))
            }
            step = &mut work => step.unwrap_or_else(panicked),
        };
    }
}

/// Sends the answer of a committed call, or starts the work that still has to follow.
fn finish(outcome: Result<Finish, EngineError>, reply: Reply) {
    match outcome {
        Err(error) => reply.send(Err(engine_error(error))),
        Ok(Finish::Now(value)) => reply.send(Ok(value)),
        Ok(Finish::Refused(error)) => reply.send(Err(error)),
        Ok(Finish::Later(work)) => drop(tokio::spawn(finish_later(work, reply))),
    }
}

/// Runs that work once there is a place for its answer.
async fn finish_later(work: Work, reply: Reply) {
    let cancelled = Arc::clone(&reply.cancelled);
    let places = Arc::clone(&reply.places);
    let working = async {
        // The semaphore is never closed.
        let place = places.acquire_owned().await.ok();
        let outcome = tokio::task::spawn_blocking(work).await;
        (outcome.unwrap_or_else(|_| Err(defect("finishing the call"))), place)
    };
    tokio::select! {
        // Checked first, so that work for a client that has gone never begins.
        biased;
        () = cancelled.cancelled() => reply.send(Err(engine_error(EngineError::Cancelled))),
        (outcome, place) = working => reply.send_from(outcome, place),
    }
}

pub(super) fn defect(what: &str) -> WireError {
    internal_error(&format!("{what}; the server keeps running, and its log has details"))
}
