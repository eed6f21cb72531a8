//! Finds a file that was renamed or moved without Git: it keeps its inode.

use std::fs::{self, Metadata};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Maximum number of names that are read in search of a file.
const MOST_NAMES: usize = 20_000;

/// What stays the same when a file is renamed: its device and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    pub(super) fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), number: file.ino() }
    }

    fn is_of(self, file: &Metadata) -> bool {
        file.is_file() && Self::of(file) == self
    }
}

/// Returns the name that a file has now, if it was only renamed or moved within its project, or
/// below the nearest folder above it that exists. Follows no links.
pub(super) fn moved(path: &Path, project: Option<&Path>, inode: Inode) -> Option<PathBuf> {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let root = project.filter(|root| folder.starts_with(root)).unwrap_or(folder);
    let (mut folders, mut left) = (vec![root.to_owned()], MOST_NAMES);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            left = left.checked_sub(1)?;
            let kind = entry.file_type().ok()?;
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(entry.path());
            } else if kind.is_file()
                && entry.ino() == inode.number
                && entry.metadata().is_ok_and(|file| inode.is_of(&file))
            {
                return Some(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_wherever_it_was_moved_in_its_project() {
        let temp = tempfile::tempdir().unwrap();
        let (root, old) = (temp.path(), temp.path().join("a/b/c.txt"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(&old, "text\n").unwrap();
        fs::write(root.join("a/d.txt"), "text\n").unwrap();
        let inode = Inode::of(&old.metadata().unwrap());
        fs::rename(root.join("a"), root.join("e")).unwrap();
        assert_eq!(moved(&old, Some(root), inode), Some(root.join("e/b/c.txt")));
        fs::rename(root.join("e/b/c.txt"), root.join("new.txt")).unwrap();
        assert_eq!(moved(&old, None, inode), Some(root.join("new.txt")));
        fs::remove_file(root.join("new.txt")).unwrap();
        assert_eq!(moved(&old, Some(root), inode), None);
    }
}
