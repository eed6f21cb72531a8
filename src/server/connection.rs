//! One client: messages in, calls run in order, answers out.
//!
//! The reader never waits for the writer, and calls that take long never keep the reader from a
//! `cancel`. A panic in a method is an error reply.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Server;
use super::auth::Admission;
use super::outbox::{Out, Outbox, Writer};
use crate::engine::EngineError;
use crate::rpc::{self, Call, Finish, Method, Pace, Step, Work, engine_error};
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::frame::{Frame, LineDecoder};
use crate::wire::message::{Id, Incoming, Request, WireError};

/// How many calls of one client may wait for their turn; then its messages wait in the transport.
const WAITING_CALLS: usize = 4096;
/// Messages above this are decoded, and their calls begun, on a thread of their own.
const LARGE_MESSAGE: usize = 64 << 10;
/// The calls of one client that wait or run may have twice the bytes of the largest message; they
/// are counted in units of so many.
const ROOM_UNIT: usize = 1 << 10;
/// How many calls of one client run beside its others, such as walks of directories.
const CALLS_ASIDE: usize = 4;
/// The longest first line of a client that has to show a secret, and how long it may take.
const LONGEST_SECRET: usize = 4 << 10;
const ADMISSION_TIME: std::time::Duration = std::time::Duration::from_secs(10);
/// How many large answers of one client may be made and unread at a time: one is written while the
/// next is made. The calls beyond wait, and hold no copy of any content.
const LARGE_ANSWERS: usize = 2;
/// How many finished calls the table of running calls may hold before it is swept.
const SWEEP_RUNNING: usize = 1024;

/// Serves one client until it leaves, stops reading, or the server ends.
pub(super) async fn serve(
    server: Server,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    admission: Admission,
) {
    let limit = server.tools().limits.max_message_bytes;
    let (writer, outbox) = Writer::new(writer, limit);
    if matches!(admission, Admission::Refused) {
        tracing::warn!("a client of another user was turned away; there is no secret to show");
        return;
    }
    // Not a child of the server's end: what was accepted before it is still carried out.
    let gone = CancellationToken::new();
    let (calls, waiting) = mpsc::channel(WAITING_CALLS);
    let dispatcher = tokio::spawn(dispatch(server.clone(), outbox.clone(), waiting));
    let first_limit = if admission.is_pending() { limit.min(LONGEST_SECRET) } else { limit };
    let room = Arc::new(Semaphore::new(2 * limit / ROOM_UNIT + 1));
    let reading = read(
        Reader {
            server,
            outbox,
            calls,
            admission,
            dialect: None,
            running: HashMap::new(),
            room,
            gone: gone.clone(),
        },
        FramedRead::new(reader, LineDecoder::new(first_limit)),
    );
    let reading = tokio::spawn(reading);
    if let Err(error) = writer.run().await {
        tracing::debug!("a connection ended: {error}");
        gone.cancel();
        dispatcher.abort();
        reading.abort();
    }
}

/// A call on its way to the dispatcher.
struct Waiting {
    request: Request,
    cancelled: Arc<CancellationToken>,
    bytes: usize,
    room: Option<OwnedSemaphorePermit>,
}

struct Reader {
    server: Server,
    outbox: Outbox,
    calls: mpsc::Sender<Waiting>,
    admission: Admission,
    dialect: Option<Dialect>,
    running: HashMap<Id, Weak<CancellationToken>>,
    room: Arc<Semaphore>,
    gone: CancellationToken,
}

async fn read<R: AsyncRead + Unpin>(mut reader: Reader, mut frames: FramedRead<R, LineDecoder>) {
    let ending = reader.server.ending().clone();
    loop {
        let pending = reader.admission.is_pending();
        let frame = tokio::select! {
            () = reader.gone.cancelled() => return,
            () = ending.cancelled() => return,
            () = tokio::time::sleep(ADMISSION_TIME), if pending => return,
            frame = frames.next() => frame,
        };
        match frame {
            Some(Ok(frame)) => {
                if !reader.frame(frame).await {
                    return;
                }
                if pending && !reader.admission.is_pending() {
                    let limit = reader.server.tools().limits.max_message_bytes;
                    frames.decoder_mut().set_max_bytes(limit);
                }
            }
            Some(Err(error)) => {
                tracing::debug!("a connection broke: {error}");
                reader.gone.cancel();
                return;
            }
            None => return,
        }
    }
}

