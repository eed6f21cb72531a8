//! The one owner of a state folder: this process, or another process that listens on a socket.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::greeting::{Unanswered, checked};
use super::host::Setup;
use crate::server::listen::UnixSocket;
use crate::store::ownership::{FolderError, Owned, make_private, owner};
use crate::visible::visible_path;

/// Pause between attempts to reach the owner of the state folder.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Maximum number of attempts to reach the owner of the state folder.
const LOOKS: u32 = 250;

/// The owner of a state folder, after an attempt to take the folder.
pub(super) enum TakenFolder {
    Here(Owned),
    /// Another server: the path of its socket, and a connection to it.
    By(PathBuf, UnixStream),
}

/// Takes ownership of the folder. If another server owns the folder, fails unless `bridge` is true.
/// With `bridge`, connects to the owner, and keeps trying for some seconds, since the owner may be
/// starting or ending. Fails at once if the owner listens but does not answer, and warns if it is
/// another version.
pub(super) async fn take(folder: &Path, bridge: bool) -> anyhow::Result<TakenFolder> {
    for look in 1.. {
        match Owned::take(folder) {
            Ok(owned) => return Ok(TakenFolder::Here(owned)),
            Err(FolderError::Taken { .. }) if bridge && look < LOOKS => {
                let owner = owner(folder).unwrap_or_default();
                if let Some(socket) = &owner.socket {
                    match checked(&owner, socket) {
                        Ok(warning) => {
                            if let Ok(stream) = UnixStream::connect(socket) {
                                warning.iter().for_each(|warning| tracing::warn!("{warning}"));
                                return Ok(TakenFolder::By(socket.clone(), stream));
                            }
                        }
                        Err(mute @ Unanswered::Mute(_)) => return Err(mute.into()),
                        Err(Unanswered::Unreachable(_)) => {}
                    }
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(error @ FolderError::Taken { .. }) => {
                anyhow::bail!(
                    "{error}; join that server with `serve --stdio`, stop it with `contexture call \
                     shutdown`, or use another folder with --state"
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    unreachable!("the loop only ends by returning")
}

/// Listens on the socket at `path`. If this process owns the state folder, notes the path in the
/// folder, so that other processes find the socket.
pub(super) fn listen(path: &Path, owned: Option<&Owned>) -> io::Result<UnixSocket> {
    let socket = UnixSocket::bind(path)?;
    if let Some(owned) = owned {
        // In a read-only folder the note cannot be written. Then others cannot find the socket, but
        // nothing else is lost.
        if let Err(error) = owned.note(Some(socket.path())) {
            tracing::warn!("{error}; other processes will not find this server");
        }
    }
    Ok(socket)
}

/// Returns the default path of the socket on which the owner of the state folder listens. Creates
/// the folder for sockets if there is none.
pub(super) fn usual_socket(setup: &Setup) -> anyhow::Result<PathBuf> {
    make_private(&setup.folders.runtime)?;
    Ok(setup.folders.runtime.join(socket_name(setup.state.as_deref())?))
}

/// Returns the file name of the socket for the state folder `state`, or for an ephemeral server if
/// `state` is `None`. The name is short even if the path of the folder is long.
fn socket_name(state: Option<&Path>) -> anyhow::Result<String> {
    let Some(state) = state else { return Ok(format!("ephemeral-{}.sock", std::process::id())) };
    let folder = state.canonicalize().map_err(|error| {
        anyhow::anyhow!("cannot find the state folder {}: {error}", visible_path(state))
    })?;
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    Ok(format!("{}.sock", &hash[..16]))
}

/// Makes writes beyond the file size limit fail instead of killing the process.
pub(super) fn survive_full_files() -> io::Result<Signal> {
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
}
