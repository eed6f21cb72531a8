//! Reads one client's messages and queues their calls in order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncRead;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::dispatch::{DispatchedCall, Inside, discard};
use super::door::{Door, EntryKind};
use super::epc::method_rows;
use super::guests::warn_of;
use super::outbox::{Out, Outbox};
use super::running::RunningCalls;
use super::settle::{LARGE_MESSAGE, defect};
use crate::engine::{Caller, EngineError};
use crate::repl::{MessageRoom, Repls};
use crate::rpc::limits::{MAX_CANCEL_BYTES, PAGE_BYTES, WAITING_CALLS};
use crate::rpc::{self, CallCancelled, MethodCall, Step, engine_error, spelled};
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::frame::{Frame, MessageEnds, show_header};
use crate::wire::guard::GuardedDecoder;
use crate::wire::message::{CallRequest, Incoming, WireError};

/// Size in bytes of one permit of the semaphore that bounds what a client's queued and running calls
/// and evaluations take.
const ROOM_UNIT: usize = 1 << 10;
/// Number of bytes that a message to a REPL counts for beside its length: what it begins is a task.
const EVALUATION_BYTES: usize = 8 << 10;

/// Returns the number of permits for a client: they stand for twice the bytes of the largest message,
/// and for as many evaluations as calls may wait.
pub(super) fn permits(largest: usize) -> usize {
    (2 * largest + WAITING_CALLS * EVALUATION_BYTES) / ROOM_UNIT + 1
}

/// Time from the beginning of a shutdown during which each new call still gets an error as its
/// answer. A client may have sent these calls before it could know of the shutdown.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The reader of one client's messages.
pub(super) struct ClientReader {
    pub(super) server: Server,
    pub(super) outbox: Outbox,
    pub(super) calls: mpsc::Sender<DispatchedCall>,
    pub(super) door: Door,
    pub(super) dialect: Option<Dialect>,
    pub(super) running: RunningCalls,
    pub(super) room: Arc<Semaphore>,
    pub(super) repls: Option<Box<Repls>>,
    pub(super) gone: CancellationToken,
}

