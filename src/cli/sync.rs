//! `contexture sync`: exchanges sessions, memories and marks with another machine over ssh.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use super::call::CallCommand;
use super::host::Setup;
use super::serve::log_to_stderr;
use super::{Common, complain, current_folder, say, utf8, write_out};
use crate::sync::{Brought, GivenChanges, PROTOCOL, SeenChanges, SyncRequest, TakenCounts, talk};
use crate::value::Value;
use crate::visible::{shortened, visible, visible_lines};
use crate::whole_file;
use crate::wording::counted;

/// Maximum size of a line from the other machine, in bytes.
const LONGEST_LINE: u64 = 64 << 20;
/// Maximum size of what the other machine may print before it answers, in bytes.
const LONGEST_GREETING: usize = 64 << 10;
/// Maximum size of a line of what ssh or the other machine tells the user, in bytes, and maximum
/// number of such lines.
const LONGEST_TOLD: u64 = 1 << 10;
const MOST_TOLD: usize = 100;
/// Maximum time to wait for the rest of these lines. A program that ssh leaves running may keep its
/// end open.
const LAST_TOLD: Duration = Duration::from_millis(200);
/// Maximum size of what an error of the other machine may say, in bytes.
const LONGEST_ERROR: usize = 500;
/// Maximum time that the other machine may say nothing. Somebody may have to type a passphrase.
const LONGEST_SILENCE: Duration = Duration::from_secs(300);
/// First word of each line.
const MARK: &str = "contexture-sync";
/// File with what other machines knew at the end of the last exchange.
const REMEMBERED: &str = "machine-peers.json";

/// Exchange sessions, memories and marks with another machine over ssh
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture sync laptop\n  contexture sync me@desk.example.org\n  \
    contexture sync --name parser\n\nRuns `ssh HOST contexture sync --serve`. Contexture must be \
    installed there; nothing is installed,\nand nothing listens. What came from another machine is \
    a copy that says where it came from.\nA project is known by its Git remote, or by the name that \
    --name gives it on each machine."
)]
pub(super) struct Sync {
    /// Host as ssh knows it
    #[arg(required_unless_present_any = ["serve", "name"])]
    host: Option<String>,
    /// Name or path of the program on the host
    #[arg(long, value_name = "PROGRAM", default_value = "contexture")]
    program: String,
    /// Answer another machine on standard input and output
    #[arg(long, conflicts_with_all = ["host", "name"])]
    serve: bool,
    /// Name the project of the current folder, if it has no Git remote
    #[arg(long, value_name = "NAME", conflicts_with = "host")]
    name: Option<String>,
}

/// An answer of the other machine.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum SyncAnswer {
    Given(GivenChanges),
    Error(String),
}

/// The program on the other machine.
struct There {
    host: String,
    child: Child,
    /// Lines for its input, which another thread writes: it may take no more.
    input: Sender<String>,
    /// Lines that came; `None` is the end.
    lines: Receiver<anyhow::Result<Option<String>>>,
    /// Is closed once the user has been told everything that ssh and the other machine said.
    told: Receiver<()>,
    has_answered: bool,
    /// True once its output has ended.
    has_ended: bool,
    /// Why no more is asked.
    broken: Option<String>,
    /// Bytes that went there and came back, before compression.
    bytes: (u64, u64),
}

impl Sync {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let setup = common.setup()?;
        let Some(folder) = setup.state.clone() else {
            bail!("--ephemeral keeps no state to exchange; omit the option");
        };
        log_to_stderr();
        if self.serve {
            return serve(&setup, std::io::stdin().lock());
        }
        if let Some(name) = &self.name {
            let project = ("project".into(), Value::Str(utf8(current_folder()?)?));
            let name = ("project-name".into(), Value::Str(name.clone()));
            let protocol = ("protocol".into(), Value::of(&PROTOCOL));
            let params = Value::Map(vec![protocol, project, name]);
            CallCommand::in_json("exchange").result(&setup, params)?;
            return say("The project of this folder has the name now.\n");
        }
        let host = self.host.unwrap_or_default();
        let mut there = There::start(&host, &self.program)?;
        let mut remembered = remembered(&folder);
        let known = remembered.remove(&host).unwrap_or_default();
        let run = talk(|request| ours(&setup, &request), |request| there.ask(&request), known);
        // The other machine's error says more than that of a broken pipe.
        let run = run.map_err(|error| there.ended(error.0))?;
        let (given, taken) = (shown(run.given), shown(run.taken));
        let (out, back) = there.bytes;
        say(&visible_lines(&format!(
            "{}: took {taken}; gave {given} ({out} bytes there, {back} back, round trips: {}).\n",
            visible(&shortened(&run.name, LONGEST_ERROR)),
            run.rounds
        )))?;
        remembered.insert(host, run.known);
        let text = serde_json::to_string(&remembered)?;
        whole_file::replace(&folder.join(REMEMBERED), |file, _| file.write_all(text.as_bytes()))
            .context("cannot remember what the other machine knows")
    }
}

