//! The agents that can be set up: the places of their configuration files, and the entries to add
//! there.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::value::{ENTRY, quoted};
use crate::cli::utf8;
use crate::files::{claude_folder, codex_folder, named_or};

/// Maximum time that an agent waits for a hook, in seconds. The hook itself ends earlier.
const HOOK_SECONDS: u64 = 15;

/// The kind of the server, in Claude Code's entry.
pub(super) const STDIO: &str = r#""type": "stdio", "#;

/// An agent that can be set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum KnownAgent {
    Claude,
    Codex,
    Gemini,
    #[value(name = "opencode")]
    OpenCode,
}

/// Where an agent is configured: for the user, or for one project.
#[derive(Debug, Clone)]
pub(super) enum SetupPlace {
    User,
    /// The project with this root folder.
    Project(PathBuf),
}

/// The command line that starts this program, with options that name its state and configuration. A
/// command such as `mcp` must follow.
#[derive(Debug, Clone)]
pub(super) struct Program {
    words: Vec<String>,
}

/// A configuration file, and the entries to add to it.
#[derive(Clone)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// The file must be in one of these folders, after all links are followed.
    pub(super) within: Vec<PathBuf>,
    pub(super) wanted: WantedSetup,
}

#[derive(Clone)]
pub(super) enum WantedSetup {
    /// Entries, as a JSON object.
    Json(String),
    /// The entry of the server in Codex's TOML, as the words of its command.
    Toml(Vec<String>),
}

impl WantedSetup {
    /// Returns whether the server is among the entries.
    pub(super) fn has_server(&self) -> bool {
        match self {
            Self::Json(entries) => entries.contains("\"mcpServers\""),
            Self::Toml(_) => true,
        }
    }
}

impl KnownAgent {
    pub(super) const ALL: [Self; 4] = [Self::Claude, Self::Codex, Self::Gemini, Self::OpenCode];

    /// Returns the agent's name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// Returns the agent's name as people know it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "OpenCode",
        }
    }

    /// Returns the events for which the agent gets hooks.
    pub(super) fn events(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "SessionStart",
                "UserPromptSubmit",
                "PreCompact",
                "PermissionRequest",
                "Stop",
                "SessionEnd",
            ],
            Self::Codex => {
                &["SessionStart", "UserPromptSubmit", "PreCompact", "PermissionRequest", "Stop"]
            }
            Self::Gemini => &[
                "SessionStart",
                "BeforeAgent",
                "PreCompress",
                "Notification",
                "AfterAgent",
                "SessionEnd",
            ],
            Self::OpenCode => &[],
        }
    }

    /// Returns whether the agent's program is in a folder of `PATH`, or the user has a folder for
    /// the agent's configuration.
    pub(super) fn is_installed(self, home: &Path) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |folder: PathBuf| folder.join(self.name()).is_file();
        std::env::split_paths(&path).any(is_there) || self.folder(&SetupPlace::User, home).is_dir()
    }

    /// Returns a text about what the user must still do or know after the set-up; empty if there is
    /// nothing.
    pub(super) fn remainder(self, place: &SetupPlace) -> &'static str {
        match (self, place) {
            (Self::Codex, SetupPlace::User) => {
                "Codex runs new hooks only once you trust them: enter /hooks in Codex."
            }
            (Self::Codex, SetupPlace::Project(_)) => {
                "Codex reads these entries once you trust the project, and runs the hooks once you \
                 trust them: enter /hooks in Codex."
            }
            (Self::Claude, SetupPlace::Project(_)) => {
                "Claude Code asks whether to use the server when it next starts in this project."
            }
            (Self::Gemini, SetupPlace::Project(_)) => {
                "Gemini CLI reads these entries once you trust the folder."
            }
            (Self::OpenCode, _) => {
                "OpenCode has no hooks: its model calls the tool `context` to get what you mark."
            }
            (Self::Claude | Self::Gemini, SetupPlace::User) => "",
        }
    }

    /// Returns the agent's configuration files at a place, with the entries that make the agent
    /// start `program`. `home` is the user's home folder.
    pub(super) fn files(
        self,
        place: &SetupPlace,
        home: &Path,
        program: &Program,
    ) -> Vec<ConfigFile> {
        let folder = self.folder(place, home);
        let within = match place {
            SetupPlace::User => vec![home.to_owned(), folder.clone()],
            SetupPlace::Project(root) => vec![root.clone()],
        };
        let file = |path: PathBuf, wanted| ConfigFile { path, within: within.clone(), wanted };
        let json = |parts: &[String]| WantedSetup::Json(format!("{{{}}}", parts.join(", ")));
        let hooks = || self.hooks(program);
        match self {
            Self::Claude => vec![
                file(claude_servers(place, home), json(&[program.server(STDIO)])),
                file(folder.join("settings.json"), json(&[hooks()])),
            ],
            Self::Codex => vec![
                file(folder.join("config.toml"), WantedSetup::Toml(program.with(&["mcp"]))),
                file(folder.join("hooks.json"), json(&[hooks()])),
            ],
            Self::Gemini => {
                vec![file(folder.join("settings.json"), json(&[program.server(""), hooks()]))]
            }
            Self::OpenCode => {
                let names = ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name));
                let there = names.iter().find(|path| path.symlink_metadata().is_ok());
                let path = there.unwrap_or(&names[1]).clone();
                vec![file(path, json(&[program.opencode_server()]))]
            }
        }
    }

    /// Returns the folder of the agent's configuration.
    pub(super) fn folder(self, place: &SetupPlace, home: &Path) -> PathBuf {
        match (self, place) {
            (Self::Claude, SetupPlace::User) => claude_folder(home),
            (Self::Codex, SetupPlace::User) => codex_folder(home),
            (Self::Gemini, SetupPlace::User) => named_or("GEMINI_CLI_HOME", home).join(".gemini"),
            (Self::OpenCode, SetupPlace::User) => {
                named_or("XDG_CONFIG_HOME", home.join(".config")).join("opencode")
            }
            (Self::OpenCode, SetupPlace::Project(root)) => root.clone(),
            (agent, SetupPlace::Project(root)) => root.join(format!(".{}", agent.name())),
        }
    }

    fn hooks(self, program: &Program) -> String {
        let timeout = if self == Self::Gemini { HOOK_SECONDS * 1000 } else { HOOK_SECONDS };
        let one = |event: &&str| {
            let command = quoted(&program.hook(self, event));
            format!(
                r#""{event}": [{{"hooks": [{{"type": "command", "command": {command}, "timeout": {timeout}}}]}}]"#
            )
        };
        let all: Vec<_> = self.events().iter().map(one).collect();
        format!(r#""hooks": {{{}}}"#, all.join(", "))
    }
}

