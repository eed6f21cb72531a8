//! Costs of the built server, seen from outside: start-up time, durable adds per second, and
//! memory.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

use crate::row::{Row, median};

const PIPELINED: usize = 20_000;
/// Number of repetitions. Odd, as is the number of starts, so that the median is one of the
/// measures.
const REPETITIONS: usize = 5;
const STARTS: usize = 21;
const MANAGERS: usize = 1000;
const ITEMS: usize = 50;
const ITEM_BYTES: usize = 2000;
/// Name of a server's socket.
const SOCKET: &str = "socket";

/// Measures one client that writes all its adds without waiting, and reads the replies meanwhile.
pub(crate) fn pipelined_adds() -> anyhow::Result<Vec<Row>> {
    let content = text(100, 0);
    let lines: String = (0..PIPELINED).map(|id| add_line(id, "bench", &content)).collect();
    let rates: anyhow::Result<Vec<f64>> = (0..REPETITIONS).map(|_| adds_a_second(&lines)).collect();
    let measure = "durable adds of 100 B, pipelined over stdio, median";
    Ok(vec![Row::at_least(measure, median(rates?), 20_000.0, "/s")])
}

fn adds_a_second(lines: &str) -> anyhow::Result<f64> {
    let mut server = Server::start()?;
    server.call("ping", "nil")?;
    let start = Instant::now();
    server.pipeline(lines, PIPELINED)?;
    Ok(PIPELINED as f64 / start.elapsed().as_secs_f64())
}

/// Measures the time from spawning the process to its first reply, with a new state folder.
pub(crate) fn start() -> anyhow::Result<Vec<Row>> {
    let times: anyhow::Result<Vec<f64>> = (0..STARTS).map(|_| start_once()).collect();
    Ok(vec![Row::at_most("server start to first reply, median", median(times?), 20.0, "ms")])
}

fn start_once() -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut server = Server::start()?;
    server.call("ping", "nil")?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Measures the resident memory of a server that has answered one request.
pub(crate) fn idle_memory() -> anyhow::Result<Vec<Row>> {
    let mut server = Server::start()?;
    server.call("ping", "nil")?;
    Ok(vec![Row::at_most("idle memory", server.resident_mb()?, 30.0, "MB")])
}

/// Measures the resident memory with many full managers.
pub(crate) fn full_memory() -> anyhow::Result<Vec<Row>> {
    let mut server = Server::start()?;
    for manager in 0..MANAGERS {
        let name = format!("buffer-{manager}");
        let lines: String = (0..ITEMS)
            .map(|number| add_line(number, &name, &text(ITEM_BYTES, manager * ITEMS + number)))
            .collect();
        server.pipeline(&lines, ITEMS)?;
    }
    let measure = "memory with 1,000 managers of 50 items of 2 KB";
    Ok(vec![Row::at_most(measure, server.resident_mb()?, 400.0, "MB")])
}

/// A server process over stdio with its own state folder. Both end with this value.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Dropped last, when the server no longer writes there.
    state: TempDir,
    sockets: TempDir,
}

impl Server {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::configured("")
    }

    /// Starts a server with this configuration, in TOML.
    pub(crate) fn configured(configuration: &str) -> anyhow::Result<Self> {
        // The folder is below `target`, on a disk. `/tmp` may be in memory, where durability would
        // cost nothing.
        let state = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        std::fs::write(state.path().join("config.toml"), configuration)?;
        // The path of a socket must be short, and the path of a clone may be long.
        let sockets = tempfile::tempdir()?;
        let (child, input, output) = spawn(&state, &sockets)?;
        Ok(Self { child, input, output, state, sockets })
    }

    /// Returns the path of the socket that other clients can use once the server has answered a
    /// call.
    pub(crate) fn socket(&self) -> PathBuf {
        self.sockets.path().join(SOCKET)
    }

    /// Ends the process and starts another one with the same state.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.call("shutdown", "nil")?;
        self.child.wait()?;
        (self.child, self.input, self.output) = spawn(&self.state, &self.sockets)?;
        Ok(())
    }

    pub(crate) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<String> {
        writeln!(self.input, "(:id 0 :method {method} :params {params})")?;
        self.reply()
    }

    /// Calls a method that sends notifications before its reply, and skips them.
    pub(crate) fn stream(&mut self, method: &str, params: &str) -> anyhow::Result<()> {
        writeln!(self.input, "(:id 0 :method {method} :params {params})")?;
        let mut line = String::new();
        while !line.starts_with("(:id 0 ") {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the server closed its output");
        }
        ensure!(line.starts_with("(:id 0 :result"), "the server answered {}", line.trim_end());
        Ok(())
    }

    /// Sends all of `lines` while reading `replies` replies.
    pub(crate) fn pipeline(&mut self, lines: &str, replies: usize) -> anyhow::Result<()> {
        let Self { input, output, .. } = self;
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || input.write_all(lines.as_bytes()));
            // A refusal must not stop the reading, or the server and then the writer would wait.
            let refused = (0..replies).filter_map(|_| read_reply(output).err()).next_back();
            writer.join().map_err(|_| anyhow::anyhow!("the writing thread panicked"))??;
            refused.map_or(Ok(()), Err)
        })
    }

    fn reply(&mut self) -> anyhow::Result<String> {
        read_reply(&mut self.output)
    }

    /// Returns `VmRSS` of the process, in megabytes of 10⁶ bytes.
    pub(crate) fn resident_mb(&self) -> anyhow::Result<f64> {
        self.status_mb("VmRSS:")
    }

    /// Returns `VmHWM`, the peak memory of the process, in the same unit.
    pub(crate) fn peak_mb(&self) -> anyhow::Result<f64> {
        self.status_mb("VmHWM:")
    }

    fn status_mb(&self, field: &str) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        let kib: f64 = kib.with_context(|| format!("no {field} in /proc"))?.trim().parse()?;
        Ok(kib * 1024.0 / 1e6)
    }
}

fn spawn(
    state: &TempDir,
    sockets: &TempDir,
) -> anyhow::Result<(Child, ChildStdin, BufReader<ChildStdout>)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .args(["serve", "--stdio", "--state"])
        .arg(state.path().join("state"))
        .arg("--unix")
        .arg(sockets.path().join(SOCKET))
        .env("CONTEXTURE_CONFIG", state.path().join("config.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let input = child.stdin.take().context("the server has no standard input")?;
    let output = child.stdout.take().context("the server has no standard output")?;
    Ok((child, input, BufReader::new(output)))
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may already be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_reply(output: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    if output.read_line(&mut line)? == 0 {
        bail!("the server closed its output");
    }
    ensure!(line.contains(":result"), "the server answered {}", line.trim_end());
    Ok(line)
}

fn add_line(id: usize, manager: &str, content: &str) -> String {
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "(:id {id} :method add-context :params (:manager {manager:?} :content {content:?} \
         :type :code :brief t))"
    );
    line
}

/// Returns lines of code of `bytes` bytes in all, different for every `number`.
fn text(bytes: usize, number: usize) -> String {
    let line = format!("(defun sum-{number} (a b) \"Add A and B.\"\n  (+ a b)) ; sums\n");
    line.repeat(bytes / line.len() + 1)[..bytes].to_owned()
}
