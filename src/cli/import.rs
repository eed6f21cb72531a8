//! `contexture import`: imports the sessions that other agents recorded.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::call::CallCommand;
use super::serve::log_to_stderr;
use super::{Common, current_folder, say, utf8};
use crate::files::{AgentPlaces, places, project_root};
use crate::value::Value;
use crate::wording::counted;

/// Import the sessions that other agents recorded
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture import claude --dry-run\n  contexture import \
    .specstory/history\n  contexture import\n\nReads the sessions of aider, Claude Code, Cline, \
    Codex, Copilot CLI, Cursor, Gemini CLI, OpenClaw,\nOpenCode, pi, Qwen Code, Roo Code and \
    SpecStory, and what contexture acp records. Importing again\nadds only what is new. Without a \
    FILE, says where agents keep their sessions. The name of an agent\nthere stands for these \
    places.")]
pub(super) struct ImportCommand {
    /// Files to import, folders with such files, or the name of an agent
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only report what would be imported
    #[arg(long)]
    dry_run: bool,
    /// Import only sessions of the project in this folder
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// The members of the result of `import-sessions` that the command shows.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ImportAnswer {
    files: Vec<ImportShown>,
    sessions: u64,
    messages: u64,
    other_files: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ImportShown {
    path: String,
    state: String,
    session: Option<String>,
    messages: u64,
    tokens: u64,
    left_out: Option<Vec<ImportLeftOut>>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ImportLeftOut {
    kind: String,
    reason: String,
    count: u64,
    first_line: u64,
}

impl ImportCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        if self.files.is_empty() {
            return say(&listed()?).map(|()| true);
        }
        let setup = common.setup()?;
        log_to_stderr();
        let answer = CallCommand::of("import-sessions").result(&setup, self.params()?)?;
        let answer: ImportAnswer = answer
            .decode()
            .map_err(|error| anyhow::anyhow!("the server's answer is not valid: {error}"))?;
        let is_whole = answer.files.iter().all(|file| file.error.is_none());
        say(&self.shown(&answer))?;
        Ok(is_whole)
    }

    fn params(&self) -> anyhow::Result<Value> {
        let mut paths = Vec::new();
        for path in &self.files {
            for path in meant(path)? {
                paths.push(named(&path)?);
            }
        }
        let mut params = vec![("paths".into(), Value::List(paths))];
        if self.dry_run {
            params.push(("dry-run".into(), Value::Bool(true)));
        }
        if let Some(project) = &self.project {
            params.push(("project".into(), named(project)?));
        }
        Ok(Value::Map(params))
    }

    fn shown(&self, answer: &ImportAnswer) -> String {
        let mut text = String::new();
        for file in &answer.files {
            let name = file.session.as_deref().or(file.error.as_deref()).unwrap_or("no messages");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:9}  {name}\n           {}", file.state, file.path);
            if file.messages > 0 {
                let messages = counted(file.messages, "message");
                let tokens = counted(file.tokens, "token");
                let _ = writeln!(text, "           {messages}, {tokens}");
            }
            for entry in file.left_out.iter().flatten() {
                let ImportLeftOut { kind, reason, count, first_line } = entry;
                let _ = writeln!(
                    text,
                    "           left out or changed: {count} × {kind} ({reason}; first on line \
                     {first_line})"
                );
            }
        }
        let done = if self.dry_run { "Would import" } else { "Imported" };
        let ImportAnswer { sessions, messages, other_files, .. } = answer;
        let messages = counted(*messages, "message");
        let _ = write!(text, "{done} {messages}; new sessions: {sessions}");
        if *other_files > 0 {
            let _ = write!(text, "; files left out: {other_files}");
        }
        text.push_str(".\n");
        text
    }
}

fn named(path: &Path) -> anyhow::Result<Value> {
    Ok(Value::Str(utf8(current_folder()?.join(path))?))
}

/// Returns the places for which an argument stands: those of an agent's sessions that exist, if it
/// is the agent's name and not a file's.
fn meant(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let kept = known()?.into_iter().find(|kept| Path::new(kept.word) == path);
    let Some(kept) = kept.filter(|_| !path.exists()) else { return Ok(vec![path.to_owned()]) };
    let found: Vec<PathBuf> = kept.places.iter().filter(|place| place.exists()).cloned().collect();
    let looked = kept.places.iter().map(|place| crate::visible::visible_path(place).to_string());
    anyhow::ensure!(
        !found.is_empty(),
        "{} keeps no sessions here; looked for {}",
        kept.name,
        looked.collect::<Vec<_>>().join(", ")
    );
    Ok(found)
}

fn known() -> anyhow::Result<Vec<AgentPlaces>> {
    let here = current_folder()?;
    let project = project_root(&here).unwrap_or(here);
    Ok(places(&std::env::home_dir().unwrap_or_default(), &project))
}

/// Returns a text that lists the places where agents keep their sessions. Of several places for one
/// agent, lists those that exist, or else the first.
fn listed() -> anyhow::Result<String> {
    let mut text =
        "Agents keep their sessions here; name an agent, or a file or folder, to import:\n"
            .to_owned();
    for AgentPlaces { word, places, .. } in known()? {
        let exist: Vec<_> = places.iter().filter(|place| place.exists()).collect();
        let note = if exist.is_empty() { " (does not exist)" } else { "" };
        let shown = if exist.is_empty() { places.iter().take(1).collect() } else { exist };
        for path in shown {
            let _ = writeln!(text, "  {word:9}  {}{note}", crate::visible::visible_path(path));
        }
    }
    Ok(text)
}