impl Program {
    /// Creates the command line of the running program: the path by which it was called, then
    /// `options`.
    ///
    /// # Errors
    /// Fails if the path is not found, or if the path or an option is not UTF-8, which
    /// configuration files must be.
    pub(super) fn running(options: Vec<PathBuf>) -> anyhow::Result<Self> {
        let program = called_path().context("cannot find the path of this program")?;
        let words = std::iter::once(program).chain(options).map(utf8);
        Ok(Self { words: words.collect::<anyhow::Result<_>>()? })
    }

    /// Returns the command line with `path` as the path of the program. Returns it unchanged if
    /// `path` is relative, or leads to another program.
    pub(super) fn through(&self, path: &str) -> Self {
        let mut words = self.words.clone();
        if Path::new(path).is_absolute() && is_same_file(Path::new(path), Path::new(&words[0])) {
            path.clone_into(&mut words[0]);
        }
        Self { words }
    }

    /// Returns the words of the command line, followed by `more`.
    pub(super) fn with(&self, more: &[&str]) -> Vec<String> {
        let more = more.iter().map(|word| (*word).to_owned());
        self.words.iter().cloned().chain(more).collect()
    }

    /// Returns the command that runs a hook, as a line for a shell.
    pub(super) fn hook(&self, agent: KnownAgent, event: &str) -> String {
        shell_line(&self.with(&["hook", agent.name(), event]))
    }

    fn server(&self, kind: &str) -> String {
        format!(r#""mcpServers": {{"{ENTRY}": {}}}"#, self.entry(kind))
    }

    /// Returns the entry of the server, as JSON.
    pub(super) fn entry(&self, kind: &str) -> String {
        let words: Vec<_> = self.with(&["mcp"]).iter().map(|word| quoted(word)).collect();
        let (program, args) = (&words[0], words[1..].join(", "));
        format!(r#"{{{kind}"command": {program}, "args": [{args}]}}"#)
    }

    fn opencode_server(&self) -> String {
        let words = Vec::from_iter(self.with(&["mcp"]).iter().map(|word| quoted(word))).join(", ");
        format!(r#""mcp": {{"{ENTRY}": {{"type": "local", "command": [{words}]}}}}"#)
    }
}

/// Returns the path by which this program was called. Links in the path are kept, since the files
/// that they lead to may move with the next version. If neither the name of the program nor `PATH`
/// gives an absolute path, returns the path of the running file.
fn called_path() -> std::io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let called = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(PathBuf::new()).chain(std::env::split_paths(&path));
    let mut places = folders.map(|folder| folder.join(&called));
    let found = places.find(|place| place.is_absolute() && is_same_file(place, &running));
    Ok(found.unwrap_or(running))
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Formats words as a line for a shell.
pub(super) fn shell_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:=,@%".contains(c);
    let word = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the file that lists the servers that Claude Code starts.
fn claude_servers(place: &SetupPlace, home: &Path) -> PathBuf {
    match place {
        SetupPlace::User => named_or("CLAUDE_CONFIG_DIR", home).join(".claude.json"),
        SetupPlace::Project(root) => root.join(".mcp.json"),
    }
}
