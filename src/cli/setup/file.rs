//! The configuration file of an agent: checked when it is read, and replaced as a whole when it is
//! written. Its mode stays the same.

use std::fs::{Metadata, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::visible::visible_path;
use crate::whole_file::{create, read, read_text};

/// Maximum size of a configuration file, in bytes.
const LARGEST: u64 = 64 << 20;
/// Mode of a new file. Only the user may read it, since keys may be added later.
const NEW_MODE: u32 = 0o600;

/// A configuration file as it was read.
pub(super) struct FoundConfig {
    /// Path with all links resolved.
    path: PathBuf,
    /// Text of the file; `None` if there is no such file.
    pub(super) text: Option<String>,
    mode: u32,
}

impl FoundConfig {
    /// Reads the file at `path`, which must be in one of the folders `within` after all links are
    /// followed.
    pub(super) fn read(path: &Path, within: &[PathBuf]) -> anyhow::Result<Self> {
        let (path, is_there) = resolve(path)?;
        let is_in = |folder: &PathBuf| resolve(folder).is_ok_and(|(it, _)| path.starts_with(it));
        ensure!(
            within.iter().any(is_in),
            "a link leads to {}, outside the folder that the file must stay in",
            visible_path(&path)
        );
        if !is_there {
            return Ok(Self { path, text: None, mode: NEW_MODE });
        }
        let meta = path.metadata()?;
        check(&meta)?;
        let text = read_text(&path, LARGEST)?;
        Ok(Self { path, text: Some(text), mode: meta.permissions().mode() & 0o7777 })
    }

    /// Replaces the text of the file, and creates missing folders. Returns the number of folders
    /// that were created. Fails if another program has changed the file since it was read.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<usize> {
        self.check_unchanged()?;
        let folder = self.path.parent().context("it is in no folder")?;
        let is_missing = |folder: &&Path| !folder.exists();
        let made = folder.ancestors().take_while(is_missing).count();
        std::fs::create_dir_all(folder).context("cannot create its folder")?;
        let draft = self.draft();
        let written = self.write_draft(&draft, text);
        let written = written.and_then(|()| Ok(std::fs::rename(&draft, &self.path)?));
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written.map(|()| made)
    }

    /// Removes the file, and up to `folders` folders above it that are then empty. Fails if another
    /// program has changed the file since it was read.
    pub(super) fn delete(&self, folders: usize) -> anyhow::Result<()> {
        self.check_unchanged()?;
        std::fs::remove_file(&self.path)?;
        let above = self.path.ancestors().skip(1).take(folders);
        for folder in above {
            if std::fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn check_unchanged(&self) -> anyhow::Result<()> {
        let is_same = match (&self.text, read(&self.path, LARGEST)) {
            (Some(text), Ok(now)) => text.as_bytes() == now,
            (None, Err(error)) => error.kind() == ErrorKind::NotFound,
            _ => false,
        };
        ensure!(is_same, "another program has changed it in the meantime; run this command again");
        Ok(())
    }

    /// Returns the path of the draft, always the same: the next run replaces one that a kill left.
    fn draft(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.contexture-new"))
    }

    fn write_draft(&self, draft: &Path, text: &str) -> anyhow::Result<()> {
        let mut file = create(draft)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(self.mode))?;
        Ok(file.sync_data()?)
    }
}

fn check(meta: &Metadata) -> anyhow::Result<()> {
    ensure!(meta.is_file(), "it is not a regular file");
    let user = rustix::process::geteuid().as_raw();
    ensure!(meta.uid() == user, "it belongs to another user");
    ensure!(meta.len() <= LARGEST, "it is larger than {LARGEST} bytes");
    Ok(())
}

/// Resolves the links in the part of a path that exists. Also returns whether the whole path
/// exists.
fn resolve(path: &Path) -> anyhow::Result<(PathBuf, bool)> {
    match path.canonicalize() {
        Ok(path) => Ok((path, true)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            ensure!(path.symlink_metadata().is_err(), "it is a link that leads nowhere");
            let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
                bail!("it is not the name of a file")
            };
            Ok((resolve(above)?.0.join(name), false))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kill_left_is_replaced_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::fs::write(&path, "{}").unwrap();
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "o").unwrap();
        let draft = FoundConfig::read(&path, &[folder.path().to_owned()]).unwrap().draft();
        for plant in ["a draft", "a link"] {
            match plant {
                "a link" => std::os::unix::fs::symlink(&outside, &draft).unwrap(),
                _ => std::fs::write(&draft, "{").unwrap(),
            }
            let found = FoundConfig::read(&path, &[folder.path().to_owned()]).unwrap();
            found.write(plant).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), plant);
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "o");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "{plant}");
        }
    }
}
