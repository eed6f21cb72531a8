//! What an agent is doing in a session, as its hooks tell.

use std::path::Path;

use anyhow::anyhow;
use serde::Deserialize;

use super::HookEvent;
use crate::cli::call::CallCommand;
use crate::cli::host::Setup;
use crate::store::ownership::owner;
use crate::value::Value;

impl HookEvent {
    /// Returns what the agent is doing in the session after the event called `name`, as
    /// `pushed-context` names it; `None` if the event does not tell.
    pub(super) fn state(&self, name: &str) -> Option<&'static str> {
        Some(match name {
            "SessionStart" => "idle",
            "UserPromptSubmit" | "BeforeAgent" => "working",
            "PermissionRequest" => "waiting",
            "Notification" => match self.notification_type.as_deref()? {
                "permission_prompt" | "ToolPermission" => "waiting",
                _ => return None,
            },
            "Stop" | "AfterAgent" => "idle",
            "SessionEnd" => "ended",
            _ => return None,
        })
    }
}

/// The part of the result of `pushed-context` that [`tell`] reads.
#[derive(Deserialize)]
struct PushedTold {
    importing: Option<bool>,
}

/// Tells the server, if one is running, the state of an agent's session, and has it import the
/// transcript. Returns whether it will. `told` has the agent, the id of the session, and the state.
pub(super) fn tell(
    setup: &Setup,
    told: (&str, &str, &str),
    transcript: Option<&Path>,
) -> anyhow::Result<bool> {
    let owner = setup.state.as_deref().and_then(owner);
    let Some(socket) = owner.and_then(|owner| owner.socket) else { return Ok(false) };
    let (agent, session, state) = told;
    let text = |text: &str| Value::Str(text.to_owned());
    let mut params = vec![
        ("agent".into(), text(agent)),
        ("agent-session".into(), text(session)),
        ("state".into(), Value::Keyword(state.into())),
    ];
    if let Some(process) = agent_process() {
        params.push(("process".into(), Value::Int(process.into())));
    }
    if let Some(path) = transcript.and_then(Path::to_str) {
        params.push(("recording".into(), text(path)));
    }
    let answer = CallCommand::to("pushed-context", socket).result(setup, Value::Map(params))?;
    let PushedTold { importing } = answer.decode().map_err(|error| anyhow!("{error}"))?;
    Ok(importing == Some(true))
}

/// Names of shells, by which agents may run their hooks.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "fish", "busybox"];
/// Maximum number of shells between an agent and its hook.
const MOST_SHELLS: usize = 4;

/// Returns the number of the process that runs this hook, apart from shells; `None` if the system
/// does not tell.
fn agent_process() -> Option<i32> {
    let mut id = rustix::process::getppid()?.as_raw_nonzero().get();
    for _ in 0..MOST_SHELLS {
        // The line is `ID (NAME) STATE PARENT ...`, and the name may contain anything.
        let line = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (head, rest) = line.rsplit_once(')')?;
        if !SHELLS.contains(&head.split_once('(')?.1) {
            return Some(id);
        }
        id = rest.split_whitespace().nth(1)?.parse().ok()?;
    }
    None
}
