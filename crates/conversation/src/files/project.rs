//! Finds the project that a file belongs to. Must not know what projects are used for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::system::note_disk;

/// Names that mark the root of a project: the metadata of version control systems (including
/// Fossil's checkout file), and the two files that Emacs users create by hand.
const MARKERS: &[&str] =
    &[".git", ".hg", ".svn", ".bzr", "_darcs", ".jj", ".fslckout", ".projectile", ".project"];

/// Returns the nearest folder, `path` itself or one above it, that contains a project marker. A
/// `.git` file counts: worktrees and submodules have one. `path` must be absolute but need not
/// exist.
pub fn project_root(path: &Path) -> Option<PathBuf> {
    note_disk();
    path.ancestors().find(|folder| holds_marker(folder)).map(Path::to_path_buf)
}

/// Project roots of many files; checks each folder once.
#[derive(Debug, Default)]
pub(super) struct Projects {
    known: HashMap<PathBuf, Option<PathBuf>>,
}

impl Projects {
    /// Returns the project of the file at `path`.
    pub(super) fn of_file(&mut self, path: &Path) -> Option<PathBuf> {
        let (mut root, mut unknown) = (None, Vec::new());
        for ancestor in path.ancestors().skip(1) {
            if let Some(known) = self.known.get(ancestor) {
                root.clone_from(known);
                break;
            }
            unknown.push(ancestor.to_path_buf());
            if holds_marker(ancestor) {
                root = Some(ancestor.to_path_buf());
                break;
            }
        }
        self.known.extend(unknown.into_iter().map(|folder| (folder, root.clone())));
        root
    }
}

fn holds_marker(folder: &Path) -> bool {
    MARKERS.iter().any(|marker| folder.join(marker).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_marker_wins() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        fs::create_dir_all(top.join("a/.git")).unwrap();
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::write(top.join("a/b/.git"), "gitdir: elsewhere\n").unwrap();
        fs::create_dir_all(top.join("a/d/e")).unwrap();
        fs::write(top.join("a/d/.projectile"), "").unwrap();
        let mut projects = Projects::default();
        for (file, root) in [
            ("a/x.rs", "a"),
            ("a/b/x.rs", "a/b"),
            ("a/b/c/x.rs", "a/b"),
            ("a/d/e/x.rs", "a/d"),
            ("a/gone/x.rs", "a"),
        ] {
            let root = Some(top.join(root));
            assert_eq!(project_root(&top.join(file)), root, "{file}");
            assert_eq!(projects.of_file(&top.join(file)), root, "{file}");
            assert_eq!(projects.of_file(&top.join(file)), root, "{file}, known");
        }
        assert_eq!(project_root(&top.join("a/b")), Some(top.join("a/b")));
    }

    #[test]
    fn every_marker_counts() {
        for marker in MARKERS {
            let temp = tempfile::tempdir().unwrap();
            fs::write(temp.path().join(marker), "").unwrap();
            assert_eq!(project_root(&temp.path().join("x")), Some(temp.path().to_owned()));
        }
    }
}
