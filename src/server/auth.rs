//! Authentication: decides whether a client may connect, by its user or by a secret.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::guests::RemotePeer;
use crate::whole_file;

/// Maximum number of symbolic links to follow, as on Linux.
const LONGEST_CHAIN: usize = 40;
/// Maximum number of bytes to read from a secret file; the secret is its first line.
const LONGEST_FILE: u64 = 64 << 10;

/// Number of random bytes in a secret that the server makes.
const SECRET_BYTES: usize = 32;

/// Proof that a client still has to give before its messages are read.
#[derive(Debug, Clone)]
pub enum Admission {
    /// No proof: the client is in this process, on stdio, or, as the server's user, on a Unix
    /// socket. Also the state of every client that has given its proof.
    Granted,
    /// No proof: the client came over TCP as the server's user. The client may still send this
    /// secret first, if there is one.
    Offered(Option<SecretHash>),
    /// This secret, which the client must send as its first line or payload.
    Demanded(SecretHash),
    /// No proof is accepted: the client must be disconnected.
    Refused,
}

/// Hash of a secret. The hash is never printed.
#[derive(Clone)]
pub struct SecretHash(blake3::Hash);

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

impl SecretHash {
    /// Hashes the first line of `text`, which is the secret that clients send.
    pub fn new(text: &str) -> Self {
        Self(blake3::hash(text.lines().next().unwrap_or_default().as_bytes()))
    }

    /// Returns whether `line` is the secret. Compares hashes in constant time.
    pub(crate) fn is(&self, line: &[u8]) -> bool {
        self.0 == blake3::hash(line)
    }
}

impl Admission {
    /// Checks a line or payload from the client. Returns `Some(true)` for a message, `Some(false)`
    /// for the secret, and `None` if the client must be disconnected.
    pub fn admit(&mut self, line: &[u8]) -> Option<bool> {
        let was_secret = self.secret().is_some_and(|secret| secret.is(line));
        if self.is_pending() && !was_secret {
            return None;
        }
        *self = Self::Granted;
        Some(!was_secret)
    }

    /// Returns the secret that may or must come first, if there is one.
    pub(super) fn secret(&self) -> Option<SecretHash> {
        match self {
            Self::Offered(secret) => secret.clone(),
            Self::Demanded(secret) => Some(secret.clone()),
            Self::Granted | Self::Refused => None,
        }
    }

    /// Returns whether the client still has to prove something.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Demanded(_) | Self::Refused)
    }
}

/// Error from reading a secret file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    /// The file cannot be read.
    #[error("cannot read the secret file {}: {cause}", crate::visible::visible_path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Reason why the file cannot be read.
        cause: std::io::Error,
    },
    /// Other users can read or change this file.
    #[error(
        "the secret file {} can be read or changed by others; run chmod 600 on it",
        crate::visible::visible_path(.0)
    )]
    Exposed(PathBuf),
    /// This file, or this link that leads to it, belongs to another user.
    #[error(
        "the secret file {} belongs to another user, who may know the secret; use one of your own",
        crate::visible::visible_path(.0)
    )]
    Foreign(PathBuf),
    /// The first line of this file is empty, or there is none.
    #[error(
        "the secret file {} has no secret; write one on its first line",
        crate::visible::visible_path(.0)
    )]
    Empty(PathBuf),
}

/// Reads the secret from `chosen`, or else from the first of `usual` that exists. Returns `None` if
/// no file is chosen and none exists.
///
/// # Errors
/// Fails if the chosen or found file cannot be used.
pub(crate) fn read_secret(
    chosen: Option<&Path>,
    usual: &[PathBuf],
) -> Result<Option<SecretHash>, SecretError> {
    let found = || usual.iter().find(|path| path.exists()).map(PathBuf::as_path);
    let Some(path) = chosen.or_else(found) else { return Ok(None) };
    check_links(path)?;
    let text = read_private(path)?;
    match text.lines().next() {
        None | Some("") => Err(SecretError::Empty(path.to_owned())),
        Some(_) => Ok(Some(SecretHash::new(&text))),
    }
}

/// Returns a new random secret, as hex digits.
///
/// # Errors
/// Fails if the operating system has no random bytes.
pub(crate) fn random_secret() -> std::io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

/// Makes a random secret and writes it to the file `path`, which only this user can read. Replaces
/// the file if it exists.
///
/// # Errors
/// Fails if the operating system has no random bytes, or the file cannot be written.
pub(crate) fn make_secret(path: &Path) -> std::io::Result<()> {
    let secret = random_secret()?;
    whole_file::replace(path, |file, _| writeln!(file, "{secret}"))
}

