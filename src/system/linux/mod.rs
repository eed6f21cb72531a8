//! The ways that only Linux has.

pub(super) mod held;
#[cfg(feature = "server")]
pub(super) mod peers;
