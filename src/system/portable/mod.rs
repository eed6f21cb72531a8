//! Implementations that work on any Unix.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;

use std::process::Child;

/// Would limit the memory that a program may take, for which there is no portable way.
pub(crate) const fn limit_memory(_child: &Child, _bytes: u64) {}

/// Returns whether a process is stopped. Always false: there is no portable way to find out.
#[cfg(feature = "cli")]
pub(crate) const fn is_stopped(_pid: u32) -> bool {
    false
}
