//! The command by which an agent itself adds a server to its configuration, or removes one, and the
//! comparison of what the command left with what was there. Such commands may write a file anew, with
//! another layout, and may set members of the agent itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use jsonc_parser::ast::{ObjectProp, Value};
use serde_json::Value as Json;

use super::agent::{KnownAgent, Program, STDIO, SetupPlace, WantedSetup, shell_line};
use super::edit::without_mark;
use super::json::find;
use super::value::ENTRY;
use crate::system::end_of;

/// Maximum time that an agent's command may take.
const LONGEST: Duration = Duration::from_secs(60);
/// Names under which agents list their servers.
const SERVERS: [&str; 2] = ["mcpServers", "mcp_servers"];

/// The commands of an agent for one entry.
pub(super) struct AgentCommands {
    program: &'static str,
    add: Vec<String>,
    remove: Vec<String>,
    folder: PathBuf,
}

impl AgentCommands {
    /// Returns the commands of an agent for the server that `program` serves; `None` if the agent has
    /// none for this place.
    pub(super) fn of(
        agent: KnownAgent,
        place: &SetupPlace,
        home: &Path,
        program: &Program,
    ) -> Option<Self> {
        let (scope, folder) = match place {
            SetupPlace::User => ("user", home),
            SetupPlace::Project(root) => ("project", &**root),
        };
        let words = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let scoped = |verb: &str| words(&["mcp", verb, "--scope", scope, ENTRY]);
        let (add, remove) = match (agent, place) {
            (KnownAgent::Claude, _) => {
                let mut add = scoped("add-json");
                add.push(program.entry(STDIO));
                (add, scoped("remove"))
            }
            (KnownAgent::Codex, SetupPlace::User) => {
                let mut add = words(&["mcp", "add", ENTRY, "--"]);
                add.extend(program.with(&["mcp"]));
                (add, words(&["mcp", "remove", ENTRY]))
            }
            // Its command takes what begins with a dash for options of its own.
            (KnownAgent::Gemini, _)
                if !program.with(&[]).iter().any(|word| word.starts_with('-')) =>
            {
                let mut add = scoped("add");
                add.extend(program.with(&["mcp"]));
                (add, scoped("remove"))
            }
            _ => return None,
        };
        Some(Self { program: agent.name(), add, remove, folder: folder.to_owned() })
    }

    /// Returns the command for the change to `text`; `None` if the agent is not installed, or its
    /// command would refuse, since there is such an entry already, or none.
    pub(super) fn command(
        &self,
        wanted: &WantedSetup,
        text: &str,
        is_removed: bool,
    ) -> Option<AgentCommand> {
        let mut all = values(wanted, text).unwrap_or_default();
        let path = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(self.program));
        let program = places.find(|place| place.is_absolute() && place.is_file())?;
        let words = if is_removed { &self.remove } else { &self.add };
        (take_entry(&mut all).is_some() == is_removed).then(|| AgentCommand {
            name: self.program,
            program,
            words: words.clone(),
            folder: self.folder.clone(),
        })
    }
}

/// A command of an agent that makes a change.
pub(super) struct AgentCommand {
    pub(super) name: &'static str,
    program: PathBuf,
    words: Vec<String>,
    folder: PathBuf,
}

impl AgentCommand {
    /// Returns the command as a line for a shell.
    pub(super) fn shown(&self) -> String {
        let name = std::iter::once(self.name.to_owned());
        format!("$ {}\n", shell_line(&name.chain(self.words.iter().cloned()).collect::<Vec<_>>()))
    }

    /// Runs the command. Its output is not shown, since it may quote what is configured.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.words).current_dir(&self.folder);
        // Claude Code would report its start.
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("it cannot be started")?;
        let begun = Instant::now();
        let Some(status) = end_of(&mut child, || begun.elapsed() < LONGEST)? else {
            bail!("it did not end within {} s", LONGEST.as_secs());
        };
        ensure!(status.success(), "it failed ({status})");
        Ok(())
    }
}

/// What an agent's command left in a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Only our entry differs, apart from the layout.
    OnlyOurs,
    /// All servers and hooks of the user are the same, but the agent set members of its own, too.
    More,
    /// An entry of the user differs, or ours is not as wanted.
    Wrong,
}