/// Fails if `path` is a link, or leads to a link, that was made by another user, who could lead the
/// server to any file. Links made by root are accepted: root can read everything anyway.
fn check_links(path: &Path) -> Result<(), SecretError> {
    let mut path = path.to_owned();
    for _ in 0..LONGEST_CHAIN {
        let Ok(target) = std::fs::read_link(&path) else { return Ok(()) };
        let status = std::fs::symlink_metadata(&path);
        if status.is_ok_and(|status| ![0, own_user()].contains(&status.uid())) {
            return Err(SecretError::Foreign(path));
        }
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    // Opening the path will fail with the system's own error.
    Ok(())
}

/// Returns the content of a regular file that only this user can access. Checks the open file, not
/// its path, so that nobody can put another file at the path between the check and the reading.
fn read_private(path: &Path) -> Result<String, SecretError> {
    let unreadable = |cause| SecretError::Unreadable { path: path.to_owned(), cause };
    // Keeps a named pipe from blocking the server until somebody writes to it.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(unreadable)?;
    let status = file.metadata().map_err(unreadable)?;
    if !status.is_file() {
        return Err(unreadable(std::io::Error::other("it is not a regular file")));
    }
    if status.uid() != own_user() {
        return Err(SecretError::Foreign(path.to_owned()));
    }
    if status.mode() & 0o077 != 0 {
        return Err(SecretError::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    file.take(LONGEST_FILE).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Decides what a TCP client must prove. A client on this machine that runs as the server's user
/// needs no proof; any other client needs the secret, and is refused if there is none.
pub(crate) fn tcp_admission(peer: RemotePeer, secret: Option<&SecretHash>) -> Admission {
    match (peer, secret.cloned()) {
        (RemotePeer::Own, secret) => Admission::Offered(secret),
        (_, Some(secret)) => Admission::Demanded(secret),
        (_, None) => Admission::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demanded_secret_must_come_first_and_only_once() {
        let secret = SecretHash::new("s3cret pässword\nmore");
        let mut admission = Admission::Demanded(secret.clone());
        assert_eq!(admission.admit("s3cret pässword".as_bytes()), Some(false));
        assert_eq!(admission.admit(b"(:id 1 :method ping)"), Some(true));
        assert_eq!(Admission::Demanded(secret.clone()).admit(b"s3cret"), None);
        assert_eq!(Admission::Refused.admit(b"anything"), None);
        let mut offered = Admission::Offered(Some(secret));
        assert_eq!(offered.admit(b"(:id 1 :method ping)"), Some(true));
        assert_eq!(format!("{:?}", SecretHash::new("x")), "SecretHash(…)");
    }

    #[test]
    fn secret_files_must_be_private_and_not_empty() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let check = |content: &str, mode, expected: &str| {
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let outcome = read_secret(Some(&path), &[]);
            let said =
                outcome.map_or_else(|error| error.to_string(), |secret| format!("{secret:?}"));
            assert!(said.contains(expected), "{said}");
        };
        for mode in [0o644, 0o640, 0o620, 0o602, 0o606] {
            check("x\n", mode, "chmod 600");
        }
        check("\nx", 0o600, "has no secret");
        check("x\n", 0o600, "Some(SecretHash(…))");
        assert!(read_secret(None, &[dir.path().join("none")]).unwrap().is_none());
        assert!(read_secret(Some(&dir.path().join("none")), &[]).is_err());
        assert!(read_secret(Some(dir.path()), &[]).is_err());
    }

    #[test]
    fn secret_files_and_links_to_them_must_be_the_users_own() {
        use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let [file, near, far] = ["file", "near", "far"].map(|name| dir.path().join(name));
        std::fs::write(&file, "x\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("file", &near).unwrap();
        symlink(&near, &far).unwrap();
        let refused = |path: &Path| match read_secret(Some(path), &[]) {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        assert_eq!(refused(&far), None);
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(refused(&dir.path().join("loop")).unwrap().contains("cannot read"));
        // Only root can change a file's owner.
        if own_user() == 0 {
            lchown(&near, Some(1), None).unwrap();
            let said = refused(&far).unwrap();
            assert!(said.contains(&*near.to_string_lossy()), "{said}");
            assert!(said.contains("belongs to another user"), "{said}");
            lchown(&near, Some(0), None).unwrap();
            chown(&file, Some(1), None).unwrap();
            assert!(refused(&file).unwrap().contains("belongs to another user"));
        }
    }
}
