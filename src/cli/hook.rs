//! `contexture hook`: answers an agent's hook event with a push, and has the transcript of the
//! session imported. A push is the text that tells the agent what has changed in its context since
//! the last push to the session. Whatever fails, the agent continues as if there were no hook.

mod state;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::stdio::stdin;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value, json};
use tokio::runtime::Runtime;

use super::acp::{RECORDS, UNDER_ACP};
use super::host::{Setup, runtime};
use super::mcp::ServerReach;
use super::receipt::Receipt;
use super::serve::log_to_stderr;
use super::{Common, current_folder, write_out};
use crate::files::{claude_folder, codex_folder};
use crate::mcp::{Push, PushedSession, ROOM_OF_A_HOOK, ServerLink};

/// Maximum size of an event, in bytes.
const LARGEST_EVENT: usize = 16 << 20;
/// Maximum length of the id of a session, in bytes.
const LONGEST_ID: usize = 200;
/// Maximum time to wait for the event.
const EVENT_WAIT: Duration = Duration::from_secs(2);
/// Maximum time to wait for the server if the agent has already received a push in this session.
const ANSWER_WAIT: Duration = Duration::from_secs(2);
/// Maximum time to wait for the server if the agent is not known to have received a push in this
/// session: the server may have to be started, and the agent may have no context without this push.
const FIRST_WAIT: Duration = Duration::from_secs(8);
/// Maximum time to wait for the server after a compaction: the server reads the transcript before
/// it answers.
const FACTS_WAIT: Duration = Duration::from_secs(10);

/// Variables in which agents tell their hooks the folder of the session.
const FOLDERS: &[(&str, &str)] = &[
    ("claude", "CLAUDE_PROJECT_DIR"),
    ("gemini", "GEMINI_PROJECT_DIR"),
    ("gemini", "GEMINI_CWD"),
    ("gemini", "CLAUDE_PROJECT_DIR"),
];

/// Answer an agent's hook event with what changed in its context since the last push.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Agents run this themselves, with the event as JSON on standard input, once \
    contexture setup has\nconfigured them. The agents are claude, codex and gemini. The exit code \
    is always 0, and failures\nare reported on standard error."
)]
pub(super) struct Hook {
    /// The agent: claude, codex or gemini
    agent: String,
    /// Name of the event, as the agent calls it, such as SessionStart or UserPromptSubmit
    event: String,
}

/// The parts of an event that the hook reads.
struct HookEvent {
    session_id: String,
    transcript_path: Option<PathBuf>,
    source: Option<String>,
    trigger: Option<String>,
    notification_type: Option<String>,
}

impl HookEvent {
    /// Returns the event with which a text begins; `None` if the text does not begin with a whole
    /// JSON object. Of a member that occurs twice, the last counts, as for the agents. Other
    /// members may hold anything.
    fn of(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let text = text.trim_start_matches('\u{feff}');
        let mut values = Deserializer::from_str(text).into_iter::<HashMap<String, &RawValue>>();
        let members = values.next()?.ok()?;
        let text_of = |name| match serde_json::from_str(members.get(name)?.get()).ok()? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Some(Self {
            session_id: text_of("session_id").unwrap_or_default(),
            transcript_path: text_of("transcript_path").map(PathBuf::from),
            source: text_of("source"),
            trigger: text_of("trigger"),
            notification_type: text_of("notification_type"),
        })
    }
}

impl Hook {
    pub(super) fn run(self, common: &Common) {
        log_to_stderr();
        let Self { agent, event } = &self;
        // A panic has been reported already.
        let answered = std::panic::catch_unwind(|| self.answer(common)).unwrap_or(Ok(()));
        if let Err(error) = answered {
            tracing::warn!("hook {agent} {event}: {error:#}");
        }
    }

