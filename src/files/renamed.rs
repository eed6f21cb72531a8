//! Asks Git for the current name of a file that is gone.
//!
//! Git reads only the history and the index here: reading the work tree could run filters that the
//! project configures. Git runs no hook, pager or helper, and does not use the network.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time for one call of Git.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks of whether Git has ended.
const STEP: Duration = Duration::from_millis(2);
/// Maximum number of commits that are read, counting only those that rename a file.
const COMMITS: &str = "500";
/// Maximum number of renamings of one file that are followed.
const RENAMINGS: usize = 8;

/// Returns the current name of a file that is gone, if it was renamed in a Git work tree: in the
/// index or in one of the last commits.
pub(crate) fn renamed(path: &Path) -> Option<PathBuf> {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let mut name = path.strip_prefix(root).ok()?.to_str()?.to_owned();
    let mut renamings = git(root, &["diff", "--cached", "--diff-filter=R", "HEAD"])?;
    renamings += &git(root, &["log", "--format=", "--diff-filter=R", "-n", COMMITS])?;
    for _ in 0..RENAMINGS {
        name = renaming(&renamings, &name)?;
        let now = root.join(&name);
        if now.is_file() {
            return Some(now);
        }
    }
    None
}

/// Returns the name that `name` was renamed to last. `text` has the form `R100 NUL old NUL new NUL
/// …`, with the newest renaming first.
fn renaming(text: &str, name: &str) -> Option<String> {
    let mut parts = text.split('\0').map(str::trim_start).filter(|part| !part.is_empty());
    while let (Some(_), Some(old), Some(new)) = (parts.next(), parts.next(), parts.next()) {
        if old == name {
            return Some(new.to_owned());
        }
    }
    None
}

/// Returns the output of Git in a folder, unless it fails or takes too long.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let (subcommand, arguments) = arguments.split_first()?;
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(["--no-pager", "-c", "core.fsmonitor=false"]);
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"]);
    command.args([subcommand, "--no-ext-diff", "--no-textconv", "-M", "--name-status", "-z"]);
    command.args(arguments).arg("--");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut output = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        output.read_to_end(&mut text).map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                // Both calls fail only if Git has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => thread::sleep(STEP),
        }
    };
    let text = reader.join().ok()?.ok()?;
    status.success().then(|| String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let old = root.join("a.txt");
        std::fs::write(&old, "some text\nof several\nlines\n").unwrap();
        run(root, &["init", "-q"]);
        run(root, &["add", "."]);
        run(root, &["commit", "-qm", "one"]);
        assert_eq!(renamed(&root.join("other.txt")), None);
        std::fs::create_dir(root.join("b")).unwrap();
        run(root, &["mv", "a.txt", "b/c.txt"]);
        assert_eq!(renamed(&old), Some(root.join("b/c.txt")), "in the index");
        run(root, &["commit", "-qm", "two"]);
        assert_eq!(renamed(&old), Some(root.join("b/c.txt")), "in a commit");
        run(root, &["mv", "b/c.txt", "d e.txt"]);
        run(root, &["commit", "-qm", "three"]);
        assert_eq!(renamed(&old), Some(root.join("d e.txt")), "twice");
        std::fs::remove_file(root.join("d e.txt")).unwrap();
        assert_eq!(renamed(&old), None);
    }

    #[test]
    fn without_git_nothing_is_known() {
        let temp = tempfile::tempdir().unwrap();
        assert_eq!(renamed(&temp.path().join("gone")), None);
    }
}
