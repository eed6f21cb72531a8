//! Work beside the pipe, on a thread of its own: asks the server for pushes, and notes
//! which of them the agent received. The pipe waits only for a push, and not long.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::cli::host::{Setup, runtime};
use crate::cli::mcp::{Reach, Shared};
use crate::cli::receipt::Receipt;
use crate::mcp::{AgentSession, Link, Push};

/// Maximum time for which a prompt waits for what goes with it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum number of bytes of a push, as JSON.
const ROOM: usize = 100_000;

/// The thread beside the pipe.
pub(super) struct Aside {
    reach: Arc<Reach>,
    jobs: UnboundedSender<Job>,
}

/// A session of an agent.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) agent: String,
    pub(super) session: String,
    pub(super) folder: PathBuf,
}

enum Job {
    Push { place: Place, received: Option<u64>, reply: SyncSender<Option<Push>> },
    Received { place: Place, number: u64 },
    End { done: SyncSender<()> },
}

impl Aside {
    pub(super) fn start(setup: Setup) -> anyhow::Result<Self> {
        let (jobs, todo) = unbounded_channel();
        let reach = Reach::new(setup);
        let runtime = runtime()?;
        let ours = Arc::clone(&reach);
        std::thread::spawn(move || runtime.block_on(work(ours, todo)));
        Ok(Self { reach, jobs })
    }

    /// Returns what changed since the agent received a push. Returns `None` if nothing did, or it
    /// is not known in time.
    pub(super) fn push(&self, place: Place, received: Option<u64>) -> Option<Push> {
        let (reply, answer) = sync_channel(1);
        self.jobs.send(Job::Push { place, received, reply }).ok()?;
        answer.recv_timeout(PATIENCE).ok()?
    }

    /// Returns the number of the last push that the agent received in an earlier run.
    pub(super) fn received_before(&self, place: &Place) -> Option<u64> {
        Receipt::of(self.reach.setup(), &place.agent, &place.session)?.number()
    }

    /// Notes that the agent received a push.
    pub(super) fn note(&self, place: Place, number: u64) {
        // If the thread has ended, the push is only made again.
        let _ = self.jobs.send(Job::Received { place, number });
    }

    /// Ends the work, unless that takes too long.
    pub(super) fn end(&self, patience: Duration) {
        let (done, ended) = sync_channel(1);
        if self.jobs.send(Job::End { done }).is_ok() {
            let _ = ended.recv_timeout(patience);
        }
    }
}

async fn work(reach: Arc<Reach>, mut todo: UnboundedReceiver<Job>) {
    while let Some(job) = todo.recv().await {
        match job {
            Job::Push { place, received, reply } => {
                let reach = Arc::clone(&reach);
                // The pipe may have gone on without the answer.
                tokio::spawn(async move { reply.send(pushed(reach, &place, received).await) });
            }
            Job::Received { place, number } => noted(&reach, &place, number),
            Job::End { done } => {
                reach.end().await;
                let _ = done.send(());
                return;
            }
        }
    }
}

async fn pushed(reach: Arc<Reach>, place: &Place, received: Option<u64>) -> Option<Push> {
    let Place { agent, session: id, folder } = place;
    let room = ROOM;
    let session = AgentSession { agent, id, received, is_anew: false, compacted: None, room };
    let link = Link::new(Shared(reach));
    let asking = session.push(&link, folder);
    let pushed = tokio::time::timeout(PATIENCE, asking).await;
    pushed.unwrap_or_else(|_| Err("the server did not answer in time".into())).unwrap_or_else(
        |why| {
            tracing::warn!("acp: {why}");
            None
        },
    )
}

fn noted(reach: &Reach, place: &Place, number: u64) {
    let receipt = Receipt::of(reach.setup(), &place.agent, &place.session);
    if let Some(Err(error)) = receipt.map(|receipt| receipt.note(number)) {
        tracing::warn!("acp: {error:#}");
    }
}
