//! `contexture serve`: runs the server, or a bridge to a server that is already running.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinHandle, JoinSet};

use super::host::{Setup, runtime};
use super::http::AgentListener;
use super::owner::{self, TakenFolder, take};
use super::{Common, inferior, say};
use crate::server::auth::{Admission, SecretHash, read_secret};
use crate::server::listen::{bind_tcp, relay_tcp, serve_stream, serve_tcp};
use crate::server::{Server, stdio};
use crate::visible::visible;

/// Serve clients over one or more transports.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture serve --stdio\n  contexture serve --unix --tcp \
    127.0.0.1:4005\n\nOne server owns a state folder. A second `serve --stdio`, `--tcp` or \
    `--inferior` over the same\nfolder becomes a bridge to the first server. With `--tcp` or \
    `--inferior`, it takes the place of the\nfirst server once that ends.")]
pub(super) struct Serve {
    /// Serve over standard input and output; the server ends when its input ends
    #[arg(long)]
    stdio: bool,
    /// Listen on a Unix socket; without PATH, on a private default path
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    unix: Option<Option<PathBuf>>,
    /// Listen on a TCP address, HOST:PORT; with port 0, on a free port, which is printed
    #[arg(long, value_name = "ADDR")]
    tcp: Option<String>,
    /// Serve agents that speak the Model Context Protocol over HTTP, on this port of 127.0.0.1;
    /// with port 0, on a free port. Prints the address unless --stdio is given
    #[arg(long, value_name = "PORT", value_parser = port)]
    http: Option<u16>,
    /// Serve the Emacs that started this program with `M-x sly` or `M-x slime`, over TCP
    #[arg(long)]
    inferior: bool,
    /// Version of SLY to report; if it differs from the client's, SLY asks whether to continue
    #[arg(long, value_name = "VERSION")]
    slynk_version: Option<String>,
    /// Version of SLIME to report; if it differs from the client's, SLIME asks whether to continue
    #[arg(long, value_name = "VERSION")]
    swank_version: Option<String>,
}

/// Reads a port from an argument.
pub(super) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "must be a port, from 0 to 65535")
}

