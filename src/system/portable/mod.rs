//! Implementations that work on any Unix.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;

/// Returns whether a process is stopped. Always false: there is no portable way to find out.
#[cfg(feature = "cli")]
pub(crate) const fn is_stopped(_pid: u32) -> bool {
    false
}
