//! `contexture backup` and `contexture restore`: write the state to one file, and restore the state
//! from such a file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::call::CallCommand;
use super::serve::log_to_stderr;
use super::{Common, say};
use crate::store::ownership::{FolderError, Owned};
use crate::store::recovery;
use crate::value::Value;
use crate::visible::visible_path;

/// Write the state to one file, whether or not a server is running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture backup ~/contexture-backup.db\n\nThe program \
    reads the file back to check it. The file is an SQLite database, followed by\nthe list of \
    trusted projects and a line with their hash. Only you can read it. It has no\nsecret, token or \
    configuration.")]
pub(super) struct BackupCommand {
    /// The file to write
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Replace the state with a backup.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture restore ~/contexture-backup.db\n\nThe previous \
    state is kept in the folder `damaged` of the state folder. Ids that were\nused before are \
    not used again. The projects that were trusted when the backup was made\nare trusted again. \
    The server must not be running.")]
pub(super) struct RestoreCommand {
    /// The backup to restore
    file: PathBuf,
}

impl BackupCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let setup = common.setup()?;
        log_to_stderr();
        self.check(setup.state.as_deref())?;
        let made = CallCommand::of("backup").result(&setup, Value::Nil)?;
        let Some(Value::Str(path)) = made.get("path") else {
            bail!("the server did not return the path of the backup");
        };
        let path = PathBuf::from(path);
        let copied = recovery::backup::copy(&path, &self.file);
        let _ = std::fs::remove_file(&path);
        copied.with_context(|| format!("cannot write {}", visible_path(&self.file)))?;
        let written = std::fs::metadata(&self.file);
        let written =
            written.with_context(|| format!("cannot find {}", visible_path(&self.file)))?;
        let bytes = written.len();
        say(&format!(
            "wrote the state to {} ({bytes} bytes) and checked it\n",
            visible_path(&self.file)
        ))
    }

    /// Fails if the file must not be written: it would replace another file that was not meant, a
    /// device or pipe, or a part of the state itself.
    fn check(&self, state: Option<&Path>) -> anyhow::Result<()> {
        let name = visible_path(&self.file);
        if let Ok(there) = std::fs::symlink_metadata(&self.file) {
            ensure!(self.force, "{name} already exists; choose another name or pass --force");
            let is_file = there.is_file() || there.is_symlink();
            ensure!(is_file, "{name} is not a regular file; choose another name");
        }
        let folder =
            std::path::absolute(&self.file)?.parent().and_then(|it| it.canonicalize().ok());
        let state = state.and_then(|state| state.canonicalize().ok());
        let is_inside = folder.zip(state).is_some_and(|(folder, state)| folder.starts_with(state));
        ensure!(!is_inside, "{name} is in the state folder itself; choose another folder");
        Ok(())
    }
}

impl RestoreCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        let setup = common.setup()?;
        let folder = setup.state.context(
            "--ephemeral keeps no state, so there is nothing to restore; omit the option",
        )?;
        let _owned = own(&folder)?;
        let kept = recovery::restore(&folder, &self.file)?;
        say(&format!(
            "restored the state from {}; the previous state is kept in {}\n",
            visible_path(&self.file),
            visible_path(&kept)
        ))
    }
}

/// Takes ownership of the state folder, for a command that must not run while a server is running.
pub(super) fn own(folder: &Path) -> anyhow::Result<Owned> {
    match Owned::take(folder) {
        Err(error @ FolderError::Taken { .. }) => {
            bail!("{error}; stop the server with `contexture call shutdown` and try again")
        }
        owned => Ok(owned?),
    }
}
