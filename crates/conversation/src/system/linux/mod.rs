//! Implementations that work only on Linux.

pub(super) mod held;
#[cfg(feature = "program")]
pub(super) mod peers;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, prlimit, set_parent_process_death_signal,
};

/// Starts a program that the kernel kills when this one ends, or the thread that calls this.
#[expect(
    unsafe_code,
    reason = "what runs between the two calls that start a program must call only what is safe in a \
              signal handler; these are three system calls"
)]
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    let own = getpid();
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // This program may have ended before.
            if getppid() == Some(own) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
        });
    }
    command.spawn()
}

/// Limits the memory that a program may take for its data, in bytes. Files that it maps for reading
/// do not count.
pub fn limit_memory(child: &Child, bytes: u64) {
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    // A program that has just ended needs no limit.
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

/// Returns the state of a process: a letter, such as `S` if it sleeps until something happens; `None`
/// if it cannot be found out.
pub fn state_of(pid: u32) -> Option<char> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The state follows the name of the program, which may have brackets of its own.
    status.rsplit(')').next()?.split_whitespace().next()?.chars().next()
}