    fn answer(&self, common: &Common) -> anyhow::Result<()> {
        let agent = HookAgent::named(&self.agent)?;
        let event = read_event()?;
        let named = agent.transcript(event.transcript_path.as_deref());
        let proxied = std::env::var_os(UNDER_ACP);
        // The transcript is not imported after a compaction, when it is only read for facts, nor if
        // the proxy records the session.
        let is_recorded = proxied.as_ref().is_some_and(|it| it == RECORDS);
        let is_compacted =
            self.event == "SessionStart" && event.source.as_deref() == Some("compact");
        let mut transcript = named.clone().filter(|_| !is_compacted && !is_recorded);
        // A proxy already gives the agent the changes, but does not see compactions.
        let is_proxied = proxied.is_some();
        let is_pushed = match &*self.event {
            _ if is_proxied => is_compacted,
            "SessionStart" => true,
            "UserPromptSubmit" => agent.name != "gemini",
            "BeforeAgent" => agent.name == "gemini",
            _ => false,
        };
        // Gemini CLI announces an automatic compaction before every prompt, so only manual
        // compactions count.
        if self.event == "PreCompress" && event.trigger.as_deref() == Some("manual") {
            let setup = common.setup()?;
            let Some(receipt) = Receipt::of(&setup, agent.name, &event.session_id) else {
                return Ok(());
            };
            let _held = receipt.hold()?;
            return receipt.forget();
        }
        if is_pushed {
            let setup = common.setup()?;
            let receipt = Receipt::of(&setup, agent.name, &event.session_id);
            let _held = receipt.as_ref().map(Receipt::hold).transpose()?;
            let is_anew = receipt.as_ref().is_some_and(Receipt::is_forgotten)
                || self.event == "SessionStart" && agent.forgets(event.source.as_deref());
            let begins = self.event == "SessionStart" && event.source.as_deref() != Some("resume");
            let mut received = receipt.as_ref().and_then(Receipt::number);
            if let (None, true, Some(receipt)) = (received, begins, &receipt) {
                // If this hook is killed, the next one knows that nothing was received.
                receipt.note(0)?;
                received = Some(0);
            }
            let session = PushedSession {
                agent: agent.name,
                id: &event.session_id,
                received,
                is_anew,
                compacted: named.as_deref().filter(|_| is_compacted),
                recording: transcript.as_deref(),
                room: ROOM_OF_A_HOOK,
            };
            let access = HookAccess::new(setup)?;
            let pushed = self.pushed(&access, session, receipt.as_ref());
            access.end();
            if pushed? {
                transcript = None;
            }
        }
        let state = event.state(&self.event).map(|state| (agent.name, &*event.session_id, state));
        if let Some(told) = state
            && state::tell(&common.setup()?, told, transcript.as_deref())?
        {
            return Ok(());
        }
        transcript.map_or(Ok(()), |transcript| record(common, &transcript))
    }

    /// Gives the agent a push, unless there is nothing to give, and notes in `receipt` that the
    /// session received the push. Returns whether the server will import the transcript.
    fn pushed(
        &self,
        access: &HookAccess,
        session: PushedSession<'_>,
        receipt: Option<&Receipt>,
    ) -> anyhow::Result<bool> {
        let push = access.push(session)?;
        if !push.is_nothing() {
            self.give(&push)?;
        }
        if let (Some(receipt), Some(number)) = (receipt, push.number) {
            receipt.note(number)?;
        }
        Ok(push.is_importing)
    }

    fn give(&self, push: &Push) -> anyhow::Result<()> {
        let answer = json!({ "hookSpecificOutput": {
            "hookEventName": self.event, "additionalContext": push.text,
        } });
        write_out(&format!("{answer}\n")).context("the agent did not read the answer")
    }
}

/// Reads the event from standard input until its JSON is complete, since an agent may leave the input
/// open. Fails after [`EVENT_WAIT`].
fn read_event() -> anyhow::Result<HookEvent> {
    let end = Instant::now() + EVENT_WAIT;
    let mut text = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        ensure!(
            is_readable(end)?,
            "the event on standard input was not complete within {} s",
            EVENT_WAIT.as_secs()
        );
        match retry_on_intr(|| rustix::io::read(stdin(), &mut part))? {
            0 => break,
            length => text.extend_from_slice(&part[..length]),
        }
        ensure!(text.len() <= LARGEST_EVENT, "the event is longer than {LARGEST_EVENT} bytes");
        // Only an object can be an event, so a text that ends otherwise need not be parsed yet.
        if text.trim_ascii_end().ends_with(b"}") && HookEvent::of(&text).is_some() {
            break;
        }
    }
    let event = HookEvent::of(&text).context("the event is not a JSON object")?;
    let is_plain = |c: char| c.is_ascii_graphic();
    let id = &event.session_id;
    let is_valid = (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(is_plain);
    ensure!(
        is_valid,
        "the session_id is missing, too long, or has characters other than visible ASCII"
    );
    Ok(event)
}

