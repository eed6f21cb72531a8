//! Standard input and output as a connection, without the thread that tokio's own would need.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::hangup::hung_up;

/// What the pipes from and to the client are enlarged to: with the usual 64 KiB, Emacs naps 20 ms each time
/// it is full, and a message of 1 MB takes 300 ms.
const PIPE_BYTES: usize = 1 << 20;

/// Standard input.
///
/// # Errors
/// When it is closed or cannot be watched.
pub fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let fd = duplicate(std::io::stdin().as_fd())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => {
            // Smaller is only slower.
            let _ = rustix::pipe::fcntl_setpipe_size(&fd, PIPE_BYTES);
            Box::new(pipe::Receiver::from_file(File::from(fd))?)
        }
        FileType::Socket => Box::new(unix_stream(fd)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

/// Standard output.
///
/// # Errors
/// When it is closed or cannot be watched.
pub fn output() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    let fd = duplicate(std::io::stdout().as_fd())?;
    Ok(match kind(&fd)? {
        FileType::Fifo => {
            let _ = rustix::pipe::fcntl_setpipe_size(&fd, PIPE_BYTES);
            Box::new(pipe::Sender::from_file(File::from(fd))?)
        }
        FileType::Socket => Box::new(unix_stream(fd)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

/// Ends once nobody reads standard output any more.
pub fn output_gone() -> impl Future<Output = ()> + Send + 'static {
    hung_up(std::io::stdout())
}

/// Carries bytes between stdio and the server that listens on a socket, until one side ends.
///
/// # Errors
/// When nobody listens there, or stdio cannot be used.
pub async fn bridge(socket: &Path) -> io::Result<()> {
    let (mut from_server, mut to_server) = UnixStream::connect(socket).await?.into_split();
    let (mut input, mut output) = (input()?, output()?);
    let up = async {
        let copied = tokio::io::copy(&mut input, &mut to_server).await;
        // Half-closed, so that answers to the last messages still come.
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
            // What was said before is still carried; then the server has to know.
            () = &mut gone, if !sending => return Ok(()),
        }
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    fd.try_clone_to_owned()
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

/// The socket whole: half of one would shut the other half down, and input and output may be one.
fn unix_stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = std::os::unix::net::UnixStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
