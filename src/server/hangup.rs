//! Detects that the other end of a connection has gone, without writing to the connection. Knows
//! nothing of the messages on it.

use std::future::pending;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::unix::AsyncFd;

use crate::system::{HANG_UP, hang_up};

/// Idle time before the first probe of TCP keepalive. After a peer has closed its socket, its
/// operating system still answers probes until it forgets the socket, after a minute on Linux.
const KEEP_IDLE: Duration = Duration::from_secs(15);
/// Interval between probes of TCP keepalive.
const KEEP_INTERVAL: Duration = Duration::from_secs(15);
/// Number of unanswered probes after which a connection counts as dead.
const KEEP_COUNT: u32 = 4;

/// Resolves when the peer stops reading. A peer that only stops writing, such as at the end of a
/// pipeline of calls, does not count. Never resolves for a file descriptor that cannot be watched,
/// such as that of a regular file.
pub(super) fn hung_up(fd: impl AsFd) -> impl Future<Output = ()> + Send + 'static {
    let watched = fd.as_fd().try_clone_to_owned().and_then(watched);
    async move {
        let Ok(watched) = watched else { return pending().await };
        if hang_up(&watched).await.is_err() {
            pending().await
        }
    }
}

#[expect(
    deprecated,
    reason = "the replacement is an unsafe function, because the descriptor of some types can \
              change; that of an `OwnedFd` cannot"
)]
fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, HANG_UP)
}

/// Turns on TCP keepalive. Without keepalive, a client that has gone looks like a client that has
/// only closed its writing side.
pub(super) fn keep_asking(stream: impl AsFd) -> io::Result<()> {
    let stream = stream.as_fd();
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(stream, KEEP_COUNT)?)
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Time in which a test expects nothing to happen.
    const A_MOMENT: Duration = Duration::from_millis(50);
    /// Time limit for things that happen at once, long because the machine may be busy.
    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_client_that_writes_no_more_has_not_gone() {
        let (near, far) = UnixStream::pair().unwrap();
        let gone = hung_up(&near);
        tokio::pin!(gone);
        far.shutdown(Shutdown::Write).unwrap();
        assert!(timeout(A_MOMENT, &mut gone).await.is_err());
        drop(far);
        timeout(LONG, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_pipe_that_nobody_reads_has_ended() {
        let (reader, writer) = std::io::pipe().unwrap();
        let gone = hung_up(&writer);
        tokio::pin!(gone);
        assert!(timeout(A_MOMENT, &mut gone).await.is_err());
        drop(reader);
        timeout(LONG, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_tcp_connection_that_is_reset_has_ended() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut near, _) = listener.accept().unwrap();
        keep_asking(&near).unwrap();
        let gone = hung_up(&near);
        tokio::pin!(gone);
        assert!(timeout(A_MOMENT, &mut gone).await.is_err());
        // Closing a socket that has unread data resets the connection.
        io::Write::write_all(&mut near, b"x").unwrap();
        while far.peek(&mut [0]).unwrap() == 0 {}
        drop(far);
        timeout(LONG, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_is_never_left() {
        let file = tempfile::tempfile().unwrap();
        assert!(timeout(A_MOMENT, hung_up(&file)).await.is_err());
    }
}
