//! Sockets on which clients connect: Unix and TCP.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, UnixListener, UnixStream};

use super::Server;
use super::auth::{Admission, SecretHash, tcp_admission};
use super::guests::{RemotePeer, warn_of};
use super::hangup::{hung_up, keep_asking};
use crate::store::ownership::make_private;
use crate::visible::visible_path;
use crate::wire::guard::RELAYED;

/// Maximum length of a socket's path, in bytes: that of Linux, or the shorter one of other systems.
pub(crate) const LONGEST_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Number of connections that may wait to be accepted. Beyond it, a client of TCP tries again only
/// after a second.
const MOST_WAITING: i32 = 4096;

/// Listens on a TCP address.
pub(crate) async fn bind_tcp(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    rustix::net::listen(&listener, MOST_WAITING)?;
    Ok(listener)
}

/// A Unix socket on which the server listens. Dropping the value removes the socket's file.
#[derive(Debug)]
pub(crate) struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Binds the socket, replacing one that a dead server left behind. Creates the socket's folder,
    /// private to this user, if there is none. Gives only this user access to the socket.
    ///
    /// # Errors
    /// Fails with `AddrInUse` if a server listens there, and with the error of the operating system
    /// if the socket or its folder cannot be made.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let bytes = path.as_os_str().len();
        if bytes > LONGEST_SOCKET_PATH {
            let message = format!(
                "cannot listen on {}: its path has {bytes} bytes, and at most {LONGEST_SOCKET_PATH} \
                 fit; name a shorter path with --unix, or a shorter folder in XDG_RUNTIME_DIR",
                visible_path(path)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            make_private(folder).map_err(io::Error::other)?;
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let message = format!("another server listens on {}", visible_path(path));
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        if is_socket(path) {
            std::fs::remove_file(path).map_err(|error| named(error, path))?;
        }
        // Sets the mode through the umask, so that the socket is never open to others, not even
        // briefly.
        let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let bound = UnixListener::bind(path);
        rustix::process::umask(mask);
        let listener = bound.map_err(|error| named(error, path))?;
        rustix::net::listen(&listener, MOST_WAITING).map_err(|error| named(error.into(), path))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| named(error, path))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Returns the path of the socket.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Accepts and serves clients until the server ends.
    pub(crate) async fn serve(self, server: Server) {
        loop {
            let accepted = tokio::select! {
                () = server.ending().cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => serve_unix(&server, stream),
                Err(error) => pause_after(&error).await,
            }
        }
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // If this fails, the next server removes the socket.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn serve_unix(server: &Server, stream: UnixStream) {
    let user = stream.peer_cred().map(|credentials| credentials.uid());
    let admission = match user.is_ok_and(|user| user == rustix::process::geteuid().as_raw()) {
        true => Admission::Granted,
        false => Admission::Refused,
    };
    let (server, gone) = (server.clone(), hung_up(&stream));
    let (reader, writer) = stream.into_split();
    tokio::spawn(async move { server.serve_until(reader, writer, admission, gone).await });
}

/// Accepts and serves TCP clients until the server ends.
pub async fn serve_tcp(listener: TcpListener, server: Server, secret: Option<SecretHash>) {
    loop {
        let accepted = tokio::select! {
            () = server.ending().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(arrived) => serve_stream(&server, arrived, secret.as_ref()),
            Err(error) => pause_after(&error).await,
        }
    }
}

/// Serves a TCP client that has connected.
pub(crate) fn serve_stream(server: &Server, (stream, peer): Arrived, secret: Option<&SecretHash>) {
    let Ok(local) = stream.local_addr() else { return };
    // Without this option, an answer may wait 40 ms for the client's acknowledgement of the
    // previous answer.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{peer}: cannot set TCP_NODELAY: {error}");
    }
    if let Err(error) = keep_asking(&stream) {
        tracing::debug!("{peer}: cannot turn on keepalive: {error}");
    }
    let who = RemotePeer::of(peer, local);
    let admission = tcp_admission(who, secret);
    let Some(guest) = server.guests().admit(who) else {
        return warn_of("refused a client: too many connections over TCP and HTTP are open", "");
    };
    let (server, gone) = (server.clone(), hung_up(&stream));
    let (reader, writer) = stream.into_split();
    let admission = (admission, Some(guest));
    tokio::spawn(async move { server.serve_guest(reader, writer, admission, gone).await });
}

/// A TCP client that has connected.
pub(crate) type Arrived = (TcpStream, SocketAddr);

/// Relays TCP clients of this user to the server that listens on the Unix socket `socket`. `first`
/// is a client that has already connected. Returns when no server listens there any more, with the
/// client that could not be relayed.
pub(crate) async fn relay_tcp(
    listener: &TcpListener,
    socket: &Path,
    mut first: Option<Arrived>,
) -> Arrived {
    loop {
        let (stream, peer) = match first.take() {
            Some(arrived) => arrived,
            None => match listener.accept().await {
                Ok(arrived) => arrived,
                Err(error) => {
                    pause_after(&error).await;
                    continue;
                }
            },
        };
        let Ok(server) = UnixStream::connect(socket).await else { return (stream, peer) };
        tokio::spawn(async move {
            if let Err(error) = relay(stream, peer, server).await {
                tracing::debug!("{peer}: the relay to the server ended: {error}");
            }
        });
    }
}

async fn relay(mut stream: TcpStream, peer: SocketAddr, mut server: UnixStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if matches!(tcp_admission(RemotePeer::of(peer, stream.local_addr()?), None), Admission::Refused)
    {
        warn_of("refused a client from another user or machine: ", peer);
        return Ok(());
    }
    keep_asking(&stream)?;
    let gone = hung_up(&stream);
    server.write_all(RELAYED).await?;
    tokio::select! {
        // The data are polled first, so that data sent before the hang-up are still relayed.
        biased;
        copied = tokio::io::copy_bidirectional(&mut stream, &mut server) => copied.map(drop),
        () = gone => Ok(()),
    }
}

/// Logs a failure to accept a client and pauses, so that clients can leave: most often, too many
/// files are open.
pub(crate) async fn pause_after(error: &io::Error) {
    warn_of("cannot accept a client: ", error);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|status| status.file_type().is_socket())
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {}: {error}", visible_path(path)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    /// Many clients may come before the first is accepted, and none of them waits.
    #[tokio::test]
    async fn a_burst_of_clients_finds_room() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
        let clients = most.trim().parse().unwrap_or(100).min(400);
        let listener = bind_tcp("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        let all: Vec<TcpStream> = (0..clients).map(connect).collect();
        assert_eq!(all.len(), clients);
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::bind(&folder.path().join("s")).unwrap();
        let connect = |_| {
            let near = rustix::net::socket_with(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::STREAM,
                rustix::net::SocketFlags::NONBLOCK,
                None,
            );
            let to = rustix::net::SocketAddrUnix::new(socket.path()).unwrap();
            let near = near.unwrap();
            rustix::net::connect(&near, &to).unwrap();
            near
        };
        let all: Vec<_> = (0..clients).map(connect).collect();
        assert_eq!(all.len(), clients);
    }
}
