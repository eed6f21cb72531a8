//! Finds the remote of a Git repository, and resolves symbolic links in file names. This module must
//! not run any commands.

use std::path::{Path, PathBuf};

use super::identity::address;
use super::path::absolute;
use super::read::load;
use crate::system::note_disk;

/// Maximum size of a file of Git that is read, in bytes.
const MAX_GIT_BYTES: u64 = 1 << 20;

/// Returns the URL of the remote of the repository whose working tree has the root `root`: the URL
/// of `origin`, or else of the first remote. A working tree added with `git worktree` has the
/// remotes of its repository.
pub fn remote_of(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let folder = match git.is_dir() {
        true => git,
        false => {
            let text = load(&git, MAX_GIT_BYTES).ok()?;
            root.join(text.trim().strip_prefix("gitdir:")?.trim())
        }
    };
    // The folder of an added working tree says where the rest of the repository is.
    let common = load(&folder.join("commondir"), MAX_GIT_BYTES).ok();
    let folder = common.map_or(folder.clone(), |common| folder.join(common.trim()));
    address(&load(&folder.join("config"), MAX_GIT_BYTES).ok()?)
}

/// Returns the name of a file without symbolic links. If the file does not exist, only the links in
/// its folder's name are resolved; if the folder does not exist either, the name stays the same.
pub fn true_name(path: &Path) -> PathBuf {
    note_disk();
    let in_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_path_buf())
}

/// Returns the true name of a file that somebody else names; `None` if the name is of no file on this
/// machine.
pub fn true_outside(name: &str) -> Option<PathBuf> {
    absolute(name).ok().map(|path| true_name(&path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn worktrees_and_submodules_have_remotes() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        let remote = |name: &str| remote_of(&top.join(name));
        write(top.join("app/.git/config"), "[remote \"origin\"]\n\turl = git@h:o/app\n");
        write(top.join("app/.git/worktrees/w/commondir"), "../..\n");
        let gitdir = format!("gitdir: {}/app/.git/worktrees/w\n", top.display());
        write(top.join("w/.git"), &gitdir);
        write(top.join("app/.git/modules/sub/config"), "[remote \"origin\"]\nurl = git@h:o/sub\n");
        write(top.join("app/sub/.git"), "gitdir: ../.git/modules/sub\n");
        assert_eq!(remote("app").as_deref(), Some("git@h:o/app"));
        assert_eq!(remote("w").as_deref(), Some("git@h:o/app"));
        assert_eq!(remote("app/sub").as_deref(), Some("git@h:o/sub"));
    }

    #[test]
    fn what_is_no_repository_has_no_remote() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        assert_eq!(remote_of(top), None);
        fs::write(top.join(".git"), "no repository").unwrap();
        assert_eq!(remote_of(top), None);
        fs::write(top.join(".git"), "gitdir: /nowhere/at/all").unwrap();
        assert_eq!(remote_of(top), None);
        assert_eq!(remote_of(&top.join("gone")), None);
    }

    #[test]
    fn true_names_have_no_links() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        symlink(top.join("real"), top.join("link")).unwrap();
        fs::write(top.join("real/a"), "").unwrap();
        assert_eq!(true_name(&top.join("link/a")), top.join("real/a"));
        assert_eq!(true_name(&top.join("link/new")), top.join("real/new"));
        assert_eq!(true_name(&top.join("no/new")), top.join("no/new"));
    }

    #[test]
    fn only_a_local_absolute_name_of_somebody_else_has_a_true_name() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        assert_eq!(true_outside(top.join("./a/..").to_str().unwrap()), Some(top));
        for name in ["src", "", "../x", "/ssh:host:/x", "/x/../ssh:host:/x", "//host/x", "~user/x"]
        {
            assert_eq!(true_outside(name), None, "{name}");
        }
    }
}
