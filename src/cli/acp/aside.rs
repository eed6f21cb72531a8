//! Does the slow work of the proxy on a separate thread: asks the server for pushes (the changes to
//! add to a prompt), records which pushes the agent received, and has recordings imported. The pipe
//! between client and agent waits only for a push, and only briefly.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::record::{AcpRecord, AcpSession, Recorder};
use crate::cli::host::{Setup, runtime};
use crate::cli::mcp::ServerReach;
use crate::cli::receipt::Receipt;
use crate::mcp::{Push, PushedSession, ServerLink, import};

/// Maximum time that a prompt waits for the push that the proxy adds to it.
const PATIENCE: Duration = Duration::from_millis(500);
/// Maximum size of a push, in bytes of JSON.
const ROOM: usize = 100_000;

/// The thread that does the proxy's slow work, and the recorder, if sessions are recorded.
pub(super) struct Aside {
    reach: Arc<ServerReach>,
    jobs: UnboundedSender<AcpJob>,
    recorder: Option<Recorder>,
}

enum AcpJob {
    Push { place: AcpSession, received: Option<u64>, reply: SyncSender<Option<Push>> },
    Received { place: AcpSession, number: u64 },
    Import { recording: PathBuf },
    End { done: SyncSender<()> },
}

impl Aside {
    /// Starts the thread. Records sessions in the folder `recordings`, if one is given.
    pub(super) fn start(setup: Setup, recordings: Option<&Path>) -> anyhow::Result<Self> {
        let (jobs, todo) = unbounded_channel();
        let imports = jobs.clone();
        let written = move |recording| drop(imports.send(AcpJob::Import { recording }));
        let recorder = recordings.map(|folder| Recorder::start(folder.to_owned(), written));
        let reach = ServerReach::new(setup);
        let runtime = runtime()?;
        let ours = Arc::clone(&reach);
        std::thread::spawn(move || runtime.block_on(work(ours, todo)));
        Ok(Self { reach, jobs, recorder })
    }

    /// Returns the push to add to a prompt. `received` is the number of the last push that the
    /// agent received, if known. Returns `None` if there is nothing to add and nothing to record,
    /// or if the server fails or is too slow.
    pub(super) fn push(&self, place: AcpSession, received: Option<u64>) -> Option<Push> {
        let (reply, answer) = sync_channel(1);
        self.jobs.send(AcpJob::Push { place, received, reply }).ok()?;
        answer.recv_timeout(PATIENCE).ok()?
    }

    /// Returns the number of the last push that a session received, according to its receipt;
    /// `None` if there is no valid receipt.
    pub(super) fn received_before(&self, place: &AcpSession) -> Option<u64> {
        Receipt::of(self.reach.setup(), &place.agent, &place.session)?.number()
    }

    /// Notes that a session received the push with this number.
    pub(super) fn note(&self, place: AcpSession, number: u64) {
        // If the thread has ended, the push is made again, which does no harm.
        let _ = self.jobs.send(AcpJob::Received { place, number });
    }

    /// Records a message between client and agent, if sessions are recorded.
    pub(super) fn record(&self, place: AcpSession, said: &AcpRecord<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.note(place, said);
        }
    }

    /// Ends the recorder and the thread. Waits at most `patience` for each of the two.
    pub(super) fn end(&self, patience: Duration) {
        if let Some(recorder) = &self.recorder {
            recorder.end(patience);
        }
        let (done, ended) = sync_channel(1);
        if self.jobs.send(AcpJob::End { done }).is_ok() {
            let _ = ended.recv_timeout(patience);
        }
    }
}

async fn work(reach: Arc<ServerReach>, mut todo: UnboundedReceiver<AcpJob>) {
    let link = Arc::new(ServerLink::new(Arc::clone(&reach)));
    let mut imports = JoinSet::new();
    while let Some(job) = todo.recv().await {
        match job {
            AcpJob::Push { place, received, reply } => {
                let reach = Arc::clone(&reach);
                // Sending fails if the pipe no longer waits for the answer.
                tokio::spawn(async move { reply.send(pushed(reach, &place, received).await) });
            }
            AcpJob::Received { place, number } => noted(&reach, &place, number),
            AcpJob::Import { recording } => {
                while imports.try_join_next().is_some() {}
                imports.spawn(imported(Arc::clone(&link), recording));
            }
            AcpJob::End { done } => {
                while imports.join_next().await.is_some() {}
                reach.end().await;
                let _ = done.send(());
                return;
            }
        }
    }
}

async fn pushed(
    reach: Arc<ServerReach>,
    place: &AcpSession,
    received: Option<u64>,
) -> Option<Push> {
    let AcpSession { agent, session: id, folder } = place;
    let session = PushedSession { agent, id, received, room: ROOM, ..PushedSession::default() };
    let link = ServerLink::new(reach);
    let asking = session.push(&link, folder);
    let pushed = tokio::time::timeout(PATIENCE, asking).await;
    match pushed.unwrap_or_else(|_| Err("the server did not answer in time".into())) {
        Ok(push) => Some(push).filter(|push| !push.is_nothing()),
        Err(why) => {
            tracing::warn!("acp: a prompt is sent without the changes to the context: {why}");
            None
        }
    }
}

async fn imported(link: Arc<ServerLink>, recording: PathBuf) {
    if let Err(why) = import(&link, &recording.to_string_lossy()).await {
        tracing::warn!("acp: the session is recorded but not imported: {why}");
    }
}

fn noted(reach: &ServerReach, place: &AcpSession, number: u64) {
    let receipt = Receipt::of(reach.setup(), &place.agent, &place.session);
    if let Some(Err(error)) = receipt.map(|receipt| receipt.note(number)) {
        tracing::warn!("acp: {error:#}");
    }
}
