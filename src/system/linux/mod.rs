//! Implementations that work only on Linux.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;
