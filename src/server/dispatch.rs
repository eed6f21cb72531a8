//! Runs one client's calls, which begin in order, and sends each answer to the client or to a
//! caller inside the server, such as a REPL. A panic in a method becomes an error reply.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::Server;
use super::order::{Order, OrderPlace};
use super::outbox::Outbox;
use super::reply::{EncodedReply, ReplyOutcome, To};
use super::running::RunningCalls;
use super::sent::SentTo;
use super::settle::{LARGE_MESSAGE, defect, settle};
use crate::engine::{Caller, Engine, EngineError, Reach};
use crate::rpc::limits::{CALLS_ASIDE, CALLS_ELSEWHERE, PAGE_BYTES};
use crate::rpc::{self, CalledMethod, MethodCall, Pace, Step, engine_error};
use crate::system::promptly;
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::message::{CallRequest, RequestId, WireError};

/// Maximum number of one client's large answers that are being made or have not been read yet: one
/// is written while the next is made. Further calls wait before they copy any content.
const LARGE_ANSWERS: usize = 2;

/// A call on its way to the dispatcher.
pub(super) struct DispatchedCall {
    pub(super) request: CallRequest,
    /// Caller inside the server that waits for the answer; `None` if the client waits for it.
    pub(super) answer_to: Option<oneshot::Sender<ReplyOutcome>>,
    /// Receiver of the call's progress; `None` if the client receives it.
    pub(super) peer: Option<Arc<dyn rpc::Peer>>,
    /// Rights of the caller, which depend on how the client reached the server.
    pub(super) access: rpc::Access,
    /// Dialect of the client.
    pub(super) dialect: Dialect,
    pub(super) cancelled: Arc<CancellationToken>,
    /// Length of the call's message in bytes.
    pub(super) bytes: usize,
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// A caller of methods inside the server, such as a REPL, with the rights of the client. Its calls
/// are cancelled when the connection ends.
pub(super) struct Inside {
    pub(super) calls: mpsc::Sender<DispatchedCall>,
    pub(super) access: rpc::Access,
    pub(super) gone: CancellationToken,
}

impl rpc::MethodCaller for Inside {
    fn call(&self, method: &str, params: Value) -> rpc::Later<'_, ReplyOutcome> {
        let request = CallRequest { id: None, method: method.to_owned(), params };
        self.ask(request, None, self.gone.child_token())
    }

    fn stream(
        &self,
        method: &str,
        params: Value,
        progress: Arc<dyn rpc::Peer>,
        cancelled: CancellationToken,
    ) -> rpc::Later<'_, ReplyOutcome> {
        // Progress goes only to calls with an id; this id is not sent to anyone.
        let request =
            CallRequest { id: Some(RequestId::Int(0)), method: method.to_owned(), params };
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
        request: CallRequest,
        peer: Option<Arc<dyn rpc::Peer>>,
        cancelled: CancellationToken,
    ) -> rpc::Later<'_, ReplyOutcome> {
        Box::pin(async move {
            let _dropped = cancelled.clone().drop_guard();
            let cancelled = Arc::new(cancelled);
            let (answer_to, answer) = oneshot::channel();
            let answer_to = Some(answer_to);
            let (access, dialect) = (self.access, Dialect::Slynk);
            let (bytes, room) = (0, None);
            let waiting = DispatchedCall {
                request,
                answer_to,
                peer,
                access,
                dialect,
                cancelled,
                bytes,
                room,
            };
            // Both fail only once the connection has ended.
            let _ = self.calls.send(waiting).await;
            answer.await.unwrap_or_else(|_| Err(engine_error(EngineError::Cancelled)))
        })
    }
}

/// Runs a client's calls, and begins them in the order in which they were sent. Once `gone` is
/// cancelled, calls that wait for something are dropped, but changes that wait only for their turn
/// are still made.
pub(super) async fn dispatch(
    server: Server,
    outbox: Outbox,
    running: RunningCalls,
    gone: CancellationToken,
    mut waiting: mpsc::Receiver<DispatchedCall>,
) {
    let caller = server.next_caller();
    let mut dispatcher = Dispatcher {
        peer: Arc::new(outbox.clone()),
        caller,
        client: Arc::default(),
        places: Arc::new(Semaphore::new(LARGE_ANSWERS)),
        beside: BesideCalls {
            server: server.clone(),
            gone,
            aside: Arc::new(Semaphore::new(CALLS_ASIDE)),
            elsewhere: Arc::new(Semaphore::new(CALLS_ELSEWHERE)),
        },
        order: Order::default(),
        outbox,
        running,
    };
    while let Some(next) = waiting.recv().await {
        dispatcher.run(next).await;
    }
    let (tools, client) = (Arc::clone(server.tools()), dispatcher.client);
    let forget = move |engine: &mut Engine| {
        engine.forget_caller(caller);
        tools.agents.forget(engine, &client);
        tools.client_tools.forget(engine, &client);
        Ok(())
    };
    // If the engine has ended, there is nothing to forget.
    let _ = server.tools().engine.submit(caller, Reach::Anything, forget, drop).await;
}

