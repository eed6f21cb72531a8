//! A connection over HTTP: who may come, and when the connection ends. Until a connection has sent a
//! request with a proof of who asks, it is a guest with little time.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep};

use crate::server::guests::{Guest, Guests, RemotePeer, warn_of};
use crate::server::listen::pause_after;

/// Time in which a connection must send its first request with a proof of who asks.
const FIRST_REQUEST_TIME: Duration = Duration::from_secs(10);
/// Time without data in either direction after which a connection ends. While an answer is made, or
/// somebody listens, something is sent every few seconds.
const IDLE_TIME: Duration = Duration::from_secs(600);

/// Accepts connections.
pub(super) struct Entrance {
    pub(super) listener: TcpListener,
    pub(super) guests: Guests,
    /// True if other users of this machine may connect, since a tunnel may run as one of them.
    pub(super) admits_others: bool,
}

impl Listener for Entrance {
    type Io = Visit;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Visit, SocketAddr) {
        loop {
            let (stream, peer) = match self.listener.accept().await {
                Ok(arrived) => arrived,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            };
            let Ok(local) = stream.local_addr() else { continue };
            match RemotePeer::of(peer, local) {
                RemotePeer::User(user) if !self.admits_others => {
                    warn_of("refused a connection over HTTP from another user, with the id ", user);
                }
                who => match self.guests.admit(who) {
                    Some(guest) => return (Visit::new(stream, guest), peer),
                    None => warn_of("refused a connection over HTTP: too many are open", ""),
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The place of a connection, which each of its requests carries.
#[derive(Clone)]
pub(crate) struct Visitor(Arc<Guest>);

impl Visitor {
    /// Records that the connection sent a proof of who asks.
    pub(crate) fn note_known(&self) {
        self.0.note_known();
    }
}

impl Connected<IncomingStream<'_, Entrance>> for Visitor {
    fn connect_info(stream: IncomingStream<'_, Entrance>) -> Self {
        Self(Arc::clone(&stream.io().guest))
    }
}

/// A connection that fails once it has been a guest for too long, another one gets its place, or it is idle
/// for too long.
pub(super) struct Visit<S = TcpStream> {
    stream: S,
    guest: Arc<Guest>,
    /// Resolves when the connection must end; `None` once it has.
    end: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Resolves when nothing was sent for [`IDLE_TIME`].
    idle: Pin<Box<Sleep>>,
}

impl<S> Visit<S> {
    fn new(stream: S, guest: Guest) -> Self {
        let guest = Arc::new(guest);
        let waiting = Arc::clone(&guest);
        let end = async move {
            let sent_away = tokio::time::timeout(FIRST_REQUEST_TIME, waiting.sent_away());
            if sent_away.await.is_err() && !waiting.is_guest() {
                std::future::pending().await
            }
        };
        let idle = Box::pin(tokio::time::sleep(IDLE_TIME));
        Self { stream, guest, end: Some(Box::pin(end)), idle }
    }

    /// Fails if the connection must end. Otherwise, the task is woken once it must.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let is_over = self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready());
        if is_over || self.idle.as_mut().poll(context).is_ready() {
            self.end = None;
        }
        match self.end {
            Some(_) => Ok(()),
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Begins the idle time anew if something was sent.
    fn note_sent(&mut self, was_sent: bool) {
        if was_sent {
            self.idle.as_mut().reset(Instant::now() + IDLE_TIME);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Visit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note_sent(buffer.filled().len() > before);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Visit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_sent(matches!(written, Poll::Ready(Ok(1..))));
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_known_connection_ends_once_nothing_was_sent_for_long() {
        let (here, mut there) = duplex(64);
        let mut visit = Visit::new(here, Guests::default().admit(RemotePeer::Own).unwrap());
        visit.guest.note_known();
        let begun = visit.idle.deadline();
        there.write_u8(1).await.unwrap();
        visit.read_u8().await.unwrap();
        let after_reading = visit.idle.deadline();
        visit.write_u8(1).await.unwrap();
        let after_writing = visit.idle.deadline();
        assert!(begun < after_reading && after_reading < after_writing);
        // A flush sends nothing.
        visit.flush().await.unwrap();
        assert_eq!(visit.idle.deadline(), after_writing);
        visit.idle.as_mut().reset(Instant::now());
        assert!(visit.read_u8().await.is_err() && visit.write_u8(1).await.is_err());
    }
}
