//! Checks the ignore files that a walk would read. The `ignore` crate opens these files by name,
//! and in an untrusted folder, the name may lead to a device or to an endless file.

use std::path::{Path, PathBuf};

use super::super::read::{check_size, load, size_of_regular};
use super::super::{Beneath, FileError};

/// Ignore files of a folder.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// Maximum size of an ignore file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the folder that ignore files must be in: the repository, or else the walked folder.
pub(super) fn top(root: &Path) -> PathBuf {
    let repository = root.ancestors().find(|folder| folder.join(".git").exists());
    repository.unwrap_or(root).to_path_buf()
}

/// Checks that each ignore file in `folder` is a regular file of bounded size within `top`.
///
/// # Errors
/// [`FileError`] for the first ignore file that is not.
pub(super) fn check(top: &Beneath, folder: &Path) -> Result<(), FileError> {
    for name in NAMES {
        let path = folder.join(name);
        // A dangling link is not opened.
        if path.exists() {
            top.open(&path)?.check(MAX_BYTES)?;
        }
    }
    check_worktree(folder)
}

/// Checks the files by which the `ignore` crate finds the rules of a worktree. They belong to the
/// repository, which may be anywhere.
fn check_worktree(folder: &Path) -> Result<(), FileError> {
    let git = folder.join(".git");
    if !git.is_file() {
        return Ok(());
    }
    let text = load(&git, MAX_BYTES)?;
    let own = text.lines().next().and_then(|line| line.strip_prefix("gitdir: "));
    let Some(common) = own.map(|own| Path::new(own).join("commondir")) else { return Ok(()) };
    if !common.exists() {
        return Ok(());
    }
    let text = load(&common, MAX_BYTES)?;
    let folder = text.lines().next().unwrap_or_default();
    let own = common.parent().filter(|_| folder.starts_with('.')).unwrap_or(Path::new(""));
    let exclude = own.join(folder).join("info/exclude");
    if exclude.exists() {
        check_size(&exclude, size_of_regular(&exclude, exclude.metadata())?, MAX_BYTES)?;
    }
    Ok(())
}
