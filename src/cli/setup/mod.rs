//! `contexture setup`: adds the server and the hooks to the configuration of an agent, and removes
//! them again.

mod agent;
mod check;
mod edit;
mod entries;
mod file;
mod json;
mod own;
mod plan;
mod record;
mod toml;
mod value;

use std::fmt::Write;

use anyhow::Context;

use self::agent::{KnownAgent, Program, SetupPlace};
pub(super) use self::check::check_agents;
use self::own::AgentCommands;
use self::plan::Plan;
use self::record::Records;
use super::{Common, current_folder, say};
use crate::files::{project_root, true_name};
use crate::visible::{visible_lines, visible_path};

/// Set an agent up: add Contexture's server and hooks to its configuration.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture setup claude --dry-run\n  contexture setup codex\n  \
    contexture setup gemini --project\n  contexture setup opencode --remove\n\nShows what \
    changes in the agent's configuration files, but no other part of them, since they\nmay hold \
    keys. The other parts stay as they are. If the agent is installed and has a command\nfor its \
    servers, that command is shown first and makes its part of the change. Agents start\nthe \
    program by the path with which you run this command; run it again if that path changes."
)]
pub(super) struct SetUp {
    /// The agent
    agent: KnownAgent,
    /// Write into the configuration of the current project instead of yours
    #[arg(long)]
    project: bool,
    /// Take out what an earlier run put in
    #[arg(long)]
    remove: bool,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
}

impl SetUp {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let setup = common.setup()?;
        let records = Records::below(setup.state.as_deref());
        let program = Program::running(common.shared()?)?;
        let place = self.place()?;
        let files = self.agent.files(&place, &setup.folders.home, &program);
        let own = AgentCommands::of(self.agent, &place, &setup.folders.home, &program);
        let plan = |file| Plan::of(file, own.as_ref(), self.remove, &records);
        let mut plans = files.into_iter().map(plan).collect::<anyhow::Result<Vec<_>>>()?;
        let mut shown = String::new();
        for plan in &plans {
            if let Some(asked) = &plan.asked {
                shown += &visible_lines(&asked.shown());
            }
            match &*plan.diff {
                "" => writeln!(shown, "{}: nothing to change", visible_path(&plan.path))?,
                diff => shown += &visible_lines(diff),
            }
        }
        say(&shown)?;
        if self.dry_run {
            return Ok(());
        }
        if self.remove {
            // The folder may have been created with the first file, so the first file is removed
            // last.
            plans.reverse();
        }
        let is_new = !self.remove && plans.iter().any(|plan| !plan.diff.is_empty());
        for plan in plans.iter_mut().filter(|plan| !plan.diff.is_empty()) {
            let named = visible_path(&plan.path).to_string();
            let remark = plan.ask_agent(&records).with_context(|| named.clone())?;
            if !plan.diff.is_empty() {
                plan.carry_out(&records).with_context(|| named.clone())?;
            }
            let remark = if remark.is_empty() { remark } else { format!("; {remark}") };
            say(&format!("{named}: {}{remark}\n", plan.outcome()))?;
        }
        let remainder = self.agent.remainder(&place);
        if is_new && !remainder.is_empty() { say(&format!("{remainder}\n")) } else { Ok(()) }
    }

    fn place(&self) -> anyhow::Result<SetupPlace> {
        if !self.project {
            return Ok(SetupPlace::User);
        }
        let folder = current_folder()?;
        let root = project_root(&true_name(&folder))
            .context("the current folder is not in a project; go to one, or omit --project")?;
        Ok(SetupPlace::Project(root))
    }
}

#[cfg(test)]
mod tests;
