//! Finds out about the other ends of connections.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The readiness that [`hang_up`] waits for. Priority data never comes, but errors and hang-ups
/// are reported with any interest.
pub const HANG_UP: Interest = Interest::PRIORITY;

/// Resolves when the peer stops reading.
pub async fn hang_up(watched: &AsyncFd<OwnedFd>) -> io::Result<()> {
    watched.ready(HANG_UP | Interest::ERROR).await.map(drop)
}

/// Enlarges a pipe. If that fails, the pipe is only slower.
pub fn enlarge_pipe(pipe: impl AsFd, bytes: usize) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, bytes);
}

/// Returns the id of the user who owns the peer's socket; `None` if there is no such socket. Asks the
/// kernel about this one socket, or, where that is not allowed, reads the tables of all sockets,
/// which takes longer the more there are.
pub fn peer_user(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    match told_owner(peer, local) {
        Ok(owner) => owner,
        Err(_) => listed_owner(peer, local),
    }
}

/// Asks the kernel for the owner of the TCP socket that is bound to `from` and connected to `to`, in
/// the messages of `linux/inet_diag.h`.
fn told_owner(from: SocketAddr, to: SocketAddr) -> io::Result<Option<u32>> {
    const REQUEST_BYTES: u32 = 72;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const NLMSG_ERROR: u16 = 2;
    const TCP: u8 = 6;
    /// Length of an answer up to and including the owner and the inode.
    const ANSWER_BYTES: usize = 88;
    let (family, from_ip, to_ip) = match (from.ip().to_canonical(), to.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            (AddressFamily::INET, from.to_ipv6_compatible(), to.to_ipv6_compatible())
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => (AddressFamily::INET6, from, to),
        _ => return Ok(None),
    };
    // The kernel expects the four bytes of a short address first, and zeros after them.
    let bytes = |ip: std::net::Ipv6Addr| {
        let mut bytes = ip.octets();
        if family == AddressFamily::INET {
            bytes.rotate_left(12);
        }
        bytes
    };
    let mut request = Vec::with_capacity(REQUEST_BYTES as usize);
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([u8::try_from(family.as_raw()).map_err(io::Error::other)?, TCP, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(from.port().to_be_bytes());
    request.extend(to.port().to_be_bytes());
    request.extend(bytes(from_ip));
    request.extend(bytes(to_ip));
    request.extend([0; 4]);
    request.extend([u8::MAX; 8]);
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(netlink::SOCK_DIAG);
    let kernel = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
    send(&kernel, &request, SendFlags::empty())?;
    let mut answer = [0; 512];
    let (length, _) = recv(&kernel, &mut answer, RecvFlags::DONTWAIT)?;
    let word = |at: usize| {
        let word = answer[..length].get(at..at + 4)?;
        Some(u32::from_ne_bytes(word.try_into().ok()?))
    };
    let kind = word(4).map(|kind| kind.to_ne_bytes());
    let is_told = kind.is_some_and(|kind| kind[..2] == SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    let is_missing = kind.is_some_and(|kind| kind[..2] == NLMSG_ERROR.to_ne_bytes())
        && word(16) == Some(Errno::NOENT.raw_os_error().wrapping_neg().cast_unsigned());
    if is_missing {
        return Ok(None);
    }
    match (is_told && length >= ANSWER_BYTES, word(80), word(84)) {
        // A socket that its process has closed has root as its owner and inode 0.
        (true, Some(user), Some(inode)) => Ok((inode != 0).then_some(user)),
        _ => Err(io::Error::other("the kernel did not tell")),
    }
}

fn listed_owner(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
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
    fn the_kernel_and_its_table_tell_the_same_owner() {
        let own = rustix::process::geteuid().as_raw();
        for (address, name) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")]
        {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let client = std::net::TcpStream::connect((name, port)).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            let local = stream.local_addr().unwrap();
            assert_eq!(listed_owner(peer, local), Some(own), "{address}");
            // A sandbox may forbid the question.
            let told = told_owner(peer, local).unwrap_or(Some(own));
            assert_eq!(told, Some(own), "{address}");
            drop(client);
        }
    }

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
