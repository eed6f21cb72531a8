//! Runs the commands that agents are configured to start, to check that they work. Runs only this
//! program, and no other that has our name in a configuration. Uses a separate state folder, so that
//! nothing is left behind.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use serde_json::{Value as Json, json};

use super::agent::{KnownAgent, Program, SetupPlace};
use super::entries::OwnEntries;
use super::toml;
use crate::files::codex_folder;
use crate::visible::{visible, visible_path};
use crate::wording::counted;

/// Maximum time that a command in the configuration of an agent may take.
const LONGEST: Duration = Duration::from_secs(5);

/// Maximum number of characters of a command's output to show.
const SHOWN_OUTPUT: usize = 80;

const UNTRUSTED: &str = "; Codex runs the hooks once you trust them: enter /hooks in Codex";

/// The result of checking an agent, in words for the user: what is in order, or a problem.
type Checked = Result<String, String>;

/// Checks all agents at the same time, each in the user's configuration and in that of `project`,
/// if given. Returns no results if the path of this program is not found.
pub(in crate::cli) fn check_agents(home: &Path, project: Option<PathBuf>) -> Vec<Checked> {
    let Ok(program) = Program::running(Vec::new()) else { return Vec::new() };
    let places: Vec<_> =
        std::iter::once(SetupPlace::User).chain(project.map(SetupPlace::Project)).collect();
    std::thread::scope(|scope| {
        let (places, program) = (&places, &program);
        let check =
            |agent: KnownAgent| scope.spawn(move || check_agent(agent, places, home, program));
        let all = KnownAgent::ALL.map(check);
        all.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

fn check_agent(
    agent: KnownAgent,
    places: &[SetupPlace],
    home: &Path,
    program: &Program,
) -> Vec<Checked> {
    let check = |place: &SetupPlace| check_place(agent, place, home, program).transpose();
    let all: Vec<_> = places.iter().filter_map(check).collect();
    if all.is_empty() {
        let name = agent.name();
        let text = match agent.is_installed(home) {
            true => format!("{} is not set up; run contexture setup {name}", agent.title()),
            false => format!("{} is not installed", agent.title()),
        };
        return vec![Ok(text)];
    }
    let named = |error| format!("{}: {error:#}", agent.title());
    all.into_iter().map(|checked| checked.map_err(named)).collect()
}

/// Checks one configuration, and returns what was found, in words. Returns `None` if nothing is set
/// up there. Fails if an entry is missing or does not work.
fn check_place(
    agent: KnownAgent,
    place: &SetupPlace,
    home: &Path,
    program: &Program,
) -> anyhow::Result<Option<String>> {
    let entries = OwnEntries::read(agent, place, home, program)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let (at, option) = match place {
        SetupPlace::User => (String::new(), ""),
        SetupPlace::Project(root) => (format!(" in {}", visible_path(root)), " --project"),
    };
    // Whoever can write the configuration may have entered any program.
    let again = format!("run contexture setup {}{option} again", agent.name());
    if !entries.are_of(agent, program) {
        let title = agent.title();
        let named = entries.server.first().map(Path::new).filter(|named| named.is_absolute());
        if let Some(named) = named.filter(|named| !named.exists()) {
            bail!("the set-up{at} does not work: {} is not there; {again}", visible_path(named));
        }
        return Ok(Some(format!(
            "{title} is set up{at} with a different command, which was not run"
        )));
    }
    if let Some(missing) = entries.missing(agent) {
        bail!("set up{at} without {missing}; {again}");
    }
    if entries.is_off {
        let title = agent.title();
        return Ok(Some(format!("{title} is set up{at}, but told not to start the server")));
    }
    let counts = run_all(agent, &entries)
        .map_err(|error| anyhow!("the set-up{at} does not work: {error:#}; {again}"))?;
    let trust = if is_untrusted(agent, place, home) { UNTRUSTED } else { "" };
    Ok(Some(format!("{} is set up{at} and works: {counts}{trust}", agent.title())))
}

/// Returns whether the agent is Codex and has not been told to trust the hooks at this place.
fn is_untrusted(agent: KnownAgent, place: &SetupPlace, home: &Path) -> bool {
    let hooks = agent.folder(place, home).join("hooks.json");
    let config = codex_folder(home).join("config.toml");
    let text = std::fs::read_to_string(config).unwrap_or_default();
    agent == KnownAgent::Codex && !toml::trusts(&text, &hooks.to_string_lossy())
}

fn run_all(agent: KnownAgent, entries: &OwnEntries) -> anyhow::Result<String> {
    let scratch = Scratch::new(agent.name())?;
    let tools = scratch.ask_server(entries).context("its server")?;
    let tools = counted(tools as u64, "tool");
    for (event, command) in &entries.hooks {
        let asked = scratch.ask_hook(agent, event, command);
        asked.with_context(|| format!("its hook {event}"))?;
    }
    Ok(match entries.hooks.len() {
        0 => format!("its server offers {tools}"),
        1 => format!("its server offers {tools}, and 1 hook answers"),
        count => format!("its server offers {tools}, and {count} hooks answer"),
    })
}

/// A temporary folder for the state of the checked commands. Dropping the value removes the folder.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Scratch {
    fn new(name: &str) -> anyhow::Result<Self> {
        let name = format!("contexture-doctor-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .context("cannot create a temporary folder")?;
        Ok(Self(folder))
    }

    /// Starts a server of the Model Context Protocol as the agent would, and returns the number of
    /// tools that it offers. Fails if the server does not answer in time, or offers no tools.
    fn ask_server(&self, entries: &OwnEntries) -> anyhow::Result<usize> {
        let (program, args) = entries.server.split_first().context("its entry has no command")?;
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "contexture doctor", "version": env!("CARGO_PKG_VERSION") } });
        let input = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        ];
        let input: String = input.iter().map(|line| format!("{line}\n")).collect();
        let env = entries.env.iter().map(|(name, value)| (name, value));
        let mut running = self.start(Command::new(program).args(args).envs(env))?;
        running.write(&input);
        loop {
            let Some(line) = running.line()? else {
                bail!("it ended without an answer: {}", running.last_words())
            };
            let Ok(answer) = serde_json::from_str::<Json>(&line) else {
                bail!("its output is not JSON: {}", visible(&beginning(&line)))
            };
            if answer["id"] == 2 {
                let tools = answer["result"]["tools"].as_array().context("it lists no tools")?;
                ensure!(!tools.is_empty(), "it offers no tools");
                return Ok(tools.len());
            }
        }
    }

    /// Runs the hook with the command `line` on a sample event. Fails if the hook fails, does not
    /// end in time, or gives an answer that is not valid.
    fn ask_hook(&self, agent: KnownAgent, event: &str, line: &str) -> anyhow::Result<()> {
        let sample = json!({ "session_id": "doctor", "hook_event_name": event, "cwd": self.0,
            "source": "startup", "prompt": "" });
        let mut running = self.start(Command::new("sh").args(["-c", line]))?;
        running.write(&sample.to_string());
        running.close();
        let mut output = String::new();
        while let Some(line) = running.line()? {
            output += &line;
        }
        let status = running.child.wait()?;
        let said = running.last_words();
        ensure!(status.success(), "it failed ({status}): {said}");
        // A hook that fails lets the agent continue, and prints the reason.
        if let Some((_, why)) = said.split_once(&format!("hook {} {event}: ", agent.name())) {
            bail!("{why}");
        }
        let answer = serde_json::from_str::<Json>(&output);
        let is_valid = answer.is_ok_and(|it| it["hookSpecificOutput"]["hookEventName"] == event);
        ensure!(
            output.is_empty() || is_valid,
            "its output is not a JSON answer to the event: {}",
            visible(&beginning(&output))
        );
        Ok(())
    }

    fn start(&self, command: &mut Command) -> anyhow::Result<RunningCommand> {
        command.current_dir(&self.0).process_group(0);
        command.env("CONTEXTURE_STATE", self.0.join("state")).env("XDG_RUNTIME_DIR", &self.0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("it cannot be started")?;
        let lines = lines_of(child.stdout.take());
        let errors = lines_of(child.stderr.take());
        Ok(RunningCommand { child, lines, errors, end: Instant::now() + LONGEST })
    }
}

