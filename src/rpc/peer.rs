//! The client of a call, as far as methods know it.

use crate::agent::Later;
use crate::value::Value;

/// The client at the other end of a connection.
pub trait Peer: Send + Sync {
    /// Sends `progress` for a call that is running. Whether it was sent, or will be as soon as the
    /// client reads: not to one that reads too slowly, has gone, or speaks a dialect without it.
    fn progress(&self, params: Value) -> bool;

    /// Waits until the client has read most of what it was told, so that progress that matters is
    /// not dropped. One that reads nothing is waited for once, and not for ever.
    fn room(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
