//! What goes out to one client: encoded in order, written as the client reads, bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

use super::notify::{Burst, is_about, notification, notifications};
use crate::engine::Event;
use crate::repl::Editor;
use crate::rpc::{Later, Peer, Topic};
use crate::value::Value;
use crate::wire::dialect::{Dialect, Encoder};
use crate::wire::message::{Id, Outgoing, WireError};

/// A client that has this many bytes of progress and notifications unread gets no more of them.
pub(super) const CHATTER_LIMIT: usize = 1 << 20;
/// With less than this there is room for progress that must not be dropped.
const ROOM_LIMIT: usize = CHATTER_LIMIT / 4;
/// How long a client is waited for that has more to read, until it gets no more progress.
const READER_TIME: Duration = Duration::from_secs(10);
/// How many bytes a message of progress has beside its texts, about.
const PROGRESS_FRAME: usize = 64;
/// How much the writer keeps allocated between messages.
const KEPT_BUFFER: usize = 1 << 20;

/// Something for the writer.
pub(super) enum Out {
    Message(Outgoing),
    /// What a call has to say meanwhile, and about how many bytes that are.
    Progress(Value, usize),
    /// A message that holds its place among the large answers until most of it is written.
    Large(Outgoing, OwnedSemaphorePermit),
    /// The client turned out to speak this dialect.
    Speak(Dialect),
    /// The client is to be told of these topics, from this place in the stream of events on.
    Subscribe(Vec<Topic>, broadcast::Receiver<Arc<Burst>>),
}

/// Whence messages reach the writer. The writer ends when the last one is dropped.
#[derive(Clone)]
pub(super) struct Outbox {
    sender: mpsc::UnboundedSender<Out>,
    unread: Arc<Unread>,
    is_same_user: bool,
}

/// What is on its way to a client, in bytes.
#[derive(Default)]
struct Unread {
    /// Encoded, and not written yet.
    pending: AtomicUsize,
    /// Progress that the writer has not taken yet, about.
    queued: AtomicUsize,
    /// Told when there is room again.
    room: Notify,
    /// It was waited for in vain, and there has been no room since.
    is_stuck: AtomicBool,
}

impl Unread {
    fn bytes(&self) -> usize {
        self.pending.load(Ordering::Relaxed) + self.queued.load(Ordering::Relaxed)
    }
}

impl Outbox {
    /// The same for a client of whom that is known.
    pub(super) fn of_same_user(self, is_same_user: bool) -> Self {
        Self { is_same_user, ..self }
    }

    pub(super) fn reply(&self, id: Option<Id>, outcome: Result<Value, WireError>) {
        self.reply_from(id, outcome, None);
    }

    /// A reply that may have a place among the large answers.
    pub(super) fn reply_from(
        &self,
        id: Option<Id>,
        outcome: Result<Value, WireError>,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let message = Outgoing::Reply(id, outcome);
        self.send(match place {
            Some(place) => Out::Large(message, place),
            None => Out::Message(message),
        });
    }

    pub(super) fn send(&self, out: Out) {
        // A client that has gone needs no answer.
        let _ = self.sender.send(out);
    }
}

impl Editor for Outbox {
    fn tell(&self, event: Value) {
        self.send(Out::Message(Outgoing::Event(event)));
    }

    fn answer(&self, id: i64, outcome: Result<Value, WireError>) {
        self.reply(Some(Id::Int(id)), outcome);
    }
}

impl Peer for Outbox {
    fn progress(&self, params: Value) {
        if self.unread.bytes() < CHATTER_LIMIT {
            let bytes = about(&params);
            self.unread.queued.fetch_add(bytes, Ordering::Relaxed);
            self.send(Out::Progress(params, bytes));
        }
    }

    fn room(&self) -> Later<'_, ()> {
        Box::pin(async move {
            let unread = &*self.unread;
            let read = async {
                loop {
                    // Before looking, so that no news is missed.
                    let news = unread.room.notified();
                    if unread.bytes() < ROOM_LIMIT {
                        return unread.is_stuck.store(false, Ordering::Relaxed);
                    }
                    if unread.is_stuck.load(Ordering::Relaxed) {
                        return;
                    }
                    news.await;
                }
            };
            if tokio::time::timeout(READER_TIME, read).await.is_err() {
                unread.is_stuck.store(true, Ordering::Relaxed);
            }
        })
    }

    fn is_same_user(&self) -> bool {
        self.is_same_user
    }
}

