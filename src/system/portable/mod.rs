//! Implementations that work on any Unix.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;