impl Reader {
    /// Takes one frame; false ends the connection.
    async fn frame(&mut self, frame: Frame) -> bool {
        match frame {
            Frame::Line(line) => match self.admission.admit(&line) {
                Some(true) => self.line(line).await,
                Some(false) => true,
                None => {
                    tracing::warn!("a client without the right secret was turned away");
                    false
                }
            },
            Frame::TooLong { bytes, limit } => {
                if self.admission.is_pending() {
                    return false;
                }
                let message = format!(
                    "the message had {bytes} bytes and at most {limit} are read; send less, or \
                     raise max-message-bytes"
                );
                let error = WireError::new(WireError::INVALID_REQUEST, message);
                self.outbox.reply(None, Err(error));
                true
            }
        }
    }

    async fn line(&mut self, line: Bytes) -> bool {
        let Some(dialect) = self.dialect_of(&line) else { return true };
        let bytes = line.len();
        let incoming = match bytes > LARGE_MESSAGE {
            false => dialect.decode(&line),
            true => match tokio::task::spawn_blocking(move || dialect.decode(&line)).await {
                Ok(incoming) => incoming,
                Err(_) => Incoming::Invalid(None, defect("reading the message")),
            },
        };
        match incoming {
            Incoming::Ignored => {}
            Incoming::Invalid(id, error) => self.outbox.reply(id, Err(error)),
            Incoming::Call(request) if request.method == "cancel" => self.cancel(request),
            Incoming::Call(request) => {
                let cancelled = Arc::new(self.gone.child_token());
                self.remember(&request, &cancelled);
                let units = u32::try_from(bytes / ROOM_UNIT + 1).unwrap_or(u32::MAX);
                // The semaphore is never closed, and a message has fewer units than it.
                let room = self.room.clone().acquire_many_owned(units).await.ok();
                let waiting = Waiting { request, cancelled, bytes, room };
                return self.calls.send(waiting).await.is_ok();
            }
        }
        true
    }

    /// The connection's dialect, which its first line decides.
    fn dialect_of(&mut self, line: &[u8]) -> Option<Dialect> {
        if self.dialect.is_none() && !line.trim_ascii().is_empty() {
            self.dialect = Dialect::of_line(line);
            match self.dialect {
                Some(dialect) => self.outbox.send(Out::Speak(dialect)),
                None => {
                    let message = "a message begins with ( for an s-expression or { for JSON";
                    let error = WireError::new(WireError::PARSE, message);
                    self.outbox.reply(None, Err(error));
                }
            }
        }
        self.dialect
    }

    fn remember(&mut self, request: &Request, cancelled: &Arc<CancellationToken>) {
        let Some(id) = &request.id else { return };
        if self.running.len() >= SWEEP_RUNNING {
            self.running.retain(|_, token| token.strong_count() > 0);
        }
        self.running.insert(id.clone(), Arc::downgrade(cancelled));
    }

    /// `cancel` overtakes the calls that wait, so it is not one of them.
    fn cancel(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let call = Call {
            tools: Arc::clone(self.server.tools()),
            peer: Arc::new(self.outbox.clone()),
            id: id.clone(),
            cancelled: Arc::new(CancellationToken::new()),
        };
        let outcome = match rpc::find(&method).and_then(|method| method.run(call, params)) {
            Ok(Step::Cancel(target)) => {
                let token = self.running.remove(&target).and_then(|token| token.upgrade());
                token.iter().for_each(|token| token.cancel());
                Ok(Value::Map(vec![("cancelled".into(), Value::Bool(token.is_some()))]))
            }
            Ok(_) => Err(defect(&method)),
            Err(error) => Err(error),
        };
        if id.is_some() {
            self.outbox.reply(id, outcome);
        }
    }
}

/// Runs a client's calls, each begun after the one before it.
async fn dispatch(server: Server, outbox: Outbox, mut waiting: mpsc::Receiver<Waiting>) {
    let peer: Arc<dyn rpc::Peer> = Arc::new(outbox.clone());
    let places = Arc::new(Semaphore::new(LARGE_ANSWERS));
    let aside = Arc::new(Semaphore::new(CALLS_ASIDE));
    while let Some(Waiting { request, cancelled, bytes, room }) = waiting.recv().await {
        let Request { id, method, params } = request;
        let reply = Reply {
            outbox: outbox.clone(),
            id: id.clone(),
            cancelled: cancelled.clone(),
            places: places.clone(),
            _room: room,
        };
        let method = match rpc::find(&method) {
            Ok(method) => method,
            Err(error) => {
                reply.send(Err(error));
                continue;
            }
        };
        let call = Call { tools: Arc::clone(server.tools()), peer: peer.clone(), id, cancelled };
        match method.pace {
            Pace::Prompt if bytes <= LARGE_MESSAGE => {
                let step = begin(method, call, params);
                settle(&server, step, reply).await;
            }
            Pace::Prompt | Pace::InOrder => begin_aside(&server, method, call, params, reply).await,
            Pace::Aside => {
                let (server, aside) = (server.clone(), aside.clone());
                tokio::spawn(async move {
                    // The semaphore is never closed.
                    let _place = aside.acquire().await.ok();
                    begin_aside(&server, method, call, params, reply).await;
                });
            }
        }
    }
}

