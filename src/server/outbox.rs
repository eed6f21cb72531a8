//! Outgoing messages of one client. They are encoded in order and written as fast as the client
//! reads, and their total size is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::backpressure::{Backpressure, CHATTER_LIMIT, Unread};
use super::notify::{EventBurst, is_wanted, notification, notifications};
use crate::engine::Event;
use crate::repl::Editor;
use crate::rpc::limits::max_unread_of_one;
use crate::rpc::{Later, Peer, Subscription};
use crate::value::Value;
use crate::wire::dialect::{Dialect, Encoder};
use crate::wire::message::{Outgoing, RequestId, WireError};

/// Approximate size of a progress message without its texts, in bytes.
const PROGRESS_FRAME: usize = 64;
/// Size in bytes, as counted by [`Value::exceeds`], above which an answer is encoded on another
/// thread. Encoding an answer of this size takes about a millisecond; handing it to a thread takes
/// about fifty microseconds.
const LARGE_ANSWER: usize = 256 << 10;
/// Maximum length of an error message in bytes. Many errors repeat their input.
const LONGEST_ERROR: usize = 8 << 10;
/// Buffer capacity in bytes that the writer keeps between messages.
const KEPT_BUFFER: usize = 1 << 20;

/// Instruction for the writer.
pub(super) enum Out {
    Message(Outgoing),
    /// A notification for this client alone, such as progress of a call, with its approximate size
    /// in bytes.
    Told(&'static str, Value, usize),
    /// A large answer, with its places.
    Large(Outgoing, LargePlaces),
    /// The client's dialect, once it is known.
    Speak(Dialect),
    /// A subscription, beginning with the next event.
    Subscribe(Subscription, broadcast::Receiver<Arc<EventBurst>>),
}

/// The permits that a large answer holds. Each is a place among a limited number of large answers.
pub(super) struct LargePlaces {
    /// Place among the client's, until the client has less than [`CHATTER_LIMIT`] bytes left to
    /// read.
    pub(super) own: OwnedSemaphorePermit,
    /// Place among those of all clients, until the answer is encoded. An encoded answer counts as
    /// unread.
    pub(super) of_all: OwnedSemaphorePermit,
}

/// Sender of messages to the writer. The writer ends when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Outbox {
    sender: mpsc::UnboundedSender<Out>,
    backpressure: Arc<Backpressure>,
    /// True if the client's dialect has progress messages.
    has_progress: Arc<AtomicBool>,
}

impl Outbox {
    pub(super) fn reply(&self, id: Option<RequestId>, outcome: Result<Value, WireError>) {
        self.reply_from(id, outcome, None);
    }

    /// Sends a reply. `places` are those of a large answer; `None` for other answers.
    pub(super) fn reply_from(
        &self,
        id: Option<RequestId>,
        outcome: Result<Value, WireError>,
        places: Option<LargePlaces>,
    ) {
        let message = Outgoing::Reply(id, outcome);
        self.send(match places {
            Some(places) => Out::Large(message, places),
            None => Out::Message(message),
        });
    }

    pub(super) fn send(&self, out: Out) {
        if let Out::Speak(dialect) = &out {
            self.has_progress.store(dialect.has_progress(), Ordering::Relaxed);
        }
        // The client may have gone.
        let _ = self.sender.send(out);
    }
}

impl Editor for Outbox {
    fn tell(&self, event: Value) {
        self.send(Out::Message(Outgoing::Event(event)));
    }

    fn answer(&self, id: i64, outcome: Result<Value, WireError>) {
        self.reply(Some(RequestId::Int(id)), outcome);
    }
}

impl Peer for Outbox {
    fn progress(&self, params: Value) -> bool {
        self.notify("progress", params)
    }

    fn notify(&self, topic: &'static str, params: Value) -> bool {
        if !self.has_progress.load(Ordering::Relaxed) || self.backpressure.bytes() >= CHATTER_LIMIT
        {
            return false;
        }
        let bytes = about(&params);
        self.backpressure.add_queued(bytes);
        self.sender.send(Out::Told(topic, params, bytes)).is_ok()
    }

    fn room(&self) -> Later<'_, ()> {
        Box::pin(self.backpressure.room())
    }
}

