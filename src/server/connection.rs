//! One client: messages in, calls run in order, answers out.
//!
//! The reader never waits for the writer, and calls that take long never keep the reader from a
//! `cancel`.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;

use super::Server;
use super::auth::Admission;
use super::dispatch::{Inside, LARGE_MESSAGE, WAITING_CALLS, Waiting, defect, dispatch};
use super::outbox::{Out, Outbox, Writer};
use crate::repl::Repls;
use crate::rpc::{self, Call, Step};
use crate::value::Value;
use crate::wire::dialect::Dialect;
use crate::wire::frame::{Ends, Frame, LONGEST_FIRST_LINE, StreamDecoder, show_header};
use crate::wire::message::{Id, Incoming, Request, WireError};

/// The calls of one client that wait or run may have twice the bytes of the largest message; they
/// are counted in units of so many.
const ROOM_UNIT: usize = 1 << 10;
/// How long a client may take that has to show a secret.
const ADMISSION_TIME: std::time::Duration = std::time::Duration::from_secs(10);
/// How many finished calls the table of running calls may hold before it is swept.
const SWEEP_RUNNING: usize = 1024;

/// Serves one client until it leaves, stops reading, or the server ends.
pub(super) async fn serve(
    server: Server,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    admission: Admission,
    hung_up: impl Future<Output = ()> + Send,
) {
    let limit = server.tools().limits.max_message_bytes;
    let (writer, outbox) = Writer::new(writer, limit);
    let outbox = outbox.of_same_user(!admission.is_pending());
    if matches!(admission, Admission::Refused) {
        tracing::warn!("a client of another user was turned away; there is no secret to show");
        return;
    }
    // Not a child of the server's end: what was accepted before it is still carried out.
    let gone = CancellationToken::new();
    let (calls, waiting) = mpsc::channel(WAITING_CALLS);
    let mut dispatcher = tokio::spawn(dispatch(server.clone(), outbox.clone(), waiting));
    let first_limit = if admission.is_pending() { limit.min(LONGEST_FIRST_LINE) } else { limit };
    let room = Arc::new(Semaphore::new(2 * limit / ROOM_UNIT + 1));
    let mut decoder = StreamDecoder::new(first_limit);
    if let Some(secret) = admission.secret() {
        // It may well look like a header.
        decoder = decoder.with_first_line(Box::new(move |line| secret.is(line)));
    }
    let (engine, caller) = (server.tools().engine.clone(), calls.downgrade());
    let reading = read(
        Reader {
            server,
            outbox,
            calls,
            admission,
            dialect: None,
            is_new: true,
            running: HashMap::new(),
            room,
            repls: None,
            gone: gone.clone(),
        },
        FramedRead::new(reader, decoder),
    );
    let mut reading = tokio::spawn(reading);
    let leaving = async {
        hung_up.await;
        // What a client sent before it left is carried out; what it would have waited for is not
        // waited for.
        let _ = (&mut reading).await;
        match caller.upgrade() {
            Some(calls) => last_call(Inside { calls, gone: gone.clone() }).await,
            None => drop((&mut dispatcher).await),
        }
        let _ = engine.ask(|_| Ok(())).await;
        gone.cancel();
    };
    let writing = writer.run();
    tokio::pin!(writing);
    let written = tokio::select! {
        written = &mut writing => written,
        () = leaving => writing.await,
    };
    if let Err(error) = written {
        tracing::debug!("a connection ended: {error}");
        gone.cancel();
        dispatcher.abort();
        reading.abort();
    }
}

/// Waits until all that was called before has at least begun.
async fn last_call(caller: Inside) {
    // What it answers does not matter.
    let _ = rpc::Caller::call(&caller, "ping", Value::Nil).await;
}

struct Reader {
    server: Server,
    outbox: Outbox,
    calls: mpsc::Sender<Waiting>,
    admission: Admission,
    dialect: Option<Dialect>,
    /// Nothing has come yet.
    is_new: bool,
    running: HashMap<Id, Weak<CancellationToken>>,
    room: Arc<Semaphore>,
    repls: Option<Box<Repls>>,
    gone: CancellationToken,
}

