//! `contexture acp`: runs an agent that speaks the Agent Client Protocol, as a proxy between the
//! agent and its client. All bytes pass unchanged, with two exceptions: sessions get our server
//! when they are created, forked, loaded or resumed, and prompts get what changed in the agent's
//! context since the agent last received changes. Whatever fails, agent and client continue as if
//! there were no proxy.

mod aside;
mod lines;
mod message;
mod record;
mod talk;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};

use self::aside::Aside;
use self::lines::{CHUNK, LONGEST_LINE, StreamLines, StreamPiece};
use self::talk::AcpTalk;
use super::host::runtime;
use super::serve::log_to_stderr;
use super::{Common, complain, current_folder, utf8};

/// Environment variable that tells hooks that the proxy already gives the agent the changes to its
/// context. Its value is [`RECORDS`] if the proxy also records sessions.
pub(super) const UNDER_ACP: &str = "CONTEXTURE_ACP";
/// Value of [`UNDER_ACP`] if the proxy records sessions.
pub(super) const RECORDS: &str = "records";
/// Folder of the recordings, in the state folder.
const RECORDINGS: &str = "acp";
/// Maximum time to wait for the last output once the agent has ended. A process that the agent
/// started may hold the output open.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// Maximum time to wait for the recorder, and then for the thread that asks the server, once the
/// agent has ended.
const LAST_WORK: Duration = Duration::from_secs(1);
/// Signals that the proxy passes on to the agent.
const SIGNALS: [Signal; 6] =
    [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Run an agent that speaks the Agent Client Protocol, and tell it with each prompt what changed in
/// its context.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture acp -- opencode acp\n  contexture acp -- \
    claude-agent-acp\n\nIn your editor's settings, put `contexture acp --` before the command that \
    starts the agent.")]
pub(super) struct Acp {
    /// Do not record the sessions
    #[arg(long)]
    no_record: bool,
    /// Program of the agent, and its arguments
    #[arg(last = true, required = true, value_name = "AGENT")]
    agent: Vec<OsString>,
}

impl Acp {
    pub(super) fn run(self, common: &Common) -> ExitCode {
        log_to_stderr();
        let name = self.agent[0].to_string_lossy();
        match self.start() {
            Ok(child) => self.stand_between(common, child),
            Err(error) => {
                complain(&format!("contexture acp: cannot start {name}: {error}"));
                let is_missing = error.kind() == io::ErrorKind::NotFound;
                ExitCode::from(if is_missing { 127 } else { 126 })
            }
        }
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.agent[0]);
        command.args(&self.agent[1..]).env(UNDER_ACP, if self.no_record { "1" } else { RECORDS });
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    }

    fn stand_between(&self, common: &Common, mut child: Child) -> ExitCode {
        pass_signals(&child);
        let talk = self.talk(common).map(Arc::new).map_err(|error| {
            tracing::warn!("acp: the agent runs without Contexture: {error:#}");
        });
        let talk = talk.ok();
        let (done, ended) = channel();
        if let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) {
            let (up, down) = (talk.clone(), talk.clone());
            std::thread::spawn(move || pass_up(to, up.as_deref()));
            std::thread::spawn(move || pass_down(from, down.as_deref(), &done));
        }
        let status = child.wait();
        let _ = ended.recv_timeout(LAST_OUTPUT);
        if let Some(talk) = talk {
            talk.aside().end(LAST_WORK);
        }
        status.map_or(ExitCode::FAILURE, exit_code)
    }

    fn talk(&self, common: &Common) -> anyhow::Result<AcpTalk> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let program = utf8(program)?;
        let folder = current_folder()?;
        let options = common.places()?.into_iter().map(utf8);
        let mut options = options.collect::<anyhow::Result<Vec<_>>>()?;
        options.extend(["mcp".to_owned(), "--project".to_owned()]);
        let name = Path::new(&self.agent[0]).file_name().unwrap_or(&self.agent[0]);
        let setup = common.setup()?;
        let state = setup.state.as_ref().filter(|_| !self.no_record);
        let recordings = state.map(|state| folder.join(state).join(RECORDINGS));
        let aside = Aside::start(setup, recordings.as_deref())?;
        Ok(AcpTalk::new(&name.to_string_lossy(), program, options, aside))
    }
}

/// Passes the client's messages on to the agent, with what `talk` adds to them.
fn pass_up(mut to: ChildStdin, talk: Option<&AcpTalk>) {
    let Ok(input) = io::stdin().as_fd().try_clone_to_owned() else { return };
    let mut lines = StreamLines::new(File::from(input));
    while let Ok(Some(piece)) = lines.next() {
        let passed = match piece {
            StreamPiece::Part(bytes) => to.write_all(bytes),
            StreamPiece::Line(line) => {
                let changed = talk.and_then(|talk| talk.client_says(line));
                to.write_all(changed.as_deref().unwrap_or(line))
            }
        };
        if passed.is_err() {
            // Closes standard input, so that the client learns that nobody reads its messages.
            let _ = File::open("/dev/null").map(rustix::stdio::dup2_stdin);
            return;
        }
    }
}

/// Passes the agent's messages on to the client until the agent's output ends, and reports the end
/// to `done`.
fn pass_down(from: ChildStdout, talk: Option<&AcpTalk>, done: &Sender<()>) {
    // A failure means that the client has gone; the agent notices when its pipe is closed.
    let _ = copy_down(from, talk);
    let null = File::options().write(true).open("/dev/null");
    let _ = null.map(rustix::stdio::dup2_stdout);
    let _ = done.send(());
}

fn copy_down(mut from: ChildStdout, talk: Option<&AcpTalk>) -> io::Result<()> {
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let (mut chunk, mut line) = (vec![0; CHUNK], Vec::new());
    loop {
        let read = match from.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let bytes = &chunk[..read];
        if read == 0 {
            return Ok(());
        }
        if let Some(talk) = talk {
            overhear(talk, &mut line, bytes);
        }
        output.write_all(bytes)?;
    }
}

/// Passes each line that ends within `bytes` to `talk`, unless the line is too long. `line` holds
/// the beginning of an unfinished line from one call to the next.
fn overhear(talk: &AcpTalk, line: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.split_inclusive(|byte| *byte == b'\n') {
        // A line that is too long keeps its length until it ends, so that its last part is not read
        // as a line.
        if line.len() <= LONGEST_LINE {
            line.extend_from_slice(part);
        }
        if part.ends_with(b"\n") {
            if line.len() <= LONGEST_LINE {
                talk.agent_says(line);
            }
            line.clear();
            line.shrink_to(CHUNK);
        }
    }
}

/// Starts a thread that passes signals on to the agent. The signals are already caught when this
/// function returns.
fn pass_signals(child: &Child) {
    let Ok(runtime) = runtime() else { return };
    let agent = Pid::from_child(child);
    let entered = runtime.enter();
    let caught = SIGNALS.map(|known| (known, signal(SignalKind::from_raw(known.as_raw()))));
    drop(entered);
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut passing = tokio::task::JoinSet::new();
            for (known, caught) in caught {
                passing.spawn(pass_signal(known, caught, agent));
            }
            while passing.join_next().await.is_some() {}
        });
    });
}

async fn pass_signal(known: Signal, caught: io::Result<Caught>, agent: Pid) {
    let Ok(mut caught) = caught else { return };
    while caught.recv().await.is_some() {
        // The agent may have ended.
        let _ = kill_process(agent, known);
    }
}

/// Returns the agent's exit code. If a signal ended the agent, returns the code that a shell would
/// return.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