/// Where the answer of a call goes; nowhere for a notification.
struct Reply {
    outbox: Outbox,
    id: Option<Id>,
    cancelled: Arc<CancellationToken>,
    places: Arc<Semaphore>,
    /// What the call's message took of the client's room, until it is answered.
    _room: Option<OwnedSemaphorePermit>,
}

impl Reply {
    fn send(self, outcome: Result<Value, WireError>) {
        self.send_from(outcome, None);
    }

    /// Sends an answer that has a place among the large ones.
    fn send_from(self, outcome: Result<Value, WireError>, place: Option<OwnedSemaphorePermit>) {
        match (&self.id, &outcome) {
            (Some(_), _) => self.outbox.reply_from(self.id, outcome, place),
            (None, Err(error)) => tracing::debug!("a notification failed: {error}"),
            (None, Ok(_)) => {}
        }
    }
}

fn begin(method: &'static Method, call: Call, params: Value) -> Result<Step, WireError> {
    catch_unwind(AssertUnwindSafe(|| method.run(call, params)))
        .unwrap_or_else(|_| Err(defect(method.name)))
}

/// Begins a call on a thread that may block. A cancelled call is answered at once; what its
/// thread still finds out is dropped.
async fn begin_aside(
    server: &Server,
    method: &'static Method,
    call: Call,
    params: Value,
    reply: Reply,
) {
    let cancelled = Arc::clone(&reply.cancelled);
    let work = tokio::task::spawn_blocking(move || begin(method, call, params));
    let step = tokio::select! {
        step = work => step.unwrap_or_else(|_| Err(defect(method.name))),
        () = cancelled.cancelled() => Err(engine_error(EngineError::Cancelled)),
    };
    settle(server, step, reply).await;
}

async fn settle(server: &Server, step: Result<Step, WireError>, reply: Reply) {
    match awaited(step, &reply.cancelled).await {
        Err(error) => reply.send(Err(error)),
        Ok(Step::Done(value)) => reply.send(Ok(value)),
        Ok(Step::Subscribe(topics)) => {
            let names = topics.iter().map(|topic| Value::Keyword(topic.name().into())).collect();
            reply.outbox.send(Out::Subscribe(topics, server.events.subscribe()));
            reply.send(Ok(Value::Map(vec![("topics".into(), Value::List(names))])));
        }
        Ok(Step::ShutDown) => {
            reply.send(Ok(Value::Bool(true)));
            server.ending().cancel();
        }
        Ok(Step::Cancel(_) | Step::Await(_)) => reply.send(Err(defect("the call"))),
        Ok(Step::State(operation)) => {
            let cancelled = Arc::clone(&reply.cancelled);
            let operation = move |engine: &mut _| match cancelled.is_cancelled() {
                true => Err(EngineError::Cancelled),
                false => operation(engine),
            };
            let answer = move |outcome| finish(outcome, reply);
            if let Err(error) = server.tools().engine.submit(operation, answer).await {
                tracing::debug!("a call came too late: {error}");
            }
        }
    }
}

/// The step that comes after what had to come from elsewhere. The work is given up when the call
/// is cancelled, and a panic in it is a defect of the call alone.
async fn awaited(
    step: Result<Step, WireError>,
    cancelled: &CancellationToken,
) -> Result<Step, WireError> {
    let Ok(Step::Await(work)) = step else { return step };
    let work = AbortOnDropHandle::new(tokio::spawn(work));
    tokio::select! {
        biased;
        () = cancelled.cancelled() => Err(engine_error(EngineError::Cancelled)),
        step = work => step.unwrap_or_else(|_| Err(defect("waiting for what the call needs"))),
    }
}

/// What is left to do after the commit.
fn finish(outcome: Result<Finish, EngineError>, reply: Reply) {
    match outcome {
        Err(error) => reply.send(Err(engine_error(error))),
        Ok(Finish::Now(value)) => reply.send(Ok(value)),
        Ok(Finish::Refused(error)) => reply.send(Err(error)),
        Ok(Finish::Later(work)) => drop(tokio::spawn(finish_later(work, reply))),
    }
}

/// Does what is left once there is a place for its answer.
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
        // First, so that the work of a client that has gone is not even begun.
        biased;
        () = cancelled.cancelled() => reply.send(Err(engine_error(EngineError::Cancelled))),
        (outcome, place) = working => reply.send_from(outcome, place),
    }
}

fn defect(what: &str) -> WireError {
    let message = format!("internal error in {what}; the server goes on, its log says more");
    WireError::new(WireError::INTERNAL, message)
}
