//! `contexture hub`: shares projects with others on a PostgreSQL database.

use anyhow::{anyhow, bail};

use super::call::CallCommand;
use super::serve::log_to_stderr;
use super::{Common, current_folder, say, utf8};
use crate::hub::{EVERYBODY, HubTask};
use crate::sync::{GivenChanges, HubStatus, PROTOCOL, SharedProject};
use crate::value::Value;
use crate::visible::{visible, visible_lines};
use crate::wording::counted;

/// Share projects with others on a PostgreSQL database
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture hub\n  contexture hub setup\n  contexture hub share\n  \
    contexture hub share --with team --yes\n  contexture hub unshare\n\nThe configuration file names \
    the database: [hub] url = \"postgres://ann@db.example.org/team\".\nNothing is shared until you \
    share a project. Its messages and memories are shared then, also\nlater ones; results of tools \
    and texts that look like secrets are not."
)]
pub(super) struct OnHub {
    /// What to do: say how the hub is by default
    #[arg(value_enum, default_value = "status")]
    what: HubCommand,
    /// Role of the database whose members may read; everybody who may use the hub by default
    #[arg(long, value_name = "ROLE")]
    with: Option<String>,
    /// Share, after you have seen what would be shared
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HubCommand {
    /// Say how the hub is, and what you share
    Status,
    /// Make the tables of a hub in the database
    Setup,
    /// Share the project of this folder; without --yes, say what would be shared
    Share,
    /// Share it no longer, and take back what this machine shared of it
    Unshare,
    /// Share what is new now, not in a while
    Push,
    /// Take back everything that you shared from any machine
    Leave,
}

impl OnHub {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        if setup.state.is_none() {
            bail!("--ephemeral keeps no state to share; omit the option");
        }
        log_to_stderr();
        let task = match self.what {
            HubCommand::Status => HubTask::Status,
            HubCommand::Setup => HubTask::SetUp,
            HubCommand::Share if self.yes => HubTask::Share,
            HubCommand::Share => HubTask::Preview,
            HubCommand::Unshare => HubTask::Unshare,
            HubCommand::Push => HubTask::Push,
            HubCommand::Leave => HubTask::Leave,
        };
        let project = utf8(current_folder()?)?;
        let mut params = vec![
            ("protocol".into(), Value::of(&PROTOCOL)),
            ("hub".into(), Value::of(&task)),
            ("project".into(), Value::Str(project)),
        ];
        params.extend(self.with.map(|readers| ("readers".into(), Value::Str(readers))));
        let answer = CallCommand::in_json("exchange").result(&setup, Value::Map(params))?;
        let given: Result<GivenChanges, _> = answer.decode();
        let given = given.map_err(|error| anyhow!("the server's answer is not valid: {error}"))?;
        let shown = *given.hub.unwrap_or_default();
        say(&visible_lines(&told(task, &shown)))?;
        Ok(shown.problem.is_none())
    }
}

/// Says how a hub is, in lines.
fn told(task: HubTask, shown: &HubStatus) -> String {
    let mut lines = vec![match (&shown.user, &shown.owner) {
        (Some(user), Some(owner)) => format!(
            "{}: you are {}; {} owns the tables and can read everything",
            shown.address,
            visible(user),
            visible(owner)
        ),
        _ => shown.address.clone(),
    }];
    lines.extend(shown.problem.iter().map(|why| format!("Not now: {}", visible(why))));
    let of = |project: &SharedProject| {
        let SharedProject { sessions, messages, memories, held, .. } = project;
        let readers = match &*project.readers {
            EVERYBODY => "everybody who may use the hub",
            role => role,
        };
        format!(
            "{} ({}), {}, {} and {}, for {readers}; {} held back",
            visible(&project.project),
            visible(&project.identity),
            counted(*sessions, "session"),
            counted(*messages, "message"),
            counted(*memories, "memory"),
            counted(*held, "text")
        )
    };
    let verb = match (task, &shown.problem) {
        (HubTask::Preview, _) => "Would share",
        (HubTask::Share | HubTask::Push, Some(_)) => "To be shared",
        _ => "Shared",
    };
    lines.extend(shown.projects.iter().map(|project| format!("{verb}: {}", of(project))));
    if shown.projects.is_empty() {
        lines.push("No project is shared.".to_owned());
    }
    lines.extend(shown.held.iter().map(|held| format!("Held back: {}", visible(held))));
    if task == HubTask::Preview {
        lines.push("Nothing was shared. Run it again with --yes to share this.".to_owned());
    }
    lines.join("\n") + "\n"
}
