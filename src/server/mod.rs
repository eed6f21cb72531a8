//! The server: the engine's loop, and connections over whatever transport.
//!
//! Everything runs on one thread but slow work, which runs on threads of its own with owned data, or
//! with the engine lent to one.
//! A [`Server`] knows no command line and no configuration file.

pub mod auth;
mod connection;
mod dispatch;
mod door;
pub mod folder;
mod hangup;
pub mod listen;
pub mod notify;
mod outbox;
mod running;
mod sent;
pub mod stdio;
mod unread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::notify::Burst;
use crate::engine::{self, Caller, Engine, Handle};
use crate::rpc::{self, Tools};

/// How many bursts of events a subscribed connection may be behind before it misses some.
const EVENT_BACKLOG: usize = 256;
/// How many bytes the in-memory transport holds in each direction.
const MEMORY_BUFFER: usize = 1 << 20;
/// How long connections get to send their last answers when the server ends.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

/// A running server. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    tools: Arc<Tools>,
    events: broadcast::Sender<Arc<Burst>>,
    ending: CancellationToken,
    tasks: TaskTracker,
    /// How many connections there have been.
    connections: Arc<AtomicU64>,
}

impl Server {
    /// Starts the loop of `engine`. `tools` makes what the methods use from the way to the loop.
    /// Must be called within a tokio runtime.
    pub fn start(engine: Engine, tools: impl FnOnce(Handle) -> Tools) -> Self {
        let (handle, queue) = Handle::channel();
        let (events, _) = broadcast::channel(EVENT_BACKLOG);
        let publisher = events.clone();
        let tools = tools(handle);
        let embedding = tools.embedding.clone();
        let publish = move |events: &[engine::Event], engine: &Engine| {
            if let Some(embedding) = &embedding {
                embedding.note(events);
            }
            if !events.is_empty() && publisher.receiver_count() > 0 {
                let burst = Burst { events: events.to_vec(), statistics: engine.statistics() };
                // Nobody listening any more is no error.
                let _ = publisher.send(Arc::new(burst));
            }
        };
        let (tasks, ending) = (TaskTracker::new(), tools.ending.clone());
        tokio::spawn(engine::run(engine, queue, publish));
        if let Some(embedding) = tools.embedding.clone() {
            let backfill = rpc::backfill(tools.engine.clone(), embedding);
            tokio::spawn(ending.clone().run_until_cancelled_owned(backfill));
        }
        if let (Some(folder), kept @ 1..) = (&tools.state_folder, tools.backups_kept) {
            let backups = rpc::keep_backups(tools.engine.clone(), folder.clone(), kept);
            tokio::spawn(ending.clone().run_until_cancelled_owned(backups));
        }
        let connections = Arc::default();
        Self { tools: Arc::new(tools), events, ending, tasks, connections }
    }

    /// Serves one client until it leaves or the server ends. `admission` says whether it has to show
    /// a secret first. That it has gone is only known once something was written to it.
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        admission: auth::Admission,
    ) {
        self.serve_until(reader, writer, admission, std::future::pending()).await;
    }

    /// [`serve`](Self::serve) for a client of which it is known at once when it has `gone` for good,
    /// so that nothing is waited for that it asked for.
    pub async fn serve_until(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        admission: auth::Admission,
        gone: impl Future<Output = ()> + Send,
    ) {
        let connection = connection::serve(self.clone(), reader, writer, admission, gone);
        self.tasks.track_future(connection).await;
    }

    /// A client's end of a connection within this process.
    pub fn memory(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(MEMORY_BUFFER);
        let (reader, writer) = tokio::io::split(far);
        let server = self.clone();
        tokio::spawn(async move { server.serve(reader, writer, auth::Admission::Granted).await });
        near
    }

    /// Set when the server is to end.
    pub fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Lets connections send their last answers, but not for ever, and tidies the store.
    pub async fn finish(&self) {
        self.ending.cancel();
        self.tools.turns.close();
        if tokio::time::timeout(FAREWELL, self.tools.turns.wait()).await.is_err() {
            tracing::warn!("an answer of a model that was under way could not be kept");
        }
        self.tasks.close();
        if tokio::time::timeout(FAREWELL, self.tasks.wait()).await.is_err() {
            tracing::warn!(
                "some clients did not read their last answers, or wait for answers that did not come"
            );
        }
        let settled = self.tools.engine.ask(|engine| {
            engine.settle();
            Ok(())
        });
        if let Err(error) = settled.await {
            tracing::debug!("nothing is left to settle: {error}");
        }
    }

    /// A name for another connection.
    fn next_caller(&self) -> Caller {
        Caller::Connection(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    fn tools(&self) -> &Arc<Tools> {
        &self.tools
    }
}
