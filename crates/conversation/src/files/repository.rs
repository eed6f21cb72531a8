//! Finds the project of a folder in which an agent worked: the root of its repository. A worktree
//! belongs to its repository, also after it was removed. Must not run Git, since the folder may be
//! untrusted: files of Git are only read.

use std::fs;
use std::path::{Path, PathBuf};

use super::identity::address;
use super::path::absolute;
use super::project_root;
use super::read::load;
use crate::system::note_disk;

/// Maximum size of a file of Git that is read, in bytes.
const LARGEST: u64 = 1 << 20;
/// Maximum number of folders beside a removed one that are looked at.
const MOST_BESIDE: usize = 1000;

/// Returns the root of the repository of a folder, or else of its project. The folder need not
/// exist.
pub(super) fn repository(folder: &Path) -> Option<PathBuf> {
    note_disk();
    if !folder.exists()
        && let Some(root) = removed(folder)
    {
        return Some(root);
    }
    let root = project_root(folder)?;
    // A home folder under version control is not the project of all that was removed from it.
    let is_home = || std::env::home_dir().is_some_and(|home| home == root);
    if !folder.exists() && is_home() {
        return None;
    }
    Some(main_of(&root).unwrap_or(root))
}

/// Returns the root of the project of a folder, or the folder itself if it has none.
pub fn project_of(folder: &str) -> String {
    let root = absolute(folder).ok().and_then(|path| repository(&path));
    let root = root.and_then(|root| root.to_str().map(str::to_owned));
    root.unwrap_or_else(|| folder.to_owned())
}

/// Returns whether there is a file or folder with this name.
pub fn is_there(name: &str) -> bool {
    note_disk();
    absolute(name).is_ok_and(|path| path.exists())
}

/// Returns the URL of the Git remote of the repository with this root, without user and password.
pub fn repository_address(root: &Path) -> Option<String> {
    address(&text(&root.join(".git/config"))?)
}

/// Returns the root of the repository of which a folder is a worktree. The repository has to know
/// the worktree.
fn main_of(root: &Path) -> Option<PathBuf> {
    let text = text(&root.join(".git"))?;
    let own = root.join(text.trim().strip_prefix("gitdir:")?.trim());
    let own = own.canonicalize().ok()?;
    let main = own.parent().filter(|it| it.ends_with(".git/worktrees"))?.parent()?.parent()?;
    let is_known = names(&own) == Some(root.join(".git").canonicalize().ok()?);
    is_known.then(|| main.to_owned())
}

/// Returns the `.git` file of the worktree that a folder in `.git/worktrees` describes.
fn names(described: &Path) -> Option<PathBuf> {
    let named = text(&described.join("gitdir"))?;
    let named = PathBuf::from(named.trim());
    Some(named.canonicalize().unwrap_or(named))
}

/// Returns the root of the repository of a worktree that was removed: one beside it that still
/// describes the worktree, or else the only one with a branch of its name, since Git names the
/// branch of a new worktree after its folder.
fn removed(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder.parent()?).ok()?.take(MOST_BESIDE).filter_map(Result::ok);
    let beside: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(".git").is_dir()).collect();
    let describes = |root: &&PathBuf| {
        let all = fs::read_dir(root.join(".git/worktrees")).into_iter().flatten();
        all.filter_map(Result::ok)
            .any(|entry| names(&entry.path()).as_deref() == Some(&folder.join(".git")))
    };
    if let Some(root) = beside.iter().find(describes) {
        return Some(root.clone());
    }
    let name = folder.file_name()?.to_str()?;
    let mut branched = beside.iter().filter(|root| has_branch(root, name));
    branched.next().filter(|_| branched.next().is_none()).cloned()
}

fn has_branch(root: &Path, name: &str) -> bool {
    let packed = || text(&root.join(".git/packed-refs")).unwrap_or_default();
    root.join(".git/refs/heads").join(name).is_file()
        || packed().lines().any(|line| line.ends_with(&format!(" refs/heads/{name}")))
}

/// Returns the text of a small regular file.
fn text(path: &Path) -> Option<String> {
    load(path, LARGEST).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a worktree of the repository `main`, as Git does.
    fn add_worktree(main: &Path, place: &Path, name: &str) {
        let described = main.join(".git/worktrees").join(name);
        fs::create_dir_all(&described).unwrap();
        fs::create_dir_all(place).unwrap();
        fs::write(described.join("gitdir"), format!("{}\n", place.join(".git").display())).unwrap();
        fs::write(place.join(".git"), format!("gitdir: {}\n", described.display())).unwrap();
        fs::create_dir_all(main.join(".git/refs/heads")).unwrap();
        fs::write(main.join(".git/refs/heads").join(name), "0\n").unwrap();
    }

    #[test]
    fn a_worktree_belongs_to_its_repository_also_after_it_was_removed() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        let main = top.join("main");
        fs::create_dir_all(main.join("src/deep")).unwrap();
        for (place, name) in [("side", "side"), ("main/.claude/worktrees/feat", "feat")] {
            add_worktree(&main, &top.join(place), name);
        }
        fs::create_dir_all(top.join("other/.git")).unwrap();
        let check = |folder: &str, expected: Option<&str>| {
            assert_eq!(repository(&top.join(folder)), expected.map(|it| top.join(it)), "{folder}");
        };
        check("main/src/deep", Some("main"));
        check("side", Some("main"));
        check("main/.claude/worktrees/feat", Some("main"));
        check("main/.claude/worktrees/deleted", Some("main"));
        check("other", Some("other"));
        check("gone", None);
        fs::remove_dir_all(top.join("side")).unwrap();
        check("side", Some("main"));
        // Git forgets a worktree that it removes itself, but keeps the branch.
        fs::remove_dir_all(main.join(".git/worktrees/side")).unwrap();
        check("side", Some("main"));
        fs::remove_file(main.join(".git/refs/heads/side")).unwrap();
        check("side", None);
    }

    #[test]
    fn a_folder_that_only_claims_to_be_a_worktree_is_its_own_project() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        add_worktree(&top.join("main"), &top.join("side"), "side");
        fs::create_dir_all(top.join("liar")).unwrap();
        fs::copy(top.join("side/.git"), top.join("liar/.git")).unwrap();
        assert_eq!(repository(&top.join("liar")), Some(top.join("liar")));
    }

    #[test]
    fn only_names_of_this_machine_are_looked_at() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        fs::create_dir(top.join("ssh:host:")).unwrap();
        let is_there = |name: &str| super::is_there(&name.replace("TOP", top.to_str().unwrap()));
        assert!(is_there("TOP") && is_there("~") && is_there("TOP/none/.."));
        for name in ["TOP/none", "/ssh:host:/", "/x/../ssh:host:/tmp", "tmp", "~nobody/x", "//h/x"]
        {
            assert!(!is_there(name), "{name}");
        }
    }
}