async fn read<R: AsyncRead + Unpin>(mut reader: Reader, mut frames: FramedRead<R, StreamDecoder>) {
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
                if reader.is_new && reader.dialect.is_none() && frames.decoder().is_framed() {
                    // Until it is known which of the two it is.
                    reader.outbox.send(Out::Speak(Dialect::Epc));
                }
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
        let (message, framed) = match frame {
            Frame::Line(line) => (line, false),
            Frame::Payload(payload) => (payload, true),
            Frame::TooLong { bytes, limit, ends } => {
                let why = format!(
                    "the message had {bytes} bytes and at most {limit} are read; send less, or \
                     raise max-message-bytes"
                );
                self.refuse(ends, why);
                return !self.admission.is_pending();
            }
            Frame::Lost { header } => {
                let why = format!(
                    "a message begins with its length, six hex digits, got {}; no further message \
                     can be found, so this connection ends",
                    show_header(&header)
                );
                self.refuse(None, why);
                return false;
            }
        };
        let is_first = std::mem::replace(&mut self.is_new, false);
        match self.admission.admit(&message) {
            Some(true) => self.message(message, framed, is_first).await,
            Some(false) => true,
            None => {
                tracing::warn!("a client without the right secret was turned away");
                false
            }
        }
    }

    /// Answers what is no message, unless the client still has to show who it is. Who waits for an
    /// answer to a message of which only the ends are known is given this one.
    fn refuse(&mut self, ends: Option<Ends>, why: String) {
        if self.admission.is_pending() {
            return;
        }
        let id = ends.and_then(|ends| {
            let known =
                self.dialect.or_else(|| self.begin_dialect(Dialect::of_payload(&ends.first)));
            known.and_then(|dialect| dialect.id_of_ends(&ends))
        });
        self.outbox.reply(id, Err(WireError::new(WireError::INVALID_REQUEST, why)));
    }

    async fn message(&mut self, message: Bytes, framed: bool, is_first: bool) -> bool {
        let dialect = match framed {
            true => self.dialect_of_payload(&message, is_first),
            false => self.dialect_of_line(&message),
        };
        let Some(dialect) = dialect else { return true };
        let bytes = message.len();
        let incoming = match bytes > LARGE_MESSAGE {
            false => dialect.decode(&message),
            true => match tokio::task::spawn_blocking(move || dialect.decode(&message)).await {
                Ok(incoming) => incoming,
                Err(_) => Incoming::Invalid(None, defect("reading the message")),
            },
        };
        match incoming {
            Incoming::Ignored => {}
            Incoming::Invalid(id, error) => self.outbox.reply(id, Err(error)),
            Incoming::Methods(id) => self.outbox.reply(id, Ok(method_rows())),
            Incoming::Talk(talk) => return self.repls().take(talk),
            Incoming::Call(request) if request.method == "cancel" => self.cancel(request),
            Incoming::Call(request) => {
                let cancelled = Arc::new(self.gone.child_token());
                self.remember(&request, &cancelled);
                let units = u32::try_from(bytes / ROOM_UNIT + 1).unwrap_or(u32::MAX);
                // The semaphore is never closed, and a message has fewer units than it.
                let room = self.room.clone().acquire_many_owned(units).await.ok();
                let waiting =
                    Waiting { request, answer_to: None, peer: None, cancelled, bytes, room };
                return self.calls.send(waiting).await.is_ok();
            }
        }
        true
    }

    /// The dialect of a connection of lines, which the first line decides.
    fn dialect_of_line(&mut self, line: &[u8]) -> Option<Dialect> {
        let is_open = self.dialect.is_none() && !line.trim_ascii().is_empty();
        if is_open && self.begin_dialect(Dialect::of_line(line)).is_none() {
            let message = "a message begins with ( for an s-expression or { for JSON";
            let error = WireError::new(WireError::PARSE, message);
            self.outbox.reply(None, Err(error));
        }
        self.dialect
    }

    /// The dialect of the connection from now on, once it is known.
    fn begin_dialect(&mut self, dialect: Option<Dialect>) -> Option<Dialect> {
        self.dialect = dialect;
        self.dialect.inspect(|dialect| self.outbox.send(Out::Speak(*dialect)))
    }

    /// The dialect of a connection of payloads, which the first of them decides that is one. The
    /// very first may be a secret that nobody asked for.
    fn dialect_of_payload(&mut self, payload: &[u8], is_first: bool) -> Option<Dialect> {
        if self.dialect.is_none() && !payload.trim_ascii().is_empty() {
            let is_secret = is_first && !payload.starts_with(b"(");
            if self.begin_dialect(Dialect::of_payload(payload)).is_none() && !is_secret {
                let message = "a message with its length before it is one of EPC, such as \
                               (call 1 ping nil), or one of SLY or SLIME: (:emacs-rex …)";
                let error = WireError::new(WireError::PARSE, message);
                self.outbox.reply(None, Err(error));
            }
        }
        self.dialect
    }

    /// The REPLs of the connection, of which most have none.
    fn repls(&mut self) -> &mut Repls {
        self.repls.get_or_insert_with(|| {
            let caller = Inside { calls: self.calls.clone(), gone: self.gone.clone() };
            let editor = Arc::new(self.outbox.clone());
            let settings = self.server.tools().repl.clone();
            Box::new(Repls::new(editor, Arc::new(caller), settings))
        })
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

/// The methods as EPC lists them: name, arguments, documentation.
fn method_rows() -> Value {
    let row = |method: &rpc::Method| {
        let arguments: Vec<_> =
            method.params.iter().map(|param| format!(":{} {}", param.name, param.kind)).collect();
        Value::List(vec![
            Value::Symbol(method.name.into()),
            Value::Str(arguments.join(", ")),
            Value::from(method.doc),
        ])
    };
    Value::List(rpc::methods().map(row).collect())
}