/// Reads messages until the client leaves or must be disconnected, or the server ends.
pub(super) async fn read<R: AsyncRead + Unpin>(
    mut reader: ClientReader,
    mut frames: FramedRead<R, GuardedDecoder>,
) {
    let ending = reader.server.ending().clone();
    let began = tokio::time::Instant::now();
    loop {
        let wary = reader.door.is_wary();
        let patience = reader.door.patience();
        let end = began + patience.unwrap_or_default();
        let frame = tokio::select! {
            () = reader.gone.cancelled() => return,
            () = ending.cancelled() => return last_words(&mut reader, frames).await,
            () = tokio::time::sleep_until(end), if patience.is_some() => return,
            () = reader.door.sent_away() => return,
            frame = frames.next() => frame,
        };
        match frame {
            Some(Ok(frame)) => {
                let framed = frames.decoder_mut().messages().is_framed();
                if reader.door.is_new() && reader.dialect.is_none() && framed {
                    // Errors are sent as EPC until the first payload shows the protocol.
                    reader.outbox.send(Out::Speak(Dialect::Epc));
                }
                let turn = tokio::select! {
                    // What need not wait is taken before anything else.
                    biased;
                    turn = reader.door.turn() => turn,
                    () = ending.cancelled() => return,
                    () = tokio::time::sleep_until(end), if patience.is_some() => return,
                    () = reader.door.sent_away() => return,
                };
                let goes_on = reader.frame(frame).await;
                if let Some(turn) = turn.filter(|_| reader.door.is_pending()) {
                    turn.note_wrong();
                }
                if !goes_on {
                    return;
                }
                let limit = reader.door.longest(reader.server.tools().limits.max_message_bytes);
                frames.decoder_mut().messages().set_max_bytes(limit);
                if wary && !reader.door.is_wary() {
                    frames.decoder_mut().set_begun();
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

/// Answers the calls that the client sent before it could know that the server ends.
async fn last_words<R: AsyncRead + Unpin>(
    reader: &mut ClientReader,
    mut frames: FramedRead<R, GuardedDecoder>,
) {
    let heard = async {
        while let Some(Ok(frame)) = frames.next().await
            && reader.frame(frame).await
        {}
    };
    // Waits until the time has passed or the client has left.
    let _ = tokio::time::timeout(LAST_WORDS, heard).await;
}

impl ClientReader {
    /// Handles one frame. Returns false if the connection must end.
    async fn frame(&mut self, frame: Frame) -> bool {
        let (message, framed) = match frame {
            Frame::Line(line) => (line, false),
            Frame::Payload(payload) => (payload, true),
            Frame::TooLong { bytes, limit, ends, is_payload } => {
                let why = format!(
                    "the message has {bytes} bytes, but at most {limit} are accepted; send less, \
                     or raise max-message-bytes"
                );
                return self.refuse(Some((ends, is_payload)), why);
            }
            Frame::Lost { header } => {
                let why = format!(
                    "expected a message length of six hex digits, got {}; the next message cannot \
                     be found, so this connection ends",
                    show_header(&header)
                );
                self.refuse(None, why);
                return false;
            }
            Frame::Foreign => return self.turn_away(),
            Frame::Relayed => {
                self.door.note_relayed();
                return true;
            }
        };
        match self.door.enter(&message, framed) {
            EntryKind::Message => self.message(message, framed).await,
            EntryKind::Secret => true,
            EntryKind::Stranger => {
                warn_of("refused a client that did not send the right secret", "");
                false
            }
        }
    }

    /// Logs that the connection ends without an answer, because the other side may not be a client.
    /// Returns false, which ends the connection.
    fn turn_away(&self) -> bool {
        warn_of("ended a TCP connection: the client did not send a valid message", "");
        false
    }

    /// Answers an unreadable message with an error. On a TCP connection on which no valid message
    /// has come yet, sends nothing and returns false, which ends the connection. Reads the dialect
    /// and the request id from the ends of an oversized message, so that the client can tell which
    /// call failed.
    fn refuse(&mut self, oversized: Option<(MessageEnds, bool)>, why: String) -> bool {
        if self.door.is_wary() {
            return self.turn_away();
        }
        let id = oversized.and_then(|(ends, is_payload)| {
            let known = self.dialect.or_else(|| {
                let of = if is_payload { Dialect::of_payload } else { Dialect::of_line };
                self.begin_dialect(of(&ends.first))
            });
            known.and_then(|dialect| dialect.id_of_ends(&ends))
        });
        self.outbox.reply(id, Err(WireError::new(WireError::INVALID_REQUEST, why)));
        true
    }

    async fn message(&mut self, message: Bytes, framed: bool) -> bool {
        let Some(dialect) = self.dialect_of(&message, framed) else {
            return !self.door.is_wary() || self.turn_away();
        };
        let bytes = message.len();
        let incoming = match bytes > LARGE_MESSAGE {
            false => dialect.decode(&message),
            true => match tokio::task::spawn_blocking(move || dialect.decode(&message)).await {
                Ok(incoming) => incoming,
                Err(_) => Incoming::Invalid(None, defect("reading the message")),
            },
        };
        match incoming {
            Incoming::Ignored | Incoming::Invalid(..) if self.door.is_wary() => {
                return self.turn_away();
            }
            _ => self.door.note_message(),
        }
        match incoming {
            Incoming::Ignored => {}
            Incoming::Invalid(id, error) => {
                self.outbox.reply(id, Err(spelled(error, dialect, None)))
            }
            Incoming::Methods(id) => self.outbox.reply(id, Ok(method_rows())),
            Incoming::Talk(talk) => {
                let room = self.room_for(bytes + EVALUATION_BYTES).await;
                return self.repls().take(talk, room);
            }
            Incoming::Call(request) if request.method == "cancel" => match bytes > MAX_CANCEL_BYTES
            {
                false => self.cancel(request, dialect),
                true => {
                    let why = format!("a cancel message may have at most {MAX_CANCEL_BYTES} bytes");
                    let error = WireError::new(WireError::INVALID_REQUEST, why);
                    self.outbox.reply(request.id, Err(error));
                    discard(request.params);
                }
            },
            Incoming::Call(request) if self.server.ending().is_cancelled() => {
                discard(request.params);
                if request.id.is_some() {
                    self.outbox.reply(request.id, Err(engine_error(EngineError::Ended)));
                }
            }
            Incoming::Call(request) => {
                let cancelled = Arc::new(self.gone.child_token());
                self.running.remember(&request, &cancelled);
                let access = self.door.access();
                let room = self.room_for(bytes).await;
                let waiting = DispatchedCall {
                    request,
                    answer_to: None,
                    peer: None,
                    access,
                    dialect,
                    cancelled,
                    bytes,
                    room,
                };
                return self.calls.send(waiting).await.is_ok();
            }
        }
        true
    }

    /// Waits for room for so many bytes among the messages of the connection.
    async fn room_for(&self, bytes: usize) -> MessageRoom {
        let units = u32::try_from(bytes / ROOM_UNIT + 1).unwrap_or(u32::MAX);
        // The semaphore is never closed, and no message needs more permits than there are.
        self.room.clone().acquire_many_owned(units).await.ok()
    }

    /// Returns the dialect of the connection, which the first recognized line or payload decides;
    /// `None` until then. Answers a message in no known dialect with an explanation, except to a
    /// TCP client that has sent no valid message yet.
    fn dialect_of(&mut self, message: &[u8], framed: bool) -> Option<Dialect> {
        if self.dialect.is_some() || message.trim_ascii().is_empty() {
            return self.dialect;
        }
        let (recognized, hint) = match framed {
            true => (
                Dialect::of_payload(message),
                "a framed message must be EPC, such as (call 1 ping nil), or a message of SLY or \
                 SLIME, such as (:emacs-rex …)",
            ),
            false => (
                Dialect::of_line(message),
                "a message begins with ( for an s-expression or { for JSON",
            ),
        };
        if recognized.is_none() && !self.door.is_wary() {
            self.outbox.reply(None, Err(WireError::new(WireError::PARSE, hint)));
        }
        self.begin_dialect(recognized)
    }

    /// Sets the dialect of the connection and of its writer, unless `dialect` is `None`. Returns
    /// `dialect`.
    fn begin_dialect(&mut self, dialect: Option<Dialect>) -> Option<Dialect> {
        self.dialect = dialect;
        self.dialect.inspect(|dialect| self.outbox.send(Out::Speak(*dialect)))
    }

    /// Returns the connection's REPLs, created on first use because most connections have none.
    fn repls(&mut self) -> &mut Repls {
        self.repls.get_or_insert_with(|| {
            let (calls, gone) = (self.calls.clone(), self.gone.clone());
            let caller = Inside { calls, access: self.door.access(), gone };
            let editor = Arc::new(self.outbox.clone());
            let settings = self.server.tools().repl.clone();
            Box::new(Repls::new(editor, Arc::new(caller), settings))
        })
    }

    /// Runs `cancel` at once: it must overtake the queued calls.
    fn cancel(&mut self, request: CallRequest, dialect: Dialect) {
        let CallRequest { id, method, mut params } = request;
        let call = MethodCall {
            tools: Arc::clone(self.server.tools()),
            peer: Arc::new(self.outbox.clone()),
            caller: Caller::Nobody,
            access: self.door.access(),
            dialect,
            client: Arc::default(),
            page_bytes: PAGE_BYTES,
            is_session_named: true,
            id: id.clone(),
            cancelled: Arc::new(CancellationToken::new()),
            hung_up: self.gone.clone(),
            in_steps: Default::default(),
            is_beside: Arc::default(),
            effective: CancellationToken::new(),
        };
        let found = rpc::find(&method, &mut params);
        let called = found.as_ref().ok().map(|called| called.method);
        let outcome = match found.and_then(|method| method.run(call, params)) {
            Ok(Step::Cancel(target)) => {
                Ok(Value::of(&CallCancelled { cancelled: self.running.cancel(&target) }))
            }
            Ok(_) => Err(defect(&method)),
            Err(error) => Err(spelled(error, dialect, called)),
        };
        if id.is_some() {
            self.outbox.reply(id, outcome);
        }
    }
}