/// Starts to read an output of a command, so that the command never waits for a reader.
fn lines_of(output: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n'));
        let lines = lines.map_while(Result::ok);
        let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    lines
}

/// Returns the beginning of a command's output, for a message.
fn beginning(output: &str) -> String {
    match output.char_indices().nth(SHOWN_OUTPUT) {
        Some((end, _)) => format!("{}…", &output[..end]),
        None => output.to_owned(),
    }
}

/// A running command in its own process group. Dropping the value kills the group if the command is
/// still running.
struct RunningCommand {
    child: Child,
    /// Lines of standard output.
    lines: Receiver<String>,
    /// Lines of standard error.
    errors: Receiver<String>,
    /// Time by which the command must have answered.
    end: Instant,
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
            && matches!(self.child.try_wait(), Ok(None))
        {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl RunningCommand {
    /// Writes to the command's input. Ignores failures: a command that does not read its input
    /// gives the reason in its output.
    fn write(&mut self, text: &str) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(text.as_bytes());
        }
    }

    fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Returns the next line of the command's output, or `None` at the end of the output. Fails if
    /// neither comes in time.
    fn line(&self) -> anyhow::Result<Option<String>> {
        match self.lines.recv_timeout(self.left()) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                bail!("it did not answer within {} s", LONGEST.as_secs())
            }
        }
    }

    /// Kills the command, and returns the last line of its standard error, or says that there is
    /// none.
    fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        // Other processes may keep standard error open.
        let said = std::iter::from_fn(|| self.errors.recv_timeout(self.left()).ok());
        said.last().unwrap_or_else(|| "it printed no error".to_owned())
    }
}
