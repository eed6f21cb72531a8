//! `contexture backup` and `contexture restore`: the state as one file, and back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::call::Call;
use super::serve::log_to_stderr;
use super::{Common, say};
use crate::server::folder::{FolderError, Owned};
use crate::store::recovery;
use crate::value::Value;
use crate::visible::visible_path;

/// Write all of the state into one file, while the server runs or not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture backup ~/contexture-backup.db\n\nThe file is read \
    back before the program ends. It is an SQLite database with a line behind it\nthat tells its \
    hash, and only you may read it.")]
pub(super) struct Backup {
    /// The file to write
    file: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

/// Put a backup in the place of the state.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  contexture restore ~/contexture-backup.db\n\nThe state as it \
    was is kept in the folder `damaged` of the state folder. Ids go on where they\nwere. The server \
    must not run.")]
pub(super) struct Restore {
    /// The backup
    file: PathBuf,
}

impl Backup {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        log_to_stderr();
        if std::fs::symlink_metadata(&self.file).is_ok() && !self.force {
            bail!("{} is there already; give another name, or --force", visible_path(&self.file));
        }
        let made = match Call::of("backup").result(&setup, Value::Nil)? {
            Ok(made) => made,
            Err(said) => bail!("{said}"),
        };
        let Some(Value::Str(path)) = made.get("path") else {
            bail!("the server did not say where the backup is");
        };
        let path = PathBuf::from(path);
        let moved = move_away(&path, &self.file);
        let _ = std::fs::remove_file(&path);
        moved.with_context(|| format!("cannot write {}", visible_path(&self.file)))?;
        let bytes = std::fs::metadata(&self.file)?.len();
        say(&format!(
            "{} holds the state, {bytes} bytes, and reads well\n",
            visible_path(&self.file)
        ))?;
        Ok(true)
    }
}

impl Restore {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        let folder = setup.state.context("--ephemeral keeps no state to restore")?;
        let _owned = own(&folder)?;
        let kept = recovery::restore(&folder, &self.file)?;
        say(&format!(
            "{} is the state now; what was there before is kept in {}\n",
            visible_path(&self.file),
            visible_path(&kept)
        ))?;
        Ok(true)
    }
}

/// Takes the folder for a command that needs the server to be gone.
pub(super) fn own(folder: &Path) -> anyhow::Result<Owned> {
    match Owned::take(folder) {
        Err(error @ FolderError::Taken { .. }) => {
            let advice = "stop it with `contexture call shutdown`, and do this again";
            Err(anyhow::Error::new(error).context(advice))
        }
        owned => Ok(owned?),
    }
}

/// Moves a backup, across file systems too; `to` is there whole or not at all.
fn move_away(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut name = to.as_os_str().to_owned();
    name.push(".new");
    let draft = PathBuf::from(name);
    let copied = copy(from, &draft).map_err(anyhow::Error::from);
    let checked = copied.and_then(|()| Ok(recovery::backup::check(&draft)?));
    let moved = checked.and_then(|()| Ok(std::fs::rename(&draft, to)?));
    if moved.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    moved
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut draft = options.write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut File::open(from)?, &mut draft)?;
    draft.sync_all()
}
