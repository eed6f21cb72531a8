//! Asks Git for the other names of a file that is gone: those that it got later, and those that it
//! had before, to which a checkout or a renaming may have returned it.
//!
//! Git reads only the history and the index here.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::Beneath;
use super::git::run;

/// Maximum time that Git may take for one refresh of items, however many files are gone.
const PATIENCE: Duration = Duration::from_secs(4);
/// Maximum number of commits that are read, counting only those that rename a file.
const COMMITS: &str = "500";
/// Maximum number of names of one file that are tried.
const NAMES: usize = 16;
/// The command that lists renamings in commits.
const LOG: &[&str] = &["log", "--format=", "--diff-filter=R", "-n", COMMITS];

/// What Git says of renamings, asked once for each work tree.
pub(super) struct Renamings {
    left: Duration,
    /// Those of the index and the current branch, and those of all commits if they were wanted.
    known: HashMap<PathBuf, (String, Option<String>)>,
}

impl Default for Renamings {
    fn default() -> Self {
        Self { left: PATIENCE, known: HashMap::new() }
    }
}

impl Renamings {
    /// Returns the names of existing files that a file that is gone may have now, the likeliest first.
    /// They are its names in the index and in the last commits of its Git work tree, of the current
    /// branch before the others.
    pub(super) fn of(&mut self, path: &Path) -> Vec<PathBuf> {
        self.names(path).unwrap_or_default()
    }

    fn names(&mut self, path: &Path) -> Option<Vec<PathBuf>> {
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
        let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
        let name = path.strip_prefix(root).ok()?.to_str()?;
        let existing = |renamings: &str| existing(root, renamings, name);
        let left = &mut self.left;
        let (own, all) = self.known.entry(root.to_owned()).or_insert_with(|| {
            let index = git(root, &["diff", "--cached", "--diff-filter=R", "HEAD"], left);
            (index.unwrap_or_default() + &git(root, LOG, left).unwrap_or_default(), None)
        });
        let found = existing(own);
        if !found.is_empty() {
            return Some(found);
        }
        // A commit that is on no branch any more is in the log of what was checked out.
        let everywhere = [LOG, &["--all", "--reflog"]].concat();
        Some(existing(all.get_or_insert_with(|| git(root, &everywhere, left).unwrap_or_default())))
    }
}

/// Returns the other names of a file that exist in its work tree. A hostile history has any name.
fn existing(root: &Path, renamings: &str, name: &str) -> Vec<PathBuf> {
    let Ok(folder) = Beneath::new(root) else { return Vec::new() };
    let is_below = |name: &String| {
        Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
    };
    let names = other_names(renamings, name).into_iter().filter(is_below).map(|it| root.join(it));
    names.filter(|path| folder.open(path).is_ok_and(|it| it.check(u64::MAX).is_ok())).collect()
}

