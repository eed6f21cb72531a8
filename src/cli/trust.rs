//! `contexture trust`: manages the list of projects whose own templates are used.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;

use super::call::CallCommand;
use super::serve::log_to_stderr;
use super::{Common, current_folder, say, utf8};
use crate::files::project_root;
use crate::value::Value;

/// Trust a project, so that its own templates are used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture trust ~/src/parser\n  contexture trust --revoke \
    ~/src/parser\n  contexture trust --list\n\nTrust applies to the folder and to its Git remote, if it \
    has one. A project that is moved, or whose\nremote changes, must be trusted again.")]
pub(super) struct TrustCommand {
    /// Folder of the project; defaults to the project of the current folder
    dir: Option<PathBuf>,
    /// Stop trusting the project
    #[arg(long)]
    revoke: bool,
    /// List the trusted projects
    #[arg(long, conflicts_with_all = ["revoke", "dir"])]
    list: bool,
}

impl TrustCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let setup = common.setup()?;
        if setup.state.is_none() {
            bail!("the list of trusted projects is kept with the state; omit --ephemeral");
        }
        log_to_stderr();
        let params = if self.list { Value::Nil } else { self.project(!self.revoke)? };
        say(&shown(self.list, &CallCommand::of("trust-project").result(&setup, params)?))
    }

    fn project(&self, trusted: bool) -> anyhow::Result<Value> {
        let here = current_folder()?;
        let folder = match &self.dir {
            Some(folder) => here.join(folder),
            None => project_root(&here).unwrap_or(here),
        };
        let folder = Value::Str(utf8(folder)?);
        Ok(Value::Map(vec![("project".into(), folder), ("trusted".into(), Value::Bool(trusted))]))
    }
}

fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer.get(name).and_then(Value::as_text).unwrap_or_default()
}

/// Formats the answer as text for the user.
fn shown(is_list: bool, answer: &Value) -> String {
    let project = text(answer, "project");
    match (answer.get("was-trusted"), answer) {
        (None, Value::List(projects)) if is_list && !projects.is_empty() => {
            projects.iter().fold(String::new(), |mut all, one| {
                let _ = writeln!(all, "{}{}{}", text(one, "project"), remote(one), standing(one));
                all
            })
        }
        _ if is_list => "no project is trusted\n".to_owned(),
        (Some(Value::Bool(true)), _) => format!("{project} is no longer trusted\n"),
        (Some(_), _) => format!("{project} was not trusted\n"),
        (None, _) => {
            let own = match answer.get("templates") {
                Some(Value::List(names)) if !names.is_empty() => {
                    match &*names.iter().filter_map(Value::as_text).collect::<Vec<_>>() {
                        [one] => format!("its template {one} is used"),
                        several => format!("its templates {} are used", several.join(", ")),
                    }
                }
                _ => "it has no templates yet".to_owned(),
            };
            format!("{project} is trusted{}; {own}\n", remote(answer))
        }
    }
}

fn remote(answer: &Value) -> String {
    match text(answer, "remote") {
        "" => String::new(),
        remote => format!(" ({remote})"),
    }
}

fn standing(answer: &Value) -> &'static str {
    match text(answer, "standing") {
        "gone" => ": the folder is gone",
        "other" => ": not trusted any more, since its Git remote has changed or cannot be read",
        _ => "",
    }
}