/// Writes what an [`Outbox`] gets.
pub(super) struct Writer<W> {
    sink: W,
    queue: mpsc::UnboundedReceiver<Out>,
    subscription: Option<broadcast::Receiver<Arc<Burst>>>,
    topics: Vec<Topic>,
    encoder: Encoder,
    /// Events that came while the client had too much unread; the latest of each kind and subject
    /// is told once it has not.
    missed: Vec<Event>,
    places: Vec<OwnedSemaphorePermit>,
    buffer: Vec<u8>,
    written: usize,
    unread: Arc<Unread>,
    max_message: usize,
}

/// Why a connection's writer ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("the client has gone: {0}")]
    Gone(#[from] std::io::Error),
    #[error("the client left {0} bytes of answers unread")]
    TooSlow(usize),
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(super) fn new(sink: W, max_message: usize) -> (Self, Outbox) {
        let (sender, queue) = mpsc::unbounded_channel();
        let unread = Arc::<Unread>::default();
        let writer = Self {
            sink,
            queue,
            subscription: None,
            topics: Vec::new(),
            encoder: Encoder::new(Dialect::Native),
            missed: Vec::new(),
            places: Vec::new(),
            buffer: Vec::new(),
            written: 0,
            unread: Arc::clone(&unread),
            max_message,
        };
        (writer, Outbox { sender, unread, is_same_user: false })
    }

    /// Writes until every [`Outbox`] is gone and all is written.
    pub(super) async fn run(mut self) -> Result<(), WriteError> {
        let mut open = true;
        loop {
            while let Ok(out) = self.queue.try_recv() {
                self.take(out)?;
            }
            if !open && self.pending() == 0 {
                self.sink.flush().await?;
                return Ok(());
            }
            tokio::select! {
                out = self.queue.recv(), if open => match out {
                    Some(out) => self.take(out)?,
                    None => open = false,
                },
                burst = next_burst(&mut self.subscription), if self.subscription.is_some() => {
                    self.notify(burst);
                }
                written = self.sink.write(&self.buffer[self.written..]), if self.pending() > 0 => {
                    self.advance(written?)?;
                }
            }
        }
    }

    fn take(&mut self, out: Out) -> Result<(), WriteError> {
        match out {
            Out::Speak(dialect) => self.encoder = Encoder::new(dialect),
            Out::Subscribe(topics, events) => {
                self.subscription = (!topics.is_empty()).then_some(events);
                self.topics = topics;
            }
            Out::Progress(params, bytes) => {
                self.unread.queued.fetch_sub(bytes, Ordering::Relaxed);
                if self.encoder.dialect().has_progress() {
                    self.encode(Outgoing::Notify("progress", params));
                }
            }
            Out::Message(message) => self.encode(message),
            Out::Large(message, place) => {
                self.encode(message);
                self.places.push(place);
            }
        }
        self.note_pending();
        match self.pending() > self.max_message.saturating_mul(2) {
            true => Err(WriteError::TooSlow(self.pending())),
            false => Ok(()),
        }
    }

    fn encode(&mut self, message: Outgoing) {
        let start = self.buffer.len();
        let bytes = self.encoder.encode(&message, &mut self.buffer);
        let longest = self.encoder.dialect().longest(self.max_message);
        if bytes > longest {
            self.buffer.truncate(start);
            let Outgoing::Reply(id, _) = message else { return };
            let advice = match longest < self.max_message {
                true => "which is all that six hex digits can say",
                false => "or raise max-message-bytes",
            };
            let error = WireError::new(
                WireError::INVALID_REQUEST,
                format!(
                    "the answer would have {bytes} bytes and at most {longest} may be sent; ask \
                     for less with :limit, :types or :brief, {advice}"
                ),
            );
            self.encoder.encode(&Outgoing::Reply(id, Err(error)), &mut self.buffer);
        }
    }

    fn notify(&mut self, burst: Result<Arc<Burst>, RecvError>) {
        match burst {
            Ok(burst) if self.pending() < CHATTER_LIMIT => {
                for message in notifications(&burst, &self.topics) {
                    self.encode(message);
                }
            }
            Ok(burst) => self.miss(&burst),
            Err(RecvError::Lagged(missed)) => {
                tracing::debug!("a slow client missed {missed} bursts of events");
            }
            Err(RecvError::Closed) => self.subscription = None,
        }
    }

    /// Keeps the latest event of each kind and subject only.
    fn miss(&mut self, burst: &Burst) {
        for event in burst.events.iter().filter(|event| is_about(event, &self.topics)) {
            self.missed.retain(|known| !known.is_like(event));
            self.missed.push(event.clone());
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
            // A client that always has answers under way must not make the buffer grow for ever.
            self.buffer.drain(..self.written);
            self.written = 0;
        }
        self.note_pending();
        Ok(())
    }

    /// Tells those who wait for it how much is unread.
    fn note_pending(&mut self) {
        self.unread.pending.store(self.pending(), Ordering::Relaxed);
        if self.unread.bytes() < ROOM_LIMIT {
            self.unread.room.notify_waiters();
        }
        if self.pending() < CHATTER_LIMIT {
            self.places.clear();
            for event in std::mem::take(&mut self.missed) {
                if let Some(told) = notification(&event) {
                    self.encode(told);
                }
            }
        }
    }
}