/// An error that can be made of words.
struct Failed(anyhow::Error);

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self(anyhow!(why))
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

/// Asks the server of this machine.
fn ours(setup: &Setup, request: &SyncRequest) -> Result<GivenChanges, Failed> {
    let answer = CallCommand::in_json("exchange").result(setup, Value::of(request))?;
    let given = answer.decode::<GivenChanges>();
    Ok(given.map_err(|error| anyhow!("the server's answer is not valid: {error}"))?)
}

impl There {
    /// Starts the program on a host. The names are arguments or checked words, never options or
    /// parts of a shell's command.
    fn start(host: &str, program: &str) -> anyhow::Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./~+@:%[]".contains(c);
        ensure!(
            !host.is_empty() && !host.starts_with('-') && host.chars().all(is_plain),
            "{host:?} is no name of a host"
        );
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./~+".contains(c);
        ensure!(
            !program.is_empty() && !program.starts_with('-') && program.chars().all(is_plain),
            "{program:?} is no plain name of a program"
        );
        let mut command = Command::new("ssh");
        command.args(["-T", "-C", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"]);
        command.args(["--", host, &format!("{program} sync --serve")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot run ssh")?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else { bail!("ssh has no pipes") };
        let (host, input) = (host.to_owned(), written_to(input));
        let (has_answered, has_ended, broken, bytes) = (false, false, None, (0, 0));
        let (lines, told) = (lines_of(output), told_by(errors));
        Ok(Self { host, child, input, lines, told, has_answered, has_ended, broken, bytes })
    }

    /// Asks the other machine. After anything but an answer, it is not asked again.
    fn ask(&mut self, request: &SyncRequest) -> Result<GivenChanges, Failed> {
        if let Some(why) = &self.broken {
            return Err(why.clone().into());
        }
        match self.answer(request) {
            Ok(SyncAnswer::Given(given)) => Ok(given),
            Ok(SyncAnswer::Error(why)) => {
                let why = shortened(&why, LONGEST_ERROR);
                Err(format!("{} refused: {why}", self.host).into())
            }
            Err(error) => {
                let why = format!("{error:#}");
                self.broken = Some(why.clone());
                Err(why.into())
            }
        }
    }

    fn answer(&mut self, request: &SyncRequest) -> anyhow::Result<SyncAnswer> {
        let line = line(request)?;
        self.bytes.0 += line.len() as u64;
        // A program that takes no more has ended, or says why.
        let _ = self.input.send(line);
        let mut skipped = 0;
        loop {
            let text = match self.lines.recv_timeout(LONGEST_SILENCE) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Disconnected) => None,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{} said nothing for {} s", self.host, LONGEST_SILENCE.as_secs())
                }
            };
            self.has_ended = text.is_none();
            let text = text.with_context(|| {
                format!("{} ended before it answered; what came is kept", self.host)
            })?;
            self.bytes.1 += text.len() as u64;
            if let Some(answer) = read(&text)? {
                self.has_answered = true;
                return Ok(answer);
            }
            // What a shell prints when it starts comes first.
            skipped += text.len();
            if self.has_answered || skipped > LONGEST_GREETING {
                bail!("{} sent something that is no answer", self.host);
            }
        }
    }

    /// Returns the error of a talk, with how the program on the host ended if it never answered.
    fn ended(&mut self, error: anyhow::Error) -> anyhow::Error {
        // A program that goes on is never waited for.
        if self.has_answered || !self.has_ended {
            return error;
        }
        let status = self.child.wait();
        let _ = self.told.recv_timeout(LAST_TOLD);
        match status {
            Ok(status) if status.code() == Some(127) => error.context(format!(
                "{} has no contexture on its path; install it there, or name it with --program",
                self.host
            )),
            _ => error,
        }
    }
}

