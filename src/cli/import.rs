//! `contexture import`: imports the sessions that other agents recorded.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::call::Call;
use super::serve::log_to_stderr;
use super::setup::{claude_folder, codex_folder};
use super::{Common, current_folder, say, utf8};
use crate::files::project_root;
use crate::value::Value;
use crate::wording::counted;

/// Import the sessions that other agents recorded
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture import ~/.claude/projects --dry-run\n  contexture import \
    .specstory/history\n  contexture import\n\nReads JSON lines of Claude Code, rollouts of Codex, \
    Markdown of SpecStory and what\ncontexture acp records. Importing again adds only what is \
    new. Without a FILE, says where agents\nkeep their sessions."
)]
pub(super) struct Import {
    /// Files to import, or folders with such files
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
struct Answer {
    files: Vec<Shown>,
    sessions: u64,
    messages: u64,
    other_files: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Shown {
    path: String,
    state: String,
    session: Option<String>,
    messages: u64,
    tokens: u64,
    left_out: Option<Vec<LeftOut>>,
    error: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LeftOut {
    kind: String,
    reason: String,
    count: u64,
    first_line: u64,
}

impl Import {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        if self.files.is_empty() {
            return say(&places()?).map(|()| true);
        }
        let setup = common.setup()?;
        log_to_stderr();
        let answer = Call::of("import-sessions").result(&setup, self.params()?)?;
        let answer: Answer = answer
            .decode()
            .map_err(|error| anyhow::anyhow!("the server's answer is not valid: {error}"))?;
        let is_whole = answer.files.iter().all(|file| file.error.is_none());
        say(&self.shown(&answer))?;
        Ok(is_whole)
    }

    fn params(&self) -> anyhow::Result<Value> {
        let paths =
            self.files.iter().map(|path| named(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut params = vec![("paths".into(), Value::List(paths))];
        if self.dry_run {
            params.push(("dry-run".into(), Value::Bool(true)));
        }
        if let Some(project) = &self.project {
            params.push(("project".into(), named(project)?));
        }
        Ok(Value::Map(params))
    }

    fn shown(&self, answer: &Answer) -> String {
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
                let LeftOut { kind, reason, count, first_line } = entry;
                let _ = writeln!(
                    text,
                    "           left out or changed: {count} × {kind} ({reason}; first on line \
                     {first_line})"
                );
            }
        }
        let done = if self.dry_run { "Would import" } else { "Imported" };
        let Answer { sessions, messages, other_files, .. } = answer;
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

/// Returns a text that lists the folders where agents keep their sessions, and says which of these
/// folders do not exist.
fn places() -> anyhow::Result<String> {
    let home = std::env::home_dir().unwrap_or_default();
    let here = current_folder()?;
    let project = project_root(&here).unwrap_or(here);
    let known = [
        ("Claude Code", claude_folder(&home).join("projects")),
        ("Codex", codex_folder(&home).join("sessions")),
        ("SpecStory", project.join(".specstory/history")),
    ];
    let mut text = "Agents keep their sessions here; name a file or folder to import:\n".to_owned();
    for (agent, path) in known {
        let note = if path.is_dir() { "" } else { " (does not exist)" };
        let path = crate::visible::visible_path(&path);
        let _ = writeln!(text, "  {agent:11}  {path}{note}");
    }
    Ok(text)
}
