//! Finds out about the other ends of connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The readiness that [`hang_up`] waits for. Priority data never comes, but errors and hang-ups
/// are reported with any interest.
pub(crate) const HANG_UP: Interest = Interest::PRIORITY;

/// Resolves when the peer stops reading.
pub(crate) async fn hang_up(watched: &AsyncFd<OwnedFd>) -> io::Result<()> {
    watched.ready(HANG_UP | Interest::ERROR).await.map(drop)
}

/// Enlarges a pipe. If that fails, the pipe is only slower.
pub(crate) fn enlarge_pipe(pipe: impl AsFd, bytes: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
}

/// Returns the id of the user who owns the peer's socket, from the tables of the kernel; `None` if
/// the tables have no such socket.
pub(crate) fn peer_user(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| owner_in(&std::fs::read_to_string(table).ok()?, peer, local))
}

/// Returns the owner's user id from the row of `table` whose local address is `peer` and whose
/// remote address is `local`.
fn owner_in(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let from = kernel_address(fields.next()?)?;
        let to = kernel_address(fields.next()?)?;
        let user = fields.nth(4)?.parse().ok()?;
        // A socket that its process has closed is listed with root as its owner and inode 0.
        let owned = fields.nth(1)? != "0";
        (owned && same(from, peer) && same(to, local)).then_some(user)
    })
}

fn same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// Parses an address such as `0100007F:1F90`: 32-bit words in native byte order, in hexadecimal.
fn kernel_address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for start in (0..words.len()).step_by(8) {
        let word = u32::from_str_radix(words.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let four = <[u8; 4]>::try_from(&*bytes).map(IpAddr::from);
    let ip = four.or_else(|_| <[u8; 16]>::try_from(&*bytes).map(IpAddr::from)).ok()?;
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_kernels_table_tells_the_owner() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12345 1\n   \
            1: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12346 1\n   \
            2: 0100007F:C353 0100007F:1F90 06 00000000:00000000 03:00001770 00000000     0        0 0 3\n";
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let owner = |peer, local| owner_in(table, address(peer), address(local));
        assert_eq!(owner("127.0.0.1:8080", "127.0.0.1:50000"), Some(1000));
        assert_eq!(owner("127.0.0.1:50001", "127.0.0.1:8080"), Some(1001));
        assert_eq!(owner("127.0.0.1:50002", "127.0.0.1:8080"), None);
        assert_eq!(owner("127.0.0.1:50003", "127.0.0.1:8080"), None, "an orphan is nobody's");
    }
}
