//! `contexture map`: prints the map of a project.

use std::path::PathBuf;

use anyhow::Context;

use super::call::CallCommand;
use super::{Common, complain, current_folder, say, utf8};
use crate::config::number;
use crate::files::project_root;
use crate::value::Value;

/// Print the map of a project: the files and definitions that matter for a task
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture map\n  contexture map --query \"fix the parser\" --focus \
    src/parse.rs --max-tokens 2000\n\nEach file is on a line of its own, by its path from the \
    project's folder. Lines that begin with a space are definitions of the file above. The running \
    server answers, or one that is started for this call."
)]
pub(super) struct MapOf {
    /// Folder of the project; by default, that of the project around the current folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Maximum number of tokens
    #[arg(long, value_name = "N", value_parser = number::<i64>)]
    max_tokens: Option<i64>,
    /// What the map is for: a question, a task, or an error
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    /// Files at hand, which are not in the map themselves
    #[arg(long, value_name = "PATH", num_args = 1..)]
    focus: Vec<PathBuf>,
}

impl MapOf {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        let project = match self.folder {
            Some(folder) => std::path::absolute(&folder).with_context(|| format!("{folder:?}"))?,
            None => {
                let here = current_folder()?;
                project_root(&here).unwrap_or(here)
            }
        };
        let mut params = vec![("project".into(), Value::Str(utf8(project)?))];
        if let Some(tokens) = self.max_tokens {
            params.push(("max-tokens".into(), Value::Int(tokens)));
        }
        if let Some(query) = self.query {
            params.push(("query".into(), Value::Str(query)));
        }
        if !self.focus.is_empty() {
            let absolute = |path: PathBuf| Ok(Value::Str(utf8(std::path::absolute(path)?)?));
            let focus: anyhow::Result<_> = self.focus.into_iter().map(absolute).collect();
            params.push(("focus".into(), Value::List(focus?)));
        }
        let map = CallCommand::of("repo-map").result(&setup, Value::Map(params))?;
        let text = map.get("text").and_then(Value::as_text).unwrap_or_default();
        if map.get("total-files") == Some(&Value::Int(0)) {
            complain("contexture: the folder has no files that are not ignored");
            return Ok(false);
        }
        say(text)?;
        Ok(true)
    }
}
