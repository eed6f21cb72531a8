//! `contexture mcp`: serves one agent over stdio, as a bridge to the server of the state folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::host::{Setup, runtime};
use super::owner::{self, TakenFolder, take};
use super::serve::log_to_stderr;
use super::{Common, current_folder};
use crate::files::true_name;
use crate::mcp::{AgentProjects, Bridge, Dial, Dialing, Stream};
use crate::server::{Server, stdio};
use crate::store::ownership::Owned;
use crate::visible::visible_path;

/// Serve an agent that speaks the Model Context Protocol, over stdio.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Agents start this program themselves, once contexture setup has configured them. \
    It joins the\nserver that Emacs uses; if there is none, it acts as that server until the agent ends."
)]
pub(super) struct Mcp {
    /// Project of the agent; by default the client's roots, or else the project of the current folder
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl Mcp {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        log_to_stderr();
        let setup = common.setup()?;
        let folder = current_folder()?;
        let named = self.project.map(|project| true_name(&folder.join(project)));
        if let Some(project) = named.as_deref().filter(|project| !project.is_dir()) {
            anyhow::bail!("--project: {} is not a folder", visible_path(project));
        }
        let runtime = runtime()?;
        let served = runtime.block_on(serve(setup, AgentProjects::new(named, folder)));
        // A blocked read from standard input must not keep the process alive.
        runtime.shutdown_timeout(Duration::ZERO);
        served
    }
}

async fn serve(setup: Setup, projects: AgentProjects) -> anyhow::Result<()> {
    let _too_large = owner::survive_full_files()?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let reach = ServerReach::new(setup);
    let bridge = Bridge::new(Arc::clone(&reach), projects);
    let served = tokio::select! {
        served = bridge.serve_agent(stdio::input()?, stdio::output()?) => {
            served.context("the agent does not speak the Model Context Protocol")
        }
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        _ = hung_up.recv() => Ok(()),
    };
    reach.end().await;
    served
}

/// Access to the server of the state folder. The server may be in this process.
pub(super) struct ServerReach {
    setup: Setup,
    here: Mutex<Option<Here>>,
}

/// A server in this process.
struct Here {
    server: Server,
    /// Task that releases the state folder once the server has ended.
    until_the_end: JoinHandle<()>,
}

impl Dial for Arc<ServerReach> {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(async move { self.stream().await.map_err(|error| format!("{error:#}")) })
    }
}

impl ServerReach {
    pub(super) fn new(setup: Setup) -> Arc<Self> {
        Arc::new(Self { setup, here: Mutex::new(None) })
    }

    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns whether the server is in this process; false before the first connection.
    pub(super) async fn is_here(&self) -> bool {
        self.here.lock().await.is_some()
    }

    /// Ends the server in this process, if there is one.
    pub(super) async fn end(&self) {
        if let Some(here) = self.here.lock().await.take() {
            here.end().await;
        }
    }

    async fn stream(&self) -> anyhow::Result<Box<dyn Stream>> {
        let mut here = self.here.lock().await;
        if let Some(ours) = here.take_if(|here| here.server.ending().is_cancelled()) {
            ours.end().await;
        }
        if let Some(ours) = &*here {
            return Ok(Box::new(ours.server.memory()));
        }
        let owned = match &self.setup.state {
            None => None,
            Some(folder) => match take(folder, true).await? {
                TakenFolder::By(_, stream) => {
                    stream.set_nonblocking(true)?;
                    return Ok(Box::new(UnixStream::from_std(stream)?));
                }
                TakenFolder::Here(owned) => Some(owned),
            },
        };
        let ours = here.insert(Here::start(&self.setup, owned)?);
        Ok(Box::new(ours.server.memory()))
    }
}

impl Here {
    /// Starts a server. If it owns a state folder, it listens on a socket, so that Emacs can find
    /// it.
    fn start(setup: &Setup, owned: Option<Owned>) -> anyhow::Result<Self> {
        let server = setup.start(owned.as_ref())?;
        let listening = match &owned {
            None => None,
            Some(_) => {
                let socket = owner::listen(&owner::usual_socket(setup)?, owned.as_ref())?;
                Some(tokio::spawn(socket.serve(server.clone())))
            }
        };
        let ending = server.clone();
        let until_the_end = tokio::spawn(async move {
            ending.ending().cancelled().await;
            ending.finish().await;
            if let Some(listening) = listening {
                listening.abort();
            }
            drop(owned);
        });
        Ok(Self { server, until_the_end })
    }

    async fn end(self) {
        self.server.ending().cancel();
        // A task that panicked has ended, too.
        let _ = self.until_the_end.await;
    }
}
