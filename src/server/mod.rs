//! The server: runs the engine's loop and serves connections over any transport.
//!
//! Everything runs on one thread, except for slow work. Slow work runs on other threads, with its
//! own data or with the engine, which the loop lends to it. A [`Server`] knows neither the command
//! line nor configuration files.

pub(crate) mod auth;
mod backpressure;
mod connection;
mod dispatch;
mod door;
mod epc;
pub(crate) mod guests;
mod hangup;
pub(crate) mod listen;
pub(crate) mod notify;
mod order;
mod outbox;
mod reader;
mod reply;
mod running;
mod sent;
mod settle;
pub(crate) mod stdio;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::backpressure::Unread;
use self::guests::{Guest, Guests};
use self::notify::EventBurst;
use crate::agent;
use crate::engine::{self, Caller, Engine, Handle};
use crate::rpc::{self, Tools};

/// Number of commits that a subscriber may lag behind. If it lags further behind, it misses the
/// events of the oldest commits.
const EVENT_BACKLOG: usize = 256;
/// Maximum number of large answers, of all clients, that are made and encoded at the same time.
const LARGE_ANSWERS: usize = 4;
/// Buffer size of an in-process connection in each direction, in bytes.
const MEMORY_BUFFER: usize = 1 << 20;
/// Time that open calls have to finish while the server shuts down.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);
/// Time that connections have to send errors for calls that are still open after [`FAREWELL`].
const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_millis(500);

/// A running server. Clones share the same server.
#[derive(Clone)]
pub struct Server {
    tools: Arc<Tools>,
    events: broadcast::Sender<Arc<EventBurst>>,
    ending: CancellationToken,
    /// Cancelled when the server no longer waits for open calls.
    over: CancellationToken,
    tasks: TaskTracker,
    /// Number of connections so far.
    connections: Arc<AtomicU64>,
    guests: Guests,
    unread: Unread,
    /// Places for large answers that are made and encoded.
    large: Arc<Semaphore>,
    /// Secret for TCP. A client that needs no secret may send it nevertheless.
    secret: Option<auth::SecretHash>,
}

impl Server {
    /// Starts the engine's loop. `tools` builds what all methods share, from a handle to the loop.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn start(engine: Engine, tools: impl FnOnce(Handle) -> Tools) -> Self {
        let (handle, queue) = Handle::channel();
        let (events, _) = broadcast::channel(EVENT_BACKLOG);
        let publisher = events.clone();
        let tools = tools(handle);
        let (embedding, hub) = (tools.embedding.clone(), tools.hub.clone());
        let publish = move |events: &[engine::Event], engine: &Engine| {
            if let Some(embedding) = &embedding {
                embedding.note(events);
            }
            if let Some(hub) = hub.as_ref().filter(|_| !events.is_empty()) {
                hub.wanted.notify_one();
            }
            if !events.is_empty() && publisher.receiver_count() > 0 {
                let burst = EventBurst { events: events.to_vec(), statistics: engine.statistics() };
                // It is fine if nobody listens any more.
                let _ = publisher.send(Arc::new(burst));
            }
        };
        let (tasks, ending) = (TaskTracker::new(), tools.ending.clone());
        let quiet = engine.quiet();
        tokio::spawn(engine::run(engine, queue, publish));
        if let Some(embedding) = tools.embedding.clone() {
            let backfill = agent::backfill(tools.engine.clone(), embedding);
            tokio::spawn(ending.clone().run_until_cancelled_owned(backfill));
        }
        if let Some(folder) = tools.state_folder.clone() {
            let (engine, kept) = (tools.engine.clone(), tools.backups_kept);
            let tended = rpc::look_after_state(engine, quiet, folder, kept);
            tokio::spawn(ending.clone().run_until_cancelled_owned(tended));
        }
        let connections = Arc::default();
        let over = CancellationToken::new();
        let (tools, guests) = (Arc::new(tools), Guests::default());
        tools.connect_editors();
        tokio::spawn(ending.clone().run_until_cancelled_owned(rpc::share(Arc::downgrade(&tools))));
        Self {
            tools,
            events,
            ending,
            over,
            tasks,
            connections,
            guests,
            unread: Unread::default(),
            large: Arc::new(Semaphore::new(LARGE_ANSWERS)),
            secret: None,
        }
    }

    /// Sets the secret that clients who need no secret may send as their first line or payload. The
    /// server then ignores it.
    #[must_use]
    pub(crate) fn with_secret(self, secret: Option<auth::SecretHash>) -> Self {
        Self { secret, ..self }
    }

    /// Serves one client until it leaves or the server ends. `admission` says what the client must
    /// prove first. Notices that the client has gone only when writing to the client fails.
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        admission: auth::Admission,
    ) {
        self.serve_until(reader, writer, admission, std::future::pending()).await;
    }

    /// Serves one client like [`serve`](Self::serve). When `gone` resolves, because the client has
    /// gone for good, also stops waiting for anything on the client's behalf.
    pub async fn serve_until(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        admission: auth::Admission,
        gone: impl Future<Output = ()> + Send,
    ) {
        let connection = connection::serve(self.clone(), reader, writer, (admission, None), gone);
        self.tasks.track_future(connection).await;
    }

    /// Serves a client like [`serve_until`](Self::serve_until), on a connection that is a guest
    /// until its first valid message.
    async fn serve_guest(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        admission: (auth::Admission, Option<Guest>),
        gone: impl Future<Output = ()> + Send,
    ) {
        let connection = connection::serve(self.clone(), reader, writer, admission, gone);
        self.tasks.track_future(connection).await;
    }

    /// Returns the connections over TCP and HTTP.
    pub(crate) fn guests(&self) -> &Guests {
        &self.guests
    }

    /// Opens an in-process connection, and returns the client's end of it.
    pub fn memory(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(MEMORY_BUFFER);
        let (reader, writer) = tokio::io::split(far);
        let server = self.clone();
        tokio::spawn(async move { server.serve(reader, writer, auth::Admission::Granted).await });
        near
    }

    /// Returns the token that is cancelled when the server must end.
    pub fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Ends the server: gives turns and then connections a limited time to finish, then lets the
    /// store do its deferred work.
    pub async fn finish(&self) {
        self.ending.cancel();
        self.tools.turns.close();
        if tokio::time::timeout(FAREWELL, self.tools.turns.wait()).await.is_err() {
            tracing::warn!(
                "the server ended before a model's answer was complete; the answer is not stored"
            );
        }
        self.tasks.close();
        if tokio::time::timeout(FAREWELL, self.tasks.wait()).await.is_err() {
            self.over.cancel();
            if tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await.is_err() {
                tracing::warn!("some clients did not read their last answers");
            }
        }
        let settled = self.tools.engine.ask(|engine| {
            engine.settle();
            Ok(())
        });
        if let Err(error) = settled.await {
            tracing::debug!("the store could not do its deferred work: {error}");
        }
    }

    /// Returns the identity of a new connection.
    fn next_caller(&self) -> Caller {
        Caller::Connection(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    fn tools(&self) -> &Arc<Tools> {
        &self.tools
    }
}
