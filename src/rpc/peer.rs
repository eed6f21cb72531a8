//! The client of a call, from the viewpoint of methods.

use crate::agent::Later;
use crate::value::Value;

/// The client at the other end of a connection.
pub trait Peer: Send + Sync {
    /// Sends a `progress` message about a running call. Returns false if that is impossible because
    /// the client reads too slowly, has gone, or speaks a dialect without such messages.
    fn progress(&self, params: Value) -> bool;

    /// Sends a notification that only this client gets. Returns false if that is impossible, for
    /// the same reasons as for `progress`.
    fn notify(&self, _topic: &'static str, _params: Value) -> bool {
        false
    }

    /// Waits until the client has read most of the output so far, so that important progress is not
    /// dropped. Waits only for a limited time; a client that lets this time pass is not waited for
    /// again until it reads.
    fn room(&self) -> Later<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