/// Compares a file before and after an agent's command.
pub(super) fn compare(wanted: &WantedSetup, before: &str, after: &str, is_removed: bool) -> Left {
    let (Some(mut old), Some(mut new)) = (values(wanted, before), values(wanted, after)) else {
        return Left::Wrong;
    };
    take_entry(&mut old);
    if take_entry(&mut new).is_some() == is_removed {
        return Left::Wrong;
    }
    let keeps = |name: &str| old.get(name) == new.get(name);
    match () {
        () if old == new => Left::OnlyOurs,
        () if SERVERS.iter().chain(&["hooks"]).all(|name| keeps(name)) => Left::More,
        () => Left::Wrong,
    }
}

/// Takes our entry out of the values of a file, and the list of servers if it is empty then.
fn take_entry(all: &mut Json) -> Option<Json> {
    let all = all.as_object_mut()?;
    let name = *SERVERS.iter().find(|name| all.contains_key(**name))?;
    let servers = all.get_mut(name)?.as_object_mut()?;
    let taken = servers.remove(ENTRY);
    if servers.is_empty() {
        all.remove(name);
    }
    taken
}

/// Returns what a file says, without its layout; `None` if it does not parse.
fn values(wanted: &WantedSetup, text: &str) -> Option<Json> {
    let text = without_mark(text);
    if text.trim().is_empty() {
        return Some(Json::Object(serde_json::Map::new()));
    }
    match wanted {
        WantedSetup::Json(_) => find(text, &[]).ok()?.as_ref().map(value),
        WantedSetup::Toml(_) => {
            serde_json::to_value(toml::from_str::<toml::Table>(text).ok()?).ok()
        }
    }
}

fn value(of: &Value<'_>) -> Json {
    match of {
        Value::Object(object) => {
            // Of several members with one name, the last counts.
            let members = object.properties.iter();
            let member = |it: &ObjectProp<'_>| (it.name.as_str().to_owned(), value(&it.value));
            Json::Object(members.map(member).collect())
        }
        Value::Array(array) => array.elements.iter().map(value).collect(),
        Value::StringLit(text) => Json::String(text.value.to_string()),
        Value::NumberLit(number) => {
            serde_json::from_str(number.value).unwrap_or_else(|_| number.value.into())
        }
        Value::BooleanLit(it) => Json::Bool(it.value),
        Value::NullKeyword(_) => Json::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_an_agent_wrote_is_compared_by_what_it_says() {
        let json = WantedSetup::Json(String::new());
        let check = |before: &str, after: &str, expected| {
            assert_eq!(compare(&json, before, after, false), expected, "{before} {after}");
            // Removing turns it round.
            assert_eq!(compare(&json, after, before, true), expected, "{after} {before}");
        };
        let ours = r#""contexture": {"command": "c"}"#;
        let with =
            |servers: &str, rest: &str| format!("{{\"mcpServers\": {{{ours}{servers}}}{rest}}}");
        check("", &with("", ""), Left::OnlyOurs);
        check("\u{feff}{\r\n\"a\": 1, // x\r\n\"a\": 2}", &with("", ",\"a\":2"), Left::OnlyOurs);
        check(r#"{"mcpServers": {"o": 1.0}}"#, &with(", \"o\": 1.0", ""), Left::OnlyOurs);
        check(r#"{"a": 1}"#, &with("", r#", "a": 1, "id": "new""#), Left::More);
        check(r#"{"mcpServers": {"o": 1}}"#, &with("", ""), Left::Wrong);
        check(r#"{"hooks": {"o": []}}"#, &with("", r#", "hooks": {}"#), Left::Wrong);
        assert_eq!(compare(&json, "{}", "{}", false), Left::Wrong, "nothing was added");
        let toml = WantedSetup::Toml(Vec::new());
        let after =
            "model = 'm'\n[mcp_servers.o]\na = 1\n[mcp_servers.contexture]\ncommand = 'c'\n";
        let before = "# mine\r\nmodel = \"m\"\r\n[mcp_servers]\r\no = { a = 1 }\r\n";
        assert_eq!(compare(&toml, before, after, false), Left::OnlyOurs);
    }
}
