//! Runs Git. This is the only place where the program does so.
//!
//! Git runs no hook, pager, monitor or helper, and does not use the network, whatever the project's
//! configuration says. Callers read only the history and the index: reading the work tree could run
//! filters that the project configures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::program::{ProgramFailure, ProgramLimits, printed};
use crate::visible::visible_path;

/// Settings that override those of the project, each of which could run a program, or name a file
/// such as `/dev/zero` for Git to read. Filters and conversions of texts cannot be named here; `git`
/// passes options against the latter, and nothing reads the work tree. Emacs has the same list.
const INERT: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=true",
    "core.attributesFile=/dev/null",
    "credential.helper=",
    "diff.orderFile=/dev/null",
    "gpg.program=false",
    "log.showSignature=false",
    "log.mailmap=false",
    "mailmap.file=/dev/null",
    "mailmap.blob=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "uploadpack.packObjectsHook=",
];
/// Limits of a call of Git. A repository can make it read an endless file, or wait for a pipe.
const LIMITS: ProgramLimits = ProgramLimits {
    time: Duration::from_secs(30),
    silence: Duration::from_secs(3),
    memory: 2 << 30,
    output: 256 << 20,
};
/// Time in which Git lists what it tracks. Without the list, a walk leaves out what is ignored.
const SOON: Duration = Duration::from_secs(5);
/// Time for which Git is not run again in a work tree in which it waited for something. So the
/// server waits only once.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Maximum number of work trees that are remembered; then all are forgotten.
const MOST_REMEMBERED: usize = 256;

/// Work trees in which Git waited for something, each with the time.
static SILENT: Mutex<BTreeMap<PathBuf, Instant>> = Mutex::new(BTreeMap::new());

/// Runs Git in a folder of a work tree, with `input`, and returns what it prints; `None` if it fails, or
/// takes too long, or the folder is in no work tree, or Git waited in this work tree before.
/// `left` is the time that this call and those after it may take together.
pub(super) fn run(
    folder: &Path,
    arguments: &[&str],
    input: &[u8],
    left: &mut Duration,
) -> Option<Vec<u8>> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    if left.is_zero() || silent_since(root).is_some() {
        return None;
    }
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).arg("--work-tree").arg(root);
    command.args(["--no-pager", "--literal-pathspecs"]);
    command.args(INERT.iter().flat_map(|setting| ["-c", setting]));
    command.args(arguments).arg("--");
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "none");
    let begun = Instant::now();
    let answer = printed(command, input, &ProgramLimits { time: LIMITS.time.min(*left), ..LIMITS });
    *left = left.saturating_sub(begun.elapsed());
    if answer == Err(ProgramFailure::Waited) {
        let mut silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.len() >= MOST_REMEMBERED {
            silent.clear();
        }
        silent.insert(root.to_owned(), Instant::now());
        tracing::warn!("Git waits for something in {}, such as a pipe", visible_path(root));
    }
    answer.ok()
}

/// Returns the files below a folder that Git tracks, relative to it; none if Git does not say so soon.
pub(super) fn tracked(folder: &Path) -> Vec<Vec<u8>> {
    let listed = run(folder, &["ls-files", "-z"], b"", &mut SOON.clone()).unwrap_or_default();
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(<[u8]>::to_vec).collect()
}

/// Returns when Git waited in a work tree, if that is remembered.
pub(super) fn silent_since(root: &Path) -> Option<Instant> {
    let silent = SILENT.lock().unwrap_or_else(PoisonError::into_inner);
    silent.get(root).copied().filter(|at| at.elapsed() < REMEMBERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emacs_has_the_same_settings() {
        let emacs = include_str!("../../../../elisp/contexture.el");
        let (_, rest) = emacs.split_once("(defconst contexture--git-settings\n  '(").unwrap();
        let (theirs, _) = rest.split_once(')').unwrap();
        let theirs: Vec<_> = theirs.split('"').skip(1).step_by(2).collect();
        assert_eq!(theirs, INERT);
    }
}