/// The state that the calls of one client share.
struct Dispatcher {
    outbox: Outbox,
    running: RunningCalls,
    peer: Arc<dyn rpc::Peer>,
    caller: Caller,
    client: Arc<rpc::Client>,
    places: Arc<Semaphore>,
    beside: BesideCalls,
    order: Order,
}

impl Dispatcher {
    /// Begins a call. Unless the call runs alongside the client's other calls, waits until it has
    /// ended or is queued in the engine, which keeps the order.
    async fn run(&mut self, next: DispatchedCall) {
        let DispatchedCall { request, answer_to, peer, access, dialect, cancelled, bytes, room } =
            next;
        let CallRequest { id, method, mut params } = request;
        let found = rpc::find(&method, &mut params);
        // Callers inside the server are not the client that introduced itself.
        let client = if answer_to.is_some() { Arc::default() } else { self.client.clone() };
        let reply = EncodedReply {
            dialect,
            method: found.as_ref().ok().map(|called| called.method),
            outbox: self.outbox.clone(),
            to: answer_to.map_or(To::Client(id.clone()), To::Caller),
            cancelled: cancelled.clone(),
            ending: self.beside.server.ending().clone(),
            over: self.beside.server.over.clone(),
            running: self.running.clone(),
            places: self.places.clone(),
            caller: self.caller,
            bytes,
            _room: room,
        };
        let method = match found {
            Ok(method) => method,
            Err(error) => {
                discard(params);
                return reply.send(Err(error));
            }
        };
        let place = self.order.place(|| method.touched(&params), method.pace);
        let call = MethodCall {
            tools: Arc::clone(self.beside.server.tools()),
            peer: peer.unwrap_or_else(|| self.peer.clone()),
            caller: self.caller,
            access,
            dialect,
            client,
            page_bytes: PAGE_BYTES,
            is_session_named: true,
            id,
            cancelled,
            hung_up: self.beside.gone.clone(),
            in_steps: Default::default(),
            is_beside: Arc::default(),
            effective: place.as_ref().map(|place| place.effective.clone()).unwrap_or_default(),
        };
        self.begin(place, StartedCall { method, call, params, reply }).await;
    }

    async fn begin(&self, place: Option<OrderPlace>, begun: StartedCall) {
        let pace = begun.method.pace;
        if matches!(pace, Pace::Aside | Pace::AsideAfter) || place.is_some() {
            return self.beside.run(place, begun).await;
        }
        let server = &self.beside.server;
        let StartedCall { method, call, params, reply } = begun;
        let is_beside = Arc::clone(&call.is_beside);
        let step = if pace == Pace::Prompt && reply.bytes <= LARGE_MESSAGE {
            promptly(|| begin(method, call, params))
        } else {
            let sent_to = SentTo::read(server, self.caller, &method, &params).await;
            begin_aside(method, call, params, sent_to, &reply).await
        };
        match is_beside.load(Ordering::Relaxed) {
            true => self.beside.settle(step, reply),
            false => settle(server, step, reply).await,
        }
    }
}

/// A call that is about to run, and the destination of its answer.
struct StartedCall {
    method: CalledMethod,
    call: MethodCall,
    params: Value,
    reply: EncodedReply,
}

/// The state of the calls that run alongside the client's other calls.
struct BesideCalls {
    server: Server,
    gone: CancellationToken,
    aside: Arc<Semaphore>,
    elsewhere: Arc<Semaphore>,
}

impl BesideCalls {
    /// Settles a call that turned out to have long work.
    fn settle(&self, step: Result<Step, WireError>, reply: EncodedReply) {
        let (server, aside) = (self.server.clone(), self.aside.clone());
        tokio::spawn(async move {
            let room = room_in(&aside, &reply).await;
            let step = room.as_ref().map_err(Clone::clone).and(step);
            settle(&server, step, reply).await;
        });
    }