/// Returns the renamings that a command of Git reports.
fn git(root: &Path, arguments: &[&str], left: &mut Duration) -> Option<String> {
    let (subcommand, arguments) = arguments.split_first()?;
    let shown = ["--no-ext-diff", "--no-textconv", "-M", "--name-status", "-z"];
    let all = [&[*subcommand], &shown[..], arguments].concat();
    let text = run(root, &all, b"", left)?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the other names of a file: first those that it was renamed to, then those that it was
/// renamed from. `text` has the form `R100 NUL old NUL new NUL …`, with the newest renaming first.
fn other_names(text: &str, name: &str) -> Vec<String> {
    let parts: Vec<&str> =
        text.split('\0').map(str::trim_start).filter(|it| !it.is_empty()).collect();
    let mut names = vec![name.to_owned()];
    for is_later in [true, false] {
        let mut at = 0;
        while at < names.len() && names.len() <= NAMES {
            let of_this = parts.chunks_exact(3).filter_map(|parts| match (is_later, parts) {
                (true, [_, old, new]) | (false, [_, new, old]) if *old == names[at] => Some(*new),
                _ => None,
            });
            for other in of_this.map(str::to_owned).collect::<Vec<_>>() {
                if !names.contains(&other) {
                    names.push(other);
                }
            }
            at += 1;
        }
    }
    names.split_off(1)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn renamed(path: &Path) -> Vec<PathBuf> {
        Renamings::default().of(path)
    }

    fn run(root: &Path, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.arg("-C").arg(root).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let output = git.args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    #[test]
    fn git_tells_where_a_file_went() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let (old, none) = (root.join("a.txt"), Vec::<PathBuf>::new());
        std::fs::write(&old, "some text\nof several\nlines\n").unwrap();
        run(root, &["init", "-q"]);
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "one"]);
        assert_eq!(renamed(&root.join("other.txt")), none);
        std::fs::create_dir(root.join("b")).unwrap();
        run(root, &["mv", "a.txt", "b/c.txt"]);
        assert_eq!(renamed(&old), [root.join("b/c.txt")], "in the index");
        run(root, &["commit", "-qm", "two"]);
        assert_eq!(renamed(&old), [root.join("b/c.txt")], "in a commit");
        run(root, &["mv", "b/c.txt", "d e.txt"]);
        run(root, &["commit", "-qm", "three"]);
        assert_eq!(renamed(&old), [root.join("d e.txt")], "twice");
        let last = root.join("d e.txt");
        std::fs::remove_file(&last).unwrap();
        assert_eq!(renamed(&old), none);
        // The names of before count as well, on whatever branch the renaming is.
        run(root, &["checkout", "-q", "HEAD~2"]);
        assert_eq!(
            renamed(&last),
            std::slice::from_ref(&old),
            "from a commit that is not in this history"
        );
        run(root, &["checkout", "-q", "-"]);
        run(root, &["mv", "d e.txt", "a.txt"]);
        assert_eq!(renamed(&last), [old], "renamed back");
    }

    /// A repository whose every setting that names a program names one that leaves a trace.
    #[test]
    fn a_hostile_repository_runs_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let (root, trace) = (temp.path().join("r"), temp.path().join("trace"));
        std::fs::create_dir(&root).unwrap();
        let old = root.join("a.txt");
        std::fs::write(&old, "some text\nof several\nlines\n").unwrap();
        run(&root, &["init", "-q"]);
        run(&root, &["add", "."]);
        run(&root, &["commit", "-qm", "one"]);
        run(&root, &["mv", "a.txt", "c.txt"]);
        run(&root, &["commit", "-qm", "two"]);
        let script = temp.path().join("script");
        std::fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", trace.display()))
            .unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, executable).unwrap();
        let program = script.to_str().unwrap();
        for hook in
            ["post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-commit"]
        {
            std::fs::copy(&script, root.join(".git/hooks").join(hook)).unwrap();
        }
        std::fs::write(root.join(".gitattributes"), "* diff=evil filter=evil merge=evil\n")
            .unwrap();
        std::fs::create_dir(temp.path().join("elsewhere")).unwrap();
        let included = temp.path().join("included");
        std::fs::write(&included, format!("[core]\n\tpager = {program}\n")).unwrap();
        let mut config = std::fs::read_to_string(root.join(".git/config")).unwrap();
        config += &format!(
            "[include]\n\tpath = {}\n[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\t\
             sshCommand = {program}\n\tuntrackedCache = true\n\tworktree = {elsewhere}\n\
             [remote \"evil\"]\n\turl = {elsewhere}\n\tuploadpack = {program}\n\tpromisor = true\n\
             [protocol \"file\"]\n\tallow = always\n[diff]\n\texternal = {program}\n\
             [diff \"evil\"]\n\tcommand = {program}\n\ttextconv = {program}\n\
             [filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired = true\n\
             [alias]\n\tlog = !{program}\n\tdiff = !{program}\n[pager]\n\tlog = {program}\n\tdiff = {program}\n\
             [gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n\tmailmap = true\n\
             [diff]\n\torderFile = /dev/zero\n[mailmap]\n\tfile = /dev/zero\n\
             [credential]\n\thelper = !{program}\n[safe]\n\tdirectory = *\n",
            included.display(),
            elsewhere = temp.path().join("elsewhere").display()
        );
        std::fs::write(root.join(".git/config"), config).unwrap();
        assert_eq!(renamed(&old), [root.join("c.txt")]);
        assert_eq!(std::fs::read_to_string(&trace).unwrap_or_default(), "");
        // The trap works: Git with the settings of the project leaves a trace.
        let finite = ["-c", "diff.orderFile=/dev/null", "status"];
        let _ = Command::new("git").arg("-C").arg(&root).args(finite).output();
        assert!(trace.exists());
    }

    #[test]
    fn no_name_in_a_history_leads_out_of_the_work_tree() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (temp.path().join("r"), temp.path().join("out"));
        for folder in [&root, &outside] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("b"), "b").unwrap();
        }
        std::os::unix::fs::symlink(outside.join("b"), root.join("link")).unwrap();
        let absolute = outside.join("b").to_str().unwrap().to_owned();
        for name in ["../out/b", "./../out/b", "x/../../out/b", &absolute, "link", ".", ""] {
            let renamings = format!("R100\0a\0{name}\0");
            assert_eq!(existing(&root, &renamings, "a"), Vec::<PathBuf>::new(), "{name}");
        }
        assert_eq!(existing(&root, "R100\0a\0b\0", "a"), [root.join("b")]);
    }

    #[test]
    fn without_git_nothing_is_known() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(renamed(&temp.path().join("gone")), Vec::<PathBuf>::new());
    }

    /// A pipe in place of each file that Git may read, and in places that other files lead to. Git
    /// may wait for each only once, however many items and calls want it.
    #[test]
    fn a_pipe_in_a_repository_is_waited_for_once() {
        let places = [
            "config",
            "HEAD",
            "index",
            "packed-refs",
            "commondir",
            "shallow",
            "info/grafts",
            "info/exclude",
            "info/attributes",
            "logs/HEAD",
            "objects/info/alternates",
            "objects/info/commit-graph",
            "objects/pack/a.idx",
            "refs/heads/main",
            "refs/heads/x",
            "refs/stash",
            "refs/replace/x",
            "config.worktree",
            "included",
            "OBJECT",
            "WHOLE",
        ];
        let check = |place: &str| {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().join("r");
            std::fs::create_dir(&root).unwrap();
            run(&root, &["init", "-q", "-b", "main"]);
            std::fs::write(root.join("a.txt"), "some text\n").unwrap();
            run(&root, &["add", "."]);
            run(&root, &["commit", "-qm", "one"]);
            let git = root.join(".git");
            let pipe = match place {
                "WHOLE" => git.clone(),
                "OBJECT" => {
                    let folders = std::fs::read_dir(git.join("objects")).unwrap();
                    let folder = folders
                        .map(|folder| folder.unwrap().path())
                        .find(|it| it.file_name().is_some_and(|name| name.len() == 2));
                    let objects = std::fs::read_dir(folder.unwrap()).unwrap();
                    objects.map(|object| object.unwrap().path()).next().unwrap()
                }
                _ => git.join(place),
            };
            if place == "WHOLE" {
                std::fs::remove_dir_all(&pipe).unwrap();
            }
            std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&pipe);
            if place == "included" {
                let config = git.join("config");
                let text = std::fs::read_to_string(&config).unwrap();
                std::fs::write(&config, text + "[include]\n\tpath = included\n").unwrap();
            }
            crate::system::make_fifo(&pipe);
            let mut asked = Renamings::default();
            for name in ["b.txt", "c.txt", "d/e.txt"] {
                assert_eq!(asked.of(&root.join(name)), Vec::<PathBuf>::new(), "{place}");
            }
            let silent = super::super::git::silent_since(&root);
            // What was spent, and so the number of times that Git was waited for.
            let spent = PATIENCE - asked.left;
            assert!(silent.is_some() || spent < Duration::from_secs(3), "{place}: {spent:?}");
            assert_eq!(renamed(&root.join("f.txt")), Vec::<PathBuf>::new(), "{place}");
            assert_eq!(super::super::git::silent_since(&root), silent, "{place}: asked again");
            silent.is_some()
        };
        let held: usize = std::thread::scope(|scope| {
            let running: Vec<_> =
                places.iter().map(|place| scope.spawn(move || check(place))).collect();
            running.into_iter().map(|it| usize::from(it.join().unwrap())).sum()
        });
        assert!(held >= 4, "only {held} pipes were waited for");
    }
}