/// Waits until standard input can be read or has ended. Returns false if neither has happened by
/// `end`.
fn is_readable(end: Instant) -> anyhow::Result<bool> {
    let left = end.saturating_duration_since(Instant::now());
    let mut awaited = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let left = left.try_into()?;
    Ok(retry_on_intr(|| poll(&mut awaited, Some(&left)))? > 0)
}

/// A way to reach the server, and the runtime that it needs.
struct HookAccess {
    runtime: Runtime,
    reach: Arc<ServerReach>,
    link: ServerLink,
}

impl HookAccess {
    fn new(setup: Setup) -> anyhow::Result<Self> {
        let reach = ServerReach::new(setup);
        Ok(Self { runtime: runtime()?, link: ServerLink::new(Arc::clone(&reach)), reach })
    }

    /// Asks the server for a push about the project of the agent's own folder: the one that the
    /// agent names in the environment, or else the current one. The current folder of some agents
    /// is where a command last went. A folder in the event is ignored.
    fn push(&self, session: PushedSession<'_>) -> anyhow::Result<Push> {
        let named = FOLDERS.iter().filter(|(agent, _)| *agent == session.agent);
        let mut named = named.filter_map(|(_, variable)| std::env::var_os(variable));
        let folder = named.find(|it| Path::new(it).is_absolute() && Path::new(it).is_dir());
        let folder = folder.map_or_else(current_folder, |it| Ok(PathBuf::from(it)))?;
        let wait = match session.received {
            _ if session.compacted.is_some() => FACTS_WAIT,
            None | Some(0) => FIRST_WAIT,
            Some(_) => ANSWER_WAIT,
        };
        let push = self.runtime.block_on(async {
            let asking = async {
                self.link.connect().await?;
                // A server in this process ends too early to import anything.
                let recording = if self.reach.is_here().await { None } else { session.recording };
                PushedSession { recording, ..session }.push(&self.link, &folder).await
            };
            tokio::time::timeout(wait, asking).await
        });
        // The error of the timer would only repeat this.
        let push = push.map_err(|_| anyhow!("the server did not answer in time"))?;
        push.map_err(anyhow::Error::msg)
    }

    fn end(self) {
        self.runtime.block_on(self.reach.end());
        self.runtime.shutdown_background();
    }
}

/// Starts a process that imports a transcript into the state that this process uses, so that the
/// agent need not wait for the import. Does nothing without a state folder. Of the options, passes
/// on only those that name the state and the configuration.
fn record(common: &Common, transcript: &Path) -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt;
    if common.ephemeral {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(program);
    command.args(common.shared()?).arg("import").arg(transcript).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).context("cannot start the import of the transcript")
}

struct HookAgent {
    name: &'static str,
    /// Folder of the agent's transcripts, if they can be imported.
    transcripts: Option<PathBuf>,
}

impl HookAgent {
    fn named(name: &str) -> anyhow::Result<Self> {
        let home = std::env::home_dir();
        let below = |folder: fn(&Path) -> PathBuf, name: &str| {
            home.as_deref().map(|home| folder(home).join(name))
        };
        Ok(match name {
            "claude" => Self { name: "claude", transcripts: below(claude_folder, "projects") },
            "codex" => Self { name: "codex", transcripts: below(codex_folder, "sessions") },
            "gemini" => Self { name: "gemini", transcripts: None },
            _ => bail!("unknown agent; choose claude, codex or gemini"),
        })
    }

    /// Returns whether a session that starts for the reason `source` has lost the items that it was
    /// given; false for a new session, which was given none.
    fn forgets(&self, source: Option<&str>) -> bool {
        match source {
            Some("clear" | "compact") => true,
            // When Gemini CLI resumes a session, the texts that hooks added are missing.
            Some("resume") => self.name == "gemini",
            _ => false,
        }
    }

    /// Returns the transcript that an event names, if it is a JSON Lines file in the agent's own
    /// folder of transcripts.
    fn transcript(&self, named: Option<&Path>) -> Option<PathBuf> {
        let path = named?.canonicalize().ok()?;
        let folder = self.transcripts.as_ref()?.canonicalize().ok()?;
        let is_it = path.starts_with(folder) && path.extension()? == "jsonl" && path.is_file();
        is_it.then_some(path)
    }
}
