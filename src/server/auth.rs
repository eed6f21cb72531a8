//! Who may connect: the same user, or whoever knows the secret.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

/// What a client still has to show before its messages are read.
#[derive(Debug, Clone)]
pub enum Admission {
    /// Nothing.
    Granted,
    /// Nothing, but it may send this secret first, as clients do that do not know they need not.
    Offered(Secret),
    /// Its first message must be this secret.
    Demanded(Secret),
    /// Nothing it could show would do.
    Refused,
}

/// A secret; it is never printed.
#[derive(Clone)]
pub struct Secret(blake3::Hash);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    /// The first line of the text, which is what clients send.
    pub fn new(text: &str) -> Self {
        Self(blake3::hash(text.lines().next().unwrap_or_default().as_bytes()))
    }

    /// Whether a line is the secret; hashes are compared in constant time.
    pub(super) fn is(&self, line: &[u8]) -> bool {
        self.0 == blake3::hash(line)
    }
}

impl Admission {
    /// Looks at a line: `Some(true)` when it is a message, `Some(false)` when it was the secret,
    /// `None` when the client must go.
    pub fn admit(&mut self, line: &[u8]) -> Option<bool> {
        let (was_secret, demanded) = match self {
            Self::Granted => (false, false),
            Self::Offered(secret) => (secret.is(line), false),
            Self::Demanded(secret) => (secret.is(line), true),
            Self::Refused => (false, true),
        };
        if demanded && !was_secret {
            return None;
        }
        *self = Self::Granted;
        Some(!was_secret)
    }

    /// The secret that may or must come first.
    pub(super) fn secret(&self) -> Option<Secret> {
        match self {
            Self::Offered(secret) | Self::Demanded(secret) => Some(secret.clone()),
            Self::Granted | Self::Refused => None,
        }
    }

    /// Whether something must still be shown.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Demanded(_) | Self::Refused)
    }
}

/// Why a secret file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error("cannot read the secret file {}: {cause}", crate::visible::visible_path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Others may read it.
    #[error(
        "the secret file {} can be read by others; run chmod 600 on it",
        crate::visible::visible_path(path)
    )]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Its first line is empty.
    #[error("the secret file {} begins with an empty line", crate::visible::visible_path(path))]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the secret from `chosen`, or else from the first of `usual` that exists.
///
/// # Errors
/// When the chosen file, or the usual one that exists, cannot be used.
pub fn read_secret(
    chosen: Option<&Path>,
    usual: &[PathBuf],
) -> Result<Option<Secret>, SecretError> {
    let path = match chosen {
        Some(path) => path.to_owned(),
        None => match usual.iter().find(|path| path.exists()) {
            Some(path) => path.clone(),
            None => return Ok(None),
        },
    };
    let unreadable = |cause| SecretError::Unreadable { path: path.clone(), cause };
    let text = std::fs::read_to_string(&path).map_err(unreadable)?;
    let status = rustix::fs::stat(&path).map_err(|error| unreadable(error.into()))?;
    if Mode::from_raw_mode(status.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
        return Err(SecretError::Exposed { path });
    }
    match text.lines().next() {
        None | Some("") => Err(SecretError::Empty { path }),
        Some(_) => Ok(Some(Secret::new(&text))),
    }
}

/// What a TCP client must show: nothing when it is on this machine and of the same user, else the
/// secret.
pub fn tcp_admission(peer: SocketAddr, local: SocketAddr, secret: Option<&Secret>) -> Admission {
    let same_user = local.ip().is_loopback()
        && peer.ip().is_loopback()
        && peer_user(peer, local) == Some(rustix::process::geteuid().as_raw());
    match (same_user, secret.cloned()) {
        (true, None) => Admission::Granted,
        (true, Some(secret)) => Admission::Offered(secret),
        (false, Some(secret)) => Admission::Demanded(secret),
        (false, None) => Admission::Refused,
    }
}

/// The user who owns the peer's socket, from the kernel's tables; `None` where there are none.
fn peer_user(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| owner_in(&std::fs::read_to_string(table).ok()?, peer, local))
}

/// Finds the row whose local address is `peer` and whose remote address is `local`.
fn owner_in(table: &str, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|row| {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let from = kernel_address(fields.next()?)?;
        let to = kernel_address(fields.next()?)?;
        let user = fields.nth(4)?.parse().ok()?;
        // A socket that its process has closed is listed as root's, and without an inode.
        let owned = fields.nth(1)? != "0";
        (owned && same(from, peer) && same(to, local)).then_some(user)
    })
}

fn same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// Reads `0100007F:1F90`: 32-bit words in the machine's byte order, printed as hex numbers.
fn kernel_address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for start in (0..words.len()).step_by(8) {
        let word = u32::from_str_radix(words.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(SocketAddr::new(four.into(), port));
    }
    let sixteen = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    Some(SocketAddr::new(sixteen.into(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demanded_secret_must_come_first_and_only_once() {
        let secret = Secret::new("s3cret pässword\nmore");
        let mut admission = Admission::Demanded(secret.clone());
        assert_eq!(admission.admit("s3cret pässword".as_bytes()), Some(false));
        assert_eq!(admission.admit(b"(:id 1 :method ping)"), Some(true));
        assert_eq!(Admission::Demanded(secret.clone()).admit(b"s3cret"), None);
        assert_eq!(Admission::Refused.admit(b"anything"), None);
        let mut offered = Admission::Offered(secret);
        assert_eq!(offered.admit(b"(:id 1 :method ping)"), Some(true));
        assert_eq!(format!("{:?}", Secret::new("x")), "Secret(…)");
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
        check("x\n", 0o644, "chmod 600");
        check("\nx", 0o600, "empty line");
        check("x\n", 0o600, "Some(Secret(…))");
        assert!(read_secret(None, &[dir.path().join("none")]).unwrap().is_none());
        assert!(read_secret(Some(&dir.path().join("none")), &[]).is_err());
    }
}
