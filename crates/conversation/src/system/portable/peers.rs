//! Finds out about the other ends of connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The readiness that [`hang_up`] waits for.
pub const HANG_UP: Interest = Interest::WRITABLE;

/// Resolves when the peer stops reading. Also wakes up, without resolving, whenever there is room
/// to write.
pub async fn hang_up(watched: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let mut guard = watched.ready(HANG_UP).await?;
        if guard.ready().is_write_closed() {
            return Ok(());
        }
        guard.clear_ready();
    }
}

/// Leaves a pipe as it is: its size cannot be set.
pub fn enlarge_pipe(_: impl AsFd, _: usize) {}

/// Returns `None`: the system does not tell who owns a TCP socket.
pub fn peer_user(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}
