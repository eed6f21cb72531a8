//! Implementations that work on any Unix.

pub(super) mod held;
#[cfg(feature = "program")]
pub(super) mod peers;

use std::io;
use std::process::{Child, Command};

/// Starts a program. There is no portable way to end it with this one.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    command.spawn()
}

/// Would limit the memory that a program may take, for which there is no portable way.
pub const fn limit_memory(_child: &Child, _bytes: u64) {}

/// Would return the state of a process, for which there is no portable way.
pub const fn state_of(_pid: u32) -> Option<char> {
    None
}