/// The writer that encodes and writes the messages of an [`Outbox`].
pub(super) struct OutboxWriter<W> {
    sink: W,
    queue: mpsc::UnboundedReceiver<Out>,
    subscription: Option<broadcast::Receiver<Arc<EventBurst>>>,
    wanted: Subscription,
    encoder: Encoder,
    /// Events that were held back because the client had too much unread: the latest of each kind
    /// and subject. They are sent once the client has caught up.
    missed: Vec<Event>,
    places: Vec<OwnedSemaphorePermit>,
    buffer: Vec<u8>,
    written: usize,
    backpressure: Arc<Backpressure>,
    max_message: usize,
}

/// Reason why a connection's writer ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("the client has gone: {0}")]
    Gone(#[from] std::io::Error),
    #[error("the client left {0} bytes of answers unread")]
    TooSlow(usize),
}

impl<W: AsyncWrite + Unpin> OutboxWriter<W> {
    pub(super) fn new(sink: W, max_message: usize, unread: &Unread) -> (Self, Outbox) {
        let (sender, queue) = mpsc::unbounded_channel();
        let backpressure = unread.join();
        let writer = Self {
            sink,
            queue,
            subscription: None,
            wanted: Subscription::default(),
            encoder: Encoder::new(Dialect::Native),
            missed: Vec::new(),
            places: Vec::new(),
            buffer: Vec::new(),
            written: 0,
            backpressure: Arc::clone(&backpressure),
            max_message,
        };
        let has_progress = Arc::new(AtomicBool::new(Dialect::Native.has_progress()));
        (writer, Outbox { sender, backpressure, has_progress })
    }

    /// Writes until every [`Outbox`] is dropped and everything is written.
    pub(super) async fn run(mut self) -> Result<(), WriteError> {
        let mut open = true;
        loop {
            // Encodes only as much ahead as will be written soon, so that a client that keeps
            // reading does not count as slow just because answers are made faster than they are
            // written.
            while self.pending() < KEPT_BUFFER
                && let Ok(out) = self.queue.try_recv()
            {
                self.take(out).await?;
            }
            if !open && self.pending() == 0 {
                self.sink.flush().await?;
                return Ok(());
            }
            tokio::select! {
                biased;
                () = self.backpressure.hang_up.cancelled() => {
                    return Err(WriteError::TooSlow(self.pending()));
                }
                written = self.sink.write(&self.buffer[self.written..]), if self.pending() > 0 => {
                    self.advance(written?)?;
                }
                burst = next_burst(&mut self.subscription), if self.subscription.is_some() => {
                    self.notify(burst).await;
                }
                out = self.queue.recv(), if open => match out {
                    Some(out) => self.take(out).await?,
                    None => open = false,
                },
            }
        }
    }

    async fn take(&mut self, out: Out) -> Result<(), WriteError> {
        match out {
            Out::Speak(dialect) => self.encoder = Encoder::new(dialect),
            Out::Subscribe(wanted, events) => {
                self.subscription = (!wanted.topics.is_empty()).then_some(events);
                self.wanted = wanted;
            }
            Out::Told(topic, params, bytes) => {
                self.backpressure.take_queued(bytes);
                self.encode(Outgoing::Notify(topic, params));
            }
            Out::Message(message) => self.encode_somewhere(message).await,
            Out::Large(message, LargePlaces { own, of_all }) => {
                self.encode_somewhere(message).await;
                self.places.push(own);
                self.note_pending();
                drop(of_all);
            }
        }
        self.note_pending();
        match self.pending() > max_unread_of_one(self.max_message) {
            true => Err(WriteError::TooSlow(self.pending())),
            false => Ok(()),
        }
    }

    /// Encodes a message. A large message is encoded on another thread, so that only this client
    /// waits for it.
    async fn encode_somewhere(&mut self, message: Outgoing) {
        if !is_large(&message) {
            return self.encode(message);
        }
        let (mut encoder, max_message) = (self.encoder.clone(), self.max_message);
        let encoding = tokio::task::spawn_blocking(move || {
            let mut buffer = Vec::new();
            encode(message, &mut encoder, max_message, &mut buffer);
            (encoder, buffer)
        });
        // Encoding does not panic, and the runtime outlives its connections.
        let Ok((encoder, buffer)) = encoding.await else { return };
        self.encoder = encoder;
        match self.pending() {
            0 => (self.buffer, self.written) = (buffer, 0),
            _ => self.buffer.extend_from_slice(&buffer),
        }
    }

    fn encode(&mut self, message: Outgoing) {
        encode(message, &mut self.encoder, self.max_message, &mut self.buffer);
    }

