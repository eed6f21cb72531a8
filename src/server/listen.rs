//! Sockets: where clients come from when they do not come over stdio.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::Server;
use super::auth::{Admission, Secret, tcp_admission};
use super::folder::make_private;
use super::hangup::{hung_up, keep_asking};
use crate::visible::visible_path;
use crate::wire::frame::RELAYED;

/// A Unix socket that vanishes with the value.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Binds the socket, in place of one that nobody listens on. Its folder is made private when
    /// it has to be made, and the socket is the user's alone.
    ///
    /// # Errors
    /// What the system says, and `AddrInUse` when somebody does listen there.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            make_private(folder).map_err(io::Error::other)?;
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            let message = format!("another server listens on {}", visible_path(path));
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        if is_socket(path) {
            std::fs::remove_file(path)?;
        }
        // The socket is made with the mask's mode, so that no moment passes in which it is open.
        let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        let bound = UnixListener::bind(path);
        rustix::process::umask(mask);
        let listener = bound.map_err(|error| named(error, path))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves whoever connects until the server ends.
    pub async fn serve(self, server: Server) {
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
        // Whoever comes next removes it if this fails.
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

/// Serves whoever connects over TCP until the server ends.
pub async fn serve_tcp(listener: TcpListener, server: Server, secret: Option<Secret>) {
    loop {
        let accepted = tokio::select! {
            () = server.ending().cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => serve_stream(&server, stream, peer, secret.as_ref()),
            Err(error) => pause_after(&error).await,
        }
    }
}

fn serve_stream(server: &Server, stream: TcpStream, peer: SocketAddr, secret: Option<&Secret>) {
    let Ok(local) = stream.local_addr() else { return };
    // Without it an answer may wait 40 ms for the client's acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{peer}: no TCP_NODELAY: {error}");
    }
    if let Err(error) = keep_asking(&stream) {
        tracing::debug!("{peer}: no signs of life are asked for: {error}");
    }
    let admission = tcp_admission(peer, local, secret);
    let (server, gone) = (server.clone(), hung_up(&stream));
    let (reader, writer) = stream.into_split();
    tokio::spawn(async move { server.serve_until(reader, writer, admission, gone).await });
}

/// Carries what clients of the same user say over TCP to the server that listens on a Unix socket,
/// for as long as this is polled.
pub async fn relay_tcp(listener: TcpListener, socket: &Path) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let socket = socket.to_owned();
                tokio::spawn(async move {
                    if let Err(error) = relay(stream, peer, &socket).await {
                        tracing::debug!("{peer}: {error}");
                    }
                });
            }
            Err(error) => pause_after(&error).await,
        }
    }
}

async fn relay(mut stream: TcpStream, peer: SocketAddr, socket: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if matches!(tcp_admission(peer, stream.local_addr()?, None), Admission::Refused) {
        tracing::warn!("a client of another user was turned away");
        return Ok(());
    }
    keep_asking(&stream)?;
    let gone = hung_up(&stream);
    let mut server = UnixStream::connect(socket).await?;
    server.write_all(RELAYED).await?;
    tokio::select! {
        // First, so that what came before the end is carried as far as it can be.
        biased;
        copied = tokio::io::copy_bidirectional(&mut stream, &mut server) => copied.map(drop),
        () = gone => Ok(()),
    }
}

/// Out of file handles, most likely: give clients time to leave.
async fn pause_after(error: &io::Error) {
    tracing::warn!("a client could not be accepted: {error}");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|status| status.file_type().is_socket())
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {}: {error}", visible_path(path)))
}
