//! Connection over standard input and output, without the extra thread that tokio uses for them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::hangup::hung_up;
use crate::system::enlarge_pipe;

/// Size in bytes to which the client's pipes are enlarged. With the usual 64 KiB, Emacs sleeps for
/// 20 ms each time a pipe is full, and a message of 1 MB takes 300 ms.
const PIPE_BYTES: usize = 1 << 20;

/// Opens standard input.
///
/// # Errors
/// Fails if standard input is closed or cannot be watched.
pub(crate) fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let fd = std::io::stdin().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        FileType::Fifo => {
            enlarge_pipe(&fd, PIPE_BYTES);
            Box::new(pipe::Receiver::from_file(File::from(fd))?)
        }
        FileType::Socket => Box::new(unix_stream(fd)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

/// Opens standard output.
///
/// # Errors
/// Fails if standard output is closed or cannot be watched.
pub(crate) fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    let fd = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        FileType::Fifo => {
            enlarge_pipe(&fd, PIPE_BYTES);
            Box::new(pipe::Sender::from_file(File::from(fd))?)
        }
        FileType::Socket => Box::new(unix_stream(fd)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

/// Resolves when nobody reads standard output any more.
pub(crate) fn output_gone() -> impl Future<Output = ()> + Send + 'static {
    hung_up(std::io::stdout())
}

/// Copies bytes between stdio and the server on a Unix socket until the server closes the
/// connection, or until input has ended and nobody reads the output.
///
/// # Errors
/// Fails if nobody listens on the socket or stdio cannot be used.
pub(crate) async fn bridge(socket: &Path) -> io::Result<()> {
    let (mut from_server, mut to_server) = UnixStream::connect(socket).await?.into_split();
    let (mut input, mut output) = (input()?, output()?);
    let up = async {
        let copied = tokio::io::copy(&mut input, &mut to_server).await;
        // Closes only this direction, so that the answers to the last messages still come.
        drop(to_server);
        copied
    };
    let down = tokio::io::copy(&mut from_server, &mut output);
    let gone = output_gone();
    tokio::pin!(up, down, gone);
    let mut sending = true;
    loop {
        tokio::select! {
            _ = &mut up, if sending => sending = false,
            ended = &mut down => return ended.map(drop),
            // Input has all been forwarded; returning closes the socket, so that the server learns
            // of the hang-up.
            () = &mut gone, if !sending => return Ok(()),
        }
    }
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// Returns a stream for both directions of a socket. Input and output may be the same socket, and a
/// stream for one direction would, when dropped, shut that direction down for both.
fn unix_stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
