//! Implementations that work only on Linux.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;

/// Returns whether a process is stopped, as by `kill -STOP`; false if that cannot be found out.
#[cfg(feature = "cli")]
pub(crate) fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name of the program, which may have brackets of its own.
    let state = status.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    matches!(state, Some("T" | "t"))
}