impl Serve {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let listens = self.unix.is_some() || self.tcp.is_some() || self.http.is_some();
        if !self.stdio && !listens && !self.inferior {
            bail!("choose at least one of --stdio, --unix, --tcp ADDR, --http PORT and --inferior");
        }
        if self.stdio && self.inferior {
            bail!("--inferior reads standard input itself; omit --stdio");
        }
        log_to_stderr();
        let mut setup = common.setup()?;
        if let Some(version) = &self.slynk_version {
            setup.repl.slynk_version.clone_from(version);
        }
        if let Some(version) = &self.swank_version {
            setup.repl.swank_version.clone_from(version);
        }
        let runtime = runtime()?;
        let served = runtime.block_on(self.serve(&setup));
        // A blocked read from standard input or a hung disk must not keep the process alive.
        runtime.shutdown_timeout(Duration::ZERO);
        served
    }

    async fn serve(self, setup: &Setup) -> anyhow::Result<()> {
        let mut doors = self.doors().await?;
        let mut attending = match &doors.inferior {
            None => None,
            Some(listener) => Some(tokio::spawn(inferior::attend(listener.local_addr()?.port()))),
        };
        let mut waiting = None;
        let owned = loop {
            let Some(folder) = &setup.state else { break None };
            let socket = match take(folder, self.may_join()).await? {
                TakenFolder::Here(owned) => break Some(owned),
                TakenFolder::By(socket, _) => socket,
            };
            doors.say_port()?;
            let Some(listener) = doors.tcp.as_ref().or(doors.inferior.as_ref()) else {
                return Ok(stdio::bridge(&socket).await?);
            };
            // Once the owner has gone, this server takes its place.
            tokio::select! {
                unanswered = relay_tcp(listener, &socket, waiting.take()) => {
                    waiting = Some(unanswered);
                }
                ended = end_of(&mut attending) => return ended,
            }
        };
        let secret = self.secret(setup)?;
        let server = setup.start(owned.as_ref())?.with_secret(secret.clone());
        let mut listeners = JoinSet::new();
        if let Some(path) = self.socket_path(setup)? {
            listeners.spawn(owner::listen(&path, owned.as_ref())?.serve(server.clone()));
        }
        doors.say_port()?;
        if let Some(arrived) = waiting {
            serve_stream(&server, arrived, secret.as_ref());
        }
        for listener in [doors.tcp.take(), doors.inferior.take()].into_iter().flatten() {
            listeners.spawn(serve_tcp(listener, server.clone(), secret.clone()));
        }
        if let Some(port) = self.http {
            let agents = AgentListener::listen(setup, port).await?;
            if !self.stdio {
                say(&format!("{}\n", agents.url()?))?;
            }
            tracing::info!("serving agents at {}", agents.url()?);
            listeners.spawn(agents.serve(server.clone()));
        }
        self.until_the_end(&server, attending).await?;
        server.finish().await;
        listeners.shutdown().await;
        Ok(())
    }

    /// Opens the TCP listeners.
    async fn doors(&self) -> anyhow::Result<Doors> {
        let mut doors = Doors::default();
        if let Some(address) = &self.tcp {
            let listener = bind_tcp(address).await.map_err(|error| {
                anyhow!(
                    "cannot listen on {address:?}: {error}; give a free address such as \
                     127.0.0.1:4005"
                )
            })?;
            if address.ends_with(":0") {
                doors.unsaid = Some(listener.local_addr()?.port());
            }
            tracing::info!("listening on {}", listener.local_addr()?);
            doors.tcp = Some(listener);
        }
        if self.inferior {
            doors.inferior = Some(inferior::listener().await?);
        }
        Ok(doors)
    }

    async fn until_the_end(
        &self,
        server: &Server,
        mut attending: Option<Attending>,
    ) -> anyhow::Result<()> {
        let _too_large = owner::survive_full_files()?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        // Emacs sends SIGHUP to its subprocesses when it exits. Otherwise the signal means that the
        // terminal was closed, which a background server may have been told to ignore.
        let hung_up = self.stdio.then(|| signal(SignalKind::hangup())).transpose()?;
        let hung_up = async move {
            match hung_up {
                Some(mut signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        let conversation = async {
            if !self.stdio {
                return end_of(&mut attending).await;
            }
            let (input, output) = (stdio::input()?, stdio::output()?);
            let server = server.clone();
            // This runs in a task of its own, so that the last answers are still sent if something
            // else ends the server.
            let gone = stdio::output_gone();
            let serving = async move {
                server.serve_until(input, output, Admission::Granted, gone).await;
            };
            Ok(tokio::spawn(serving).await?)
        };
        tokio::select! {
            ended = conversation => ended,
            () = server.ending().cancelled() => Ok(()),
            _ = terminated.recv() => Ok(()),
            _ = interrupted.recv() => Ok(()),
            _ = hung_up => Ok(()),
        }
    }

    /// Returns whether clients can be relayed to another server that already owns the state folder.
    /// They can if this server accepts clients in one way only: over standard input and output,
    /// over TCP, or from the Emacs that started it.
    fn may_join(&self) -> bool {
        let ways = [self.stdio, self.inferior, self.tcp.is_some()];
        let others = self.unix.is_some() || self.http.is_some();
        !others && ways.into_iter().filter(|way| *way).count() == 1
    }

    fn secret(&self, setup: &Setup) -> anyhow::Result<Option<SecretHash>> {
        let own = setup.folders.config_file.with_file_name("secret");
        let [sly, slime] =
            [".sly-secret", ".slime-secret"].map(|name| setup.folders.home.join(name));
        let usual = [own, sly, slime];
        let secret = read_secret(setup.config.secret_file.as_deref(), &usual);
        match self.tcp.is_none() && !self.inferior {
            // No client needs the secret, so a secret that cannot be read does not matter.
            true => Ok(secret.unwrap_or_default()),
            false => Ok(secret?),
        }
    }

    /// Returns the path of the Unix socket to listen on, if any. The owner of a state folder always
    /// listens on one, so that other processes can reach the server.
    fn socket_path(&self, setup: &Setup) -> anyhow::Result<Option<PathBuf>> {
        match (&self.unix, &setup.state) {
            (Some(Some(path)), _) => Ok(Some(path.clone())),
            (None, None) => Ok(None),
            _ => Ok(Some(owner::usual_socket(setup)?)),
        }
    }
}

/// Listeners over TCP, and the port to print.
#[derive(Default)]
struct Doors {
    tcp: Option<TcpListener>,
    /// Listener for the Emacs that started this program.
    inferior: Option<TcpListener>,
    /// Port that the system picked for `tcp`, until it has been printed.
    unsaid: Option<u16>,
}

impl Doors {
    /// Prints the port that the system picked, if there is one that has not been printed. Called
    /// once clients can connect. With `--stdio`, the port is the first line that the client reads,
    /// as the documentation of the protocol says.
    fn say_port(&mut self) -> anyhow::Result<()> {
        self.unsaid.take().map_or(Ok(()), |port| say(&format!("{port}\n")))
    }
}

/// A task that lasts as long as the Emacs that started this program.
type Attending = JoinHandle<anyhow::Result<()>>;

/// Waits for the end of a task, and returns its result; waits forever if there is no task.
async fn end_of(attending: &mut Option<Attending>) -> anyhow::Result<()> {
    match attending {
        Some(attending) => attending.await?,
        None => std::future::pending().await,
    }
}

/// Default filter of the log. The crate rmcp logs the whole text of each request that it refuses,
/// and a full pipe at standard error would hold up all clients.
const LOGGED: &str = "warn,rmcp=error";

/// Logs to standard error. The environment variable `CONTEXTURE_LOG` sets the level, such as
/// `debug` or `info`.
pub(super) fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CONTEXTURE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOGGED));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogLines)
        .with_ansi(false)
        .init();
}

/// Writer to standard error that keeps each event on one line, even if the event contains names
/// with line ends.
struct LogLines;

impl Write for LogLines {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = visible(text.strip_suffix('\n').unwrap_or(&text));
        io::stderr().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