    async fn notify(&mut self, burst: Result<Arc<EventBurst>, RecvError>) {
        match burst {
            Ok(burst) if self.pending() < CHATTER_LIMIT => {
                let told = match burst.is_large() {
                    false => notifications(&burst, &self.wanted),
                    true => {
                        let wanted = self.wanted.clone();
                        let told = move || notifications(&burst, &wanted);
                        tokio::task::spawn_blocking(told).await.unwrap_or_default()
                    }
                };
                for message in told {
                    self.encode_somewhere(message).await;
                }
            }
            Ok(burst) => self.miss(&burst),
            Err(RecvError::Lagged(missed)) => {
                tracing::debug!("a slow client missed the events of {missed} commits");
            }
            Err(RecvError::Closed) => self.subscription = None,
        }
    }

    /// Holds events back, keeping only the latest of each kind and subject.
    fn miss(&mut self, burst: &EventBurst) {
        for event in burst.events.iter().filter(|event| is_wanted(event, &self.wanted)) {
            let place = self.missed.iter().position(|known| known.is_like(event));
            let known = place.map(|place| self.missed.remove(place));
            let event = event.clone();
            self.missed.push(match known {
                Some(known) => event.covering(&known),
                None => event,
            });
        }
    }

    fn pending(&self) -> usize {
        self.buffer.len() - self.written
    }

    fn advance(&mut self, written: usize) -> Result<(), WriteError> {
        if written == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
        }
        self.written += written;
        if self.pending() == 0 {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BUFFER);
            self.written = 0;
        } else if self.written > KEPT_BUFFER && self.written > self.pending() {
            // Keeps the buffer from growing without end for a client that always has answers in
            // flight.
            self.buffer.drain(..self.written);
            self.written = 0;
        }
        self.note_pending();
        Ok(())
    }

    /// Reports how much is unread. When little is unread, frees the places of large answers and
    /// sends the events that were held back.
    fn note_pending(&mut self) {
        self.backpressure.set_pending(self.pending(), self.max_message);
        if self.pending() < CHATTER_LIMIT {
            self.places.clear();
            for event in std::mem::take(&mut self.missed) {
                if let Some(told) = notification(&event, false) {
                    self.encode(told);
                }
            }
        }
    }
}

/// Appends a message to the buffer. An answer that is too long becomes an error; a notification
/// that is too long is dropped.
fn encode(mut message: Outgoing, encoder: &mut Encoder, max_message: usize, buffer: &mut Vec<u8>) {
    if let Outgoing::Reply(_, Err(error)) = &mut message
        && error.message.len() > LONGEST_ERROR
    {
        error.message.truncate(error.message.floor_char_boundary(LONGEST_ERROR));
        error.message.push('…');
    }
    let start = buffer.len();
    let bytes = encoder.encode(&message, buffer);
    let longest = encoder.dialect().longest(max_message);
    if bytes > longest {
        buffer.truncate(start);
        let Outgoing::Reply(id, _) = message else { return };
        let advice = match longest < max_message {
            true => "; a length of six hex digits cannot announce more",
            false => ", or raise max-message-bytes",
        };
        let error = WireError::new(
            WireError::INVALID_REQUEST,
            format!(
                "the answer has {bytes} bytes, but at most {longest} can be sent; ask for \
                 less, if the method has parameters for that{advice}"
            ),
        );
        encoder.encode(&Outgoing::Reply(id, Err(error)), buffer);
    }
}

/// Returns whether encoding a message takes so long that other clients would notice.
fn is_large(message: &Outgoing) -> bool {
    match message {
        Outgoing::Reply(_, Ok(value)) | Outgoing::Notify(_, value) | Outgoing::Event(value) => {
            value.exceeds(LARGE_ANSWER)
        }
        Outgoing::Reply(_, Err(error)) => {
            error.message.len() > LARGE_ANSWER || error.data.exceeds(LARGE_ANSWER)
        }
    }
}

fn about(progress: &Value) -> usize {
    let length = |value: &Value| if let Value::Str(text) = value { text.len() } else { 0 };
    let Value::Map(entries) = progress else { return PROGRESS_FRAME };
    PROGRESS_FRAME + entries.iter().map(|(_, value)| length(value)).sum::<usize>()
}

async fn next_burst(
    subscription: &mut Option<broadcast::Receiver<Arc<EventBurst>>>,
) -> Result<Arc<EventBurst>, RecvError> {
    match subscription {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
