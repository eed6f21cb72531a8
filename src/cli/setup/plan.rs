//! The planned change to one configuration file.

use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::agent::{ConfigFile, WantedSetup};
use super::edit::{Edit, on_plain, without_mark};
use super::file::FoundConfig;
use super::own::{AgentCommand, AgentCommands, Left, compare};
use super::record::{Records, SetupRecord};
use super::{json, toml};
use crate::visible::visible_path;

/// A change to one file. It may be empty.
pub(super) struct Plan {
    pub(super) path: PathBuf,
    /// Readable form of the change; empty if nothing changes.
    pub(super) diff: String,
    /// The agent's own command for the change of its servers, if it has one.
    pub(super) asked: Option<AgentCommand>,
    file: ConfigFile,
    is_removed: bool,
    found: FoundConfig,
    /// Text after the change; `None` if the file is removed.
    after: Option<String>,
    record: SetupRecord,
}

impl Plan {
    /// Plans the change to a file. `own` has the commands of the agent for its servers, if it has any.
    pub(super) fn of(
        file: ConfigFile,
        own: Option<&AgentCommands>,
        is_removed: bool,
        records: &Records,
    ) -> anyhow::Result<Self> {
        let ConfigFile { path, within, wanted } = &file;
        let path = path.clone();
        let named = || visible_path(&path);
        let found = FoundConfig::read(&path, within).with_context(named)?;
        let record = records.read(&path).unwrap_or_default();
        let text = found.text.clone().unwrap_or_default();
        let made = match is_removed {
            true => TextChange::out(wanted, &text, record),
            false => TextChange::into(wanted, &text, record, found.text.is_none()),
        };
        let TextChange { edit, after, record } =
            made.map_err(|wrong| anyhow!("{}: {wrong}; nothing was changed", visible_path(&path)))?;
        let known = wanted.lines();
        let is_known = |line: &str| known.iter().any(|known| known == line.trim_end_matches(','));
        let mut diff = edit.shown(&text, is_known);
        if !diff.is_empty() {
            let nothing = || "/dev/null".to_owned();
            let old = found.text.as_ref().map_or_else(nothing, |_| named());
            let new = after.as_ref().map_or_else(nothing, |_| named());
            diff = format!("--- {old}\n+++ {new}\n{diff}");
        }
        let asked = own.filter(|_| !diff.is_empty() && wanted.has_server());
        let asked = asked.and_then(|own| own.command(wanted, &text, is_removed));
        Ok(Self { path, diff, asked, file, is_removed, found, after, record })
    }

    /// Lets the agent's own command, if it has one, make the change of its servers, and compares
    /// the file before and after. The rest of the change remains to be made. If the command changed
    /// only the layout besides our entry, the layout is restored. If it changed more than that, the
    /// whole file is restored. Returns a remark for the user, which may be empty.
    pub(super) fn ask_agent(&mut self, records: &Records) -> anyhow::Result<String> {
        let Some(asked) = self.asked.take() else { return Ok(String::new()) };
        let ran = asked.run();
        let now = FoundConfig::read(&self.path, &self.file.within)?;
        let text = |found: &FoundConfig| found.text.clone().unwrap_or_default();
        let (before, after) = (text(&self.found), text(&now));
        let left = compare(&self.file.wanted, &before, &after, self.is_removed);
        self.found = now;
        let name = asked.name;
        Ok(match (ran, left) {
            (Err(why), _) => format!("the command of {name} did not work: {why}; done without it"),
            (Ok(()), Left::Wrong) => {
                format!("the command of {name} did something else; its change was replaced")
            }
            (Ok(()), Left::OnlyOurs) => String::new(),
            (Ok(()), Left::More) => {
                *self = Self::of(self.file.clone(), None, self.is_removed, records)?;
                format!("{name} also set members of its own, which stay")
            }
        })
    }

    pub(super) fn carry_out(&self, records: &Records) -> anyhow::Result<()> {
        let Some(after) = &self.after else {
            self.found.delete(self.record.folders)?;
            return records.remove(&self.path);
        };
        let mut record = self.record.clone();
        record.folders += self.found.write(after)?;
        match record.is_nothing() {
            true => records.remove(&self.path),
            false => records.write(&self.path, &record),
        }
    }

    pub(super) fn outcome(&self) -> &'static str {
        if self.after.is_some() { "written" } else { "removed, since nothing else was in it" }
    }
}

/// The change to the text of a file.
struct TextChange {
    edit: Edit,
    after: Option<String>,
    record: SetupRecord,
}

impl TextChange {
    /// Creates the change that adds the missing entries. If the text before any earlier set-up can
    /// be restored exactly, the record of the change leads back to that text.
    fn into(
        wanted: &WantedSetup,
        text: &str,
        mut record: SetupRecord,
        is_new: bool,
    ) -> Result<Self, String> {
        let edit = wanted.add(text)?;
        let after = applied(&edit, text)?;
        let earlier = record.undo(text).and_then(|undo| undo.apply(text));
        let before = earlier.as_deref().unwrap_or(text);
        let whole = wanted.add(before)?;
        let is_exact = whole.only_adds()
            && whole.apply(before).as_deref() == Some(&*after)
            && wanted.remove(before)?.is_empty();
        match is_exact {
            true => record.note(before, &whole, &after),
            false => record.forget(),
        }
        record.is_made |= is_new;
        Ok(Self { edit, after: Some(after), record })
    }

    /// Creates the change that removes our entries. Removes the whole file if the set-up created it
    /// and nothing else is in it.
    fn out(wanted: &WantedSetup, text: &str, record: SetupRecord) -> Result<Self, String> {
        let edit = match record.undo(text) {
            Some(edit) => edit.clone(),
            None => wanted.remove(text)?,
        };
        let after = applied(&edit, text)?;
        Ok(match record.is_made && json::is_blank(without_mark(&after)) {
            true => Self { edit, after: None, record },
            false => Self { edit, after: Some(after), record: SetupRecord::default() },
        })
    }
}

fn applied(edit: &Edit, text: &str) -> Result<String, String> {
    edit.apply(text).ok_or_else(|| "the change does not fit the file".to_owned())
}

impl WantedSetup {
    fn add(&self, text: &str) -> Result<Edit, String> {
        match self {
            Self::Json(wanted) => on_plain(text, |text| json::add(text, wanted)),
            Self::Toml(words) => on_plain(text, |text| toml::add(text, words)),
        }
    }

    fn remove(&self, text: &str) -> Result<Edit, String> {
        match self {
            Self::Json(wanted) => on_plain(text, |text| json::remove(text, wanted)),
            Self::Toml(words) => on_plain(text, |text| toml::remove(text, words)),
        }
    }

    /// Returns the lines of our entries, which may be shown to the user.
    fn lines(&self) -> Vec<String> {
        match self {
            Self::Json(wanted) => json::lines(wanted),
            Self::Toml(words) => toml::block("", words).lines().map(str::to_owned).collect(),
        }
    }
}