impl Drop for There {
    fn drop(&mut self) {
        // Without this machine, the program there has nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.told.recv_timeout(LAST_TOLD);
    }
}

/// Answers another machine, line by line, until it ends.
fn serve(setup: &Setup, mut input: impl BufRead) -> anyhow::Result<()> {
    let mut brought = Brought::default();
    while let Some(text) = read_line(&mut input)? {
        let answer = match read::<SyncRequest>(&text) {
            Ok(Some(mut request)) => {
                let admitted = request.admit(&mut brought);
                let given = ours(setup, &request).map_err(|error| format!("{:#}", error.0));
                admitted.and(given)
            }
            Ok(None) => Err("that is no request".to_owned()),
            Err(error) => Err(format!("{error:#}")),
        };
        let answer = answer.map_or_else(SyncAnswer::Error, SyncAnswer::Given);
        write_out(&line(&answer)?)?;
    }
    Ok(())
}

/// Writes lines on a thread of their own, until the program takes no more or nothing more comes.
fn written_to(mut input: ChildStdin) -> Sender<String> {
    let (send, lines) = mpsc::channel::<String>();
    std::thread::spawn(move || {
        let write = |line: String| input.write_all(line.as_bytes()).and_then(|()| input.flush());
        lines.into_iter().map(write).take_while(Result::is_ok).for_each(drop);
    });
    send
}

/// Reads lines on a thread of their own, one ahead, until the output ends or nobody wants more.
fn lines_of(output: ChildStdout) -> Receiver<anyhow::Result<Option<String>>> {
    let (send, lines) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let line = read_line(&mut output);
            let is_last = !matches!(line, Ok(Some(_)));
            if send.send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// Tells the user what ssh and the other machine say about errors, without their control characters,
/// on a thread of its own. Reads all of it, so that nobody waits to say more.
fn told_by(errors: ChildStderr) -> Receiver<()> {
    let (end, told) = mpsc::sync_channel(0);
    std::thread::spawn(move || {
        let _end = end;
        let mut errors = BufReader::new(errors);
        let mut left = MOST_TOLD;
        let mut line = Vec::new();
        while matches!(errors.by_ref().take(LONGEST_TOLD).read_until(b'\n', &mut line), Ok(1..)) {
            if left > 0 {
                complain(&visible(String::from_utf8_lossy(&line).trim_end()));
            }
            left = left.saturating_sub(1);
            line.clear();
        }
    });
    told
}

fn line(message: &impl Serialize) -> anyhow::Result<String> {
    let json = serde_json::to_string(message)?;
    Ok(format!("{MARK} {PROTOCOL} {json}\n"))
}

/// Reads a line; `None` at the end, also when that is in the middle of a line.
fn read_line(input: &mut impl BufRead) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes).context("the other machine")?;
    if bytes.last() == Some(&b'\n') {
        return Ok(Some(String::from_utf8(bytes).context("the other machine sent no text")?));
    }
    ensure!(
        (bytes.len() as u64) < LONGEST_LINE,
        "the other machine sent a line of more than {LONGEST_LINE} bytes"
    );
    Ok(None)
}

/// Reads a message from a line; `None` if the line does not belong to the exchange.
fn read<T: for<'a> Deserialize<'a>>(line: &str) -> anyhow::Result<Option<T>> {
    let Some((version, json)) =
        line.strip_prefix(MARK).and_then(|rest| rest.strip_prefix(' ')?.split_once(' '))
    else {
        return Ok(None);
    };
    ensure!(
        version == PROTOCOL.to_string(),
        "the other machine speaks another version of the exchange than {PROTOCOL}; update the older \
         Contexture"
    );
    let message = serde_json::from_str(json);
    message.map(Some).context("cannot read what the other machine sent")
}

fn remembered(folder: &Path) -> BTreeMap<String, Vec<SeenChanges>> {
    let path: PathBuf = folder.join(REMEMBERED);
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn shown(taken: TakenCounts) -> String {
    let TakenCounts { sessions, messages, memories, marks, edits } = taken;
    let all = [
        (sessions, "session"),
        (messages, "message"),
        (memories, "memory"),
        (marks, "set of marks"),
        (edits, "edit"),
    ];
    let some = all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match *what {
        "set of marks" if *count != 1 => format!("{count} sets of marks"),
        what => counted(*count, what),
    });
    let some: Vec<String> = some.collect();
    if some.is_empty() { "nothing new".to_owned() } else { some.join(", ") }
}
