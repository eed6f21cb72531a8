//! Which files of ignore rules a walk may read. Whoever reads them opens them by name, and in a folder
//! that somebody else made such a name may lead to a device, or to a file without an end.

use std::path::{Path, PathBuf};

use super::super::{Beneath, FileError};

/// Files of rules in a folder.
const NAMES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// Maximum size of one of them, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The folder that rules may not lead out of: the repository's, or else the one that is walked.
pub(super) fn top(root: &Path) -> PathBuf {
    let repository = root.ancestors().find(|folder| folder.join(".git").exists());
    repository.unwrap_or(root).to_path_buf()
}

/// Checks that each file of rules in `folder` is a regular one of bounded size within `top`.
///
/// # Errors
/// [`FileError`] for the first that is not.
pub(super) fn check(top: &Beneath, folder: &Path) -> Result<(), FileError> {
    for name in NAMES {
        let path = folder.join(name);
        // Also a link that leads nowhere is not opened.
        if path.exists() {
            top.open(&path)?.check(MAX_BYTES)?;
        }
    }
    Ok(())
}