    /// Starts a call. A call that must wait for its turn begins when its turn comes. However, a
    /// call with [`Pace::Aside`] that waits only for calls like itself, such as a directory walk
    /// behind other walks, begins at once, and takes effect in its turn. Tokio polls tasks in the
    /// order in which they are spawned, so these calls take their permits of `aside` in that order.
    async fn run(&self, place: Option<OrderPlace>, begun: StartedCall) {
        let StartedCall { method, mut call, params, mut reply } = begun;
        let is_beside = Arc::clone(&call.is_beside);
        let (server, gone) = (self.server.clone(), self.gone.clone());
        let (aside, elsewhere) = (self.aside.clone(), self.elsewhere.clone());
        let waits = place.as_ref().is_some_and(|place| !place.begins_at_once);
        let sent_to = match waits {
            false => Some(SentTo::read(&server, reply.caller, &method, &params).await),
            true => None,
        };
        tokio::spawn(async move {
            let in_turn = match &place {
                Some(place) if waits => in_turn(place, &gone, &mut call, &mut reply).await,
                _ => Ok(()),
            };
            let mut room = match &in_turn {
                Ok(()) => room_in(&aside, &reply).await,
                Err(error) => Err(error.clone()),
            };
            let mut step = match &room {
                Ok(_) => {
                    let sent_to = match sent_to {
                        Some(sent_to) => sent_to,
                        None => SentTo::read(&server, reply.caller, &method, &params).await,
                    };
                    begin_aside(method, call, params, sent_to, &reply).await
                }
                Err(error) => {
                    discard(params);
                    Err(error.clone())
                }
            };
            if let (Ok(_), Some(place)) = (&step, &place) {
                step = reply.unless_given_up(place.wait()).await.and(step);
            }
            let is_beside = is_beside.load(Ordering::Relaxed);
            let place = place.filter(|_| !is_beside);
            if !is_beside && matches!(step, Ok(Step::Await(_) | Step::AwaitEnd(_))) {
                // The room is freed first, so that a waiting call does not keep other calls from
                // working.
                drop(room);
                room = room_in(&elsewhere, &reply).await;
                step = room.as_ref().map_err(Clone::clone).and(step);
            }
            settle(&server, step, reply).await;
            drop(room);
            if let Some(place) = place {
                // Even a failed call keeps its place until the calls before it have left their
                // places.
                place.wait().await;
            }
        });
    }
}

/// Waits until it is the call's turn. If the client leaves meanwhile, the call still gets its turn.
/// Fails if the call is given up.
async fn in_turn(
    place: &OrderPlace,
    gone: &CancellationToken,
    call: &mut MethodCall,
    reply: &mut EncodedReply,
) -> Result<(), WireError> {
    let waited = reply.unless_given_up(place.wait()).await;
    if waited.is_err() && gone.is_cancelled() {
        place.wait().await;
        call.cancelled = Arc::default();
        reply.cancelled = Arc::clone(&call.cancelled);
        return Ok(());
    }
    waited
}

/// Drops a value; a large one is dropped on another thread, because that takes long.
pub(super) fn discard(value: Value) {
    if value.exceeds(LARGE_MESSAGE) {
        tokio::task::spawn_blocking(move || drop(value));
    }
}

fn begin(method: CalledMethod, call: MethodCall, params: Value) -> Result<Step, WireError> {
    catch_unwind(AssertUnwindSafe(|| method.run(call, params)))
        .unwrap_or_else(|_| Err(defect(method.name)))
}

/// Waits for a permit of `room`, or until the call is given up.
async fn room_in<'a>(
    room: &'a Semaphore,
    reply: &EncodedReply,
) -> Result<SemaphorePermit<'a>, WireError> {
    let acquired = reply.unless_given_up(room.acquire()).await?;
    // The semaphores are never closed.
    acquired.map_err(|_| engine_error(EngineError::Ended))
}

/// Begins a call on a thread that may block. A cancelled call is answered at once, and any later
/// result of its thread is dropped.
async fn begin_aside(
    method: CalledMethod,
    mut call: MethodCall,
    params: Value,
    sent_to: SentTo,
    reply: &EncodedReply,
) -> Result<Step, WireError> {
    let begun = async {
        call.is_session_named = !sent_to.is_current();
        let (params, has_session) = sent_to.named_in(params).await;
        let work = tokio::task::spawn_blocking(move || begin(method, call, params));
        let step = work.await.unwrap_or_else(|_| Err(defect(method.name)))?;
        // An error in the parameters takes precedence.
        has_session.map(|()| step)
    };
    reply.unless_given_up(begun).await?
}
