//! Runs Git. This is the only place where the program does so.
//!
//! Git runs no hook, pager, monitor or helper, and does not use the network, whatever the project's
//! configuration says. Callers read only the history and the index: reading the work tree could run
//! filters that the project configures.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::system::{end_of, limit_memory};

/// Settings that override those of the project, each of which could run a program, or name a file
/// such as `/dev/zero` for Git to read. Filters and conversions of texts cannot be named here; `git`
/// passes options against the latter, and nothing reads the work tree.
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
/// Maximum memory for the data of Git, in bytes. A repository can make Git read an endless file.
const MAX_MEMORY: u64 = 2 << 30;
/// Maximum length of what Git may print. More is no answer.
const MAX_OUTPUT: u64 = 256 << 20;

/// Runs Git in a folder of a work tree, with `input`, and returns what it prints; `None` if it fails, or
/// takes longer than `patience`, or the folder is in no work tree.
pub(super) fn run(
    folder: &Path,
    arguments: &[&str],
    input: &[u8],
    patience: Duration,
) -> Option<Vec<u8>> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists())?;
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).arg("--work-tree").arg(root);
    command.args(["--no-pager", "--literal-pathspecs"]);
    command.args(INERT.iter().flat_map(|setting| ["-c", setting]));
    command.args(arguments).arg("--");
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_ALLOW_PROTOCOL", "none");
    printed(command, input, patience, MAX_OUTPUT)
}

/// Runs a program with `input`, and returns what it prints; `None` if it fails, takes longer than
/// `patience`, or prints more than `most` bytes.
pub(super) fn printed(
    mut command: Command,
    input: &[u8],
    patience: Duration,
    most: u64,
) -> Option<Vec<u8>> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    limit_memory(&child, MAX_MEMORY);
    let output = child.stdout.take()?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        output.take(most).read_to_end(&mut text).map(|_| text)
    });
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // The program may end before it has read everything, which is no failure by itself.
        thread::spawn(move || stdin.write_all(&input));
    }
    let status = end_of(&mut child, patience).ok()??;
    let text = reader.join().ok()?.ok()?;
    status.success().then_some(text)
}