fn about(progress: &Value) -> usize {
    let length = |value: &Value| if let Value::Str(text) = value { text.len() } else { 0 };
    let Value::Map(entries) = progress else { return PROGRESS_FRAME };
    PROGRESS_FRAME + entries.iter().map(|(_, value)| length(value)).sum::<usize>()
}

async fn next_burst(
    subscription: &mut Option<broadcast::Receiver<Arc<Burst>>>,
) -> Result<Arc<Burst>, RecvError> {
    match subscription {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    const PIECE: usize = 10_000;

    fn piece(number: usize) -> Value {
        let text = format!("{number} {}", "x".repeat(PIECE));
        Value::Map(vec![("text".into(), Value::Str(text))])
    }

    /// Tells a client that does not read, as long as there is room; gives how much that was.
    fn fill(outbox: &Outbox) -> usize {
        let mut told = 0;
        while outbox.room().now_or_never().is_some() {
            outbox.progress(piece(told));
            told += 1;
        }
        told
    }

    #[tokio::test]
    async fn who_waits_for_room_loses_nothing() {
        let (near, far) = tokio::io::duplex(1000);
        let (writer, outbox) = Writer::new(near, 64 << 20);
        let told = fill(&outbox);
        assert!((ROOM_LIMIT / 2..=ROOM_LIMIT + 2 * PIECE).contains(&(told * PIECE)), "{told}");
        // The same when the writer has taken it all, and the client still does not read.
        let writing = tokio::spawn(writer.run());
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(outbox.room().now_or_never().is_none());
        let mut lines = BufReader::new(far).lines();
        let reading = tokio::spawn(async move {
            let mut read = 0;
            while let Some(line) = lines.next_line().await.unwrap() {
                assert!(line.contains(&format!("\"{read} x")), "{}", &line[..60]);
                read += 1;
            }
            read
        });
        outbox.room().await;
        drop(outbox);
        writing.await.unwrap().unwrap();
        assert_eq!(reading.await.unwrap(), told);
    }

    #[tokio::test]
    async fn who_never_reads_is_not_waited_for_again() {
        let (near, _far) = tokio::io::duplex(1000);
        let (_writer, outbox) = Writer::new(near, 64 << 20);
        fill(&outbox);
        outbox.unread.is_stuck.store(true, Ordering::Relaxed);
        // What a client may have unread is bounded all the same.
        for number in 0..1000 {
            assert!(outbox.room().now_or_never().is_some());
            outbox.progress(piece(number));
        }
        assert!(outbox.unread.bytes() < CHATTER_LIMIT + 2 * PIECE);
    }
}
