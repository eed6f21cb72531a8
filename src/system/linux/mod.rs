//! Implementations that work only on Linux.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;

use std::process::Child;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

/// Limits the memory that a program may take for its data, in bytes. Files that it maps for reading
/// do not count.
pub(crate) fn limit_memory(child: &Child, bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    // A program that has just ended needs no limit.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

/// Returns whether a process is stopped, as by `kill -STOP`; false if that cannot be found out.
#[cfg(feature = "cli")]
pub(crate) fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name of the program, which may have brackets of its own.
    let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}
