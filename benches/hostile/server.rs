//! The built server, with a state folder of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::client::Client;

/// How long a server may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server process; it and its state end with this value.
pub(crate) struct Server {
    child: Child,
    socket: PathBuf,
    port: u16,
    _sockets: TempDir,
    _state: TempDir,
}

impl Server {
    /// A server with this configuration, in TOML.
    pub(crate) fn start(configuration: &str) -> anyhow::Result<Self> {
        // Below `target`, on a disk: where `/tmp` lies in memory, durability would cost nothing.
        let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        std::fs::write(state.path().join("config.toml"), configuration)?;
        let sockets = tempfile::tempdir()?;
        let socket = sockets.path().join("socket");
        let mut child = Command::new(program())
            .args(["serve", "--state"])
            .arg(state.path().join("state"))
            .arg("--unix")
            .arg(&socket)
            .args(["--tcp", "127.0.0.1:0"])
            .env("CONTEXTURE_CONFIG", state.path().join("config.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let told = child.stdout.take().context("the server has no standard output")?;
        BufReader::new(told).read_line(&mut line)?;
        let port = line.trim().parse().context("the server printed no port")?;
        let server = Self { child, socket, port, _sockets: sockets, _state: state };
        let begun = Instant::now();
        while server.connect().is_err() {
            ensure!(begun.elapsed() < PATIENCE, "the server does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(&self.socket, self.port)
    }

    /// `VmHWM`, the most that the process had in memory since the last [`Self::forget_peak`].
    pub(crate) fn peak_bytes(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .context("the server has ended")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        let kib: f64 = kib.context("no VmHWM in /proc; the server has ended")?.trim().parse()?;
        Ok(kib * 1024.0)
    }

    /// What preparing took does not count.
    pub(crate) fn forget_peak(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")?)
    }
}

/// The built server, or another to compare it with.
fn program() -> PathBuf {
    let another = std::env::var_os("CONTEXTURE_SERVER");
    another.map_or_else(|| env!("CARGO_BIN_EXE_contexture").into(), PathBuf::from)
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already, and then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
