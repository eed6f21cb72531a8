//! Ownership of the state folder, and the address of its owner.
//!
//! The owner is the one process that holds the folder's lock; the operating system frees the lock
//! however that process ends. The owner writes the path of its socket into the folder, so that
//! other processes find the socket.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::whole_file::create;

/// A state folder owned by this process for as long as the value lives.
#[derive(Debug)]
pub struct Owned {
    folder: PathBuf,
    /// The locked file; `None` while the folder cannot be written and has no file to lock.
    lock: Arc<Mutex<Option<File>>>,
}

/// Error from taking or preparing a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A running server, or this process itself, owns the folder.
    #[error("the state folder {} belongs to {owner}", crate::visible::visible_path(path))]
    Taken {
        /// The folder.
        path: PathBuf,
        /// Owner of the folder.
        owner: Owner,
    },
    /// The folder cannot be created or written.
    #[error("cannot use the folder {}: {cause}", crate::visible::visible_path(path))]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Reason why the folder cannot be used.
        cause: io::Error,
    },
    /// The folder belongs to another user, or is to be created in such a folder.
    #[error(
        "the folder {} belongs to user {user}, and this program runs as user {}; run it as that user, \
         give the folder to this user with `sudo chown -R {} {}`, or name another folder",
        crate::visible::visible_path(path),
        own(),
        own(),
        crate::visible::visible_path(path)
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Id of the user whose folder it is.
        user: u32,
    },
    /// This folder for sockets belongs to another user or is accessible to others.
    #[error(
        "the folder {} must be yours and closed to other users; run chmod 700 on it, remove it, or run \
         contexture serve --unix PATH with another socket",
        crate::visible::visible_path(.0)
    )]
    NotPrivate(PathBuf),
}

/// The owner of a folder, as recorded in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    /// Process id; 0 if unknown.
    pub pid: u32,
    /// Path of the Unix socket on which the owner listens; `None` until it listens.
    pub socket: Option<PathBuf>,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            // A folder that cannot be written names no owner.
            0 => formatter.write_str("another server"),
            own if own == std::process::id() => {
                formatter.write_str("this process, which has it open already; close it first")
            }
            other => write!(formatter, "the server with process id {other}"),
        }
    }
}

const LOCK: &str = "lock";
const NOTE: &str = "server";
/// Flag that refuses symbolic links: somebody who planted a link could choose the file that is
/// written.
const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

impl Owned {
    /// Creates the folder if needed and takes its lock. A folder that is read-only or on a full
    /// disk is opened for reading only; the function from [`relock`](Self::relock) can take the
    /// lock later.
    ///
    /// # Errors
    /// [`FolderError::Taken`] names the owner; [`FolderError::Unusable`] gives the cause.
    pub fn take(folder: &Path) -> Result<Self, FolderError> {
        let unusable = |cause| FolderError::Unusable { path: folder.to_owned(), cause };
        check_owner(folder)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        let lock = match lock(folder) {
            Ok(lock) => Some(lock),
            Err(Unlocked::Taken) => {
                let owner = owner(folder).unwrap_or_default();
                return Err(FolderError::Taken { path: folder.to_owned(), owner });
            }
            Err(Unlocked::Failed(cause)) if may_be_read(&cause) => None,
            Err(Unlocked::Failed(cause)) if is_link(&cause) => {
                let said = format!("its file `{LOCK}` must not be a link");
                return Err(unusable(io::Error::other(said)));
            }
            Err(Unlocked::Failed(cause)) => return Err(unusable(cause)),
        };
        let owned = Self { folder: folder.to_owned(), lock: Arc::new(Mutex::new(lock)) };
        // In a read-only folder no note can be left; only the lock matters.
        if let Err(FolderError::Unusable { cause, .. }) = owned.note(None)
            && !may_be_read(&cause)
        {
            return Err(unusable(cause));
        }
        Ok(owned)
    }

    /// Returns a function that takes the folder's lock, unless this owner has it already.
    pub fn relock(&self) -> Box<dyn FnMut() -> Result<(), String> + Send> {
        let (folder, held) = (self.folder.clone(), Arc::downgrade(&self.lock));
        Box::new(move || {
            let Some(held) = held.upgrade() else { return Err("the server has ended".to_owned()) };
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.is_none() {
                *held = Some(lock(&folder).map_err(|wrong| match wrong {
                    Unlocked::Taken => "another server uses the state folder".to_owned(),
                    Unlocked::Failed(cause) => cause.to_string(),
                })?);
            }
            Ok(())
        })
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records, for other processes, the socket on which this owner listens, if any.
    ///
    /// # Errors
    /// [`FolderError::Unusable`].
    pub fn note(&self, socket: Option<&Path>) -> Result<(), FolderError> {
        let socket = socket.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let text = format!("{}\n{socket}\n", std::process::id());
        let draft = self.folder.join(format!("{NOTE}.new"));
        let written = create(&draft)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&draft, self.folder.join(NOTE)));
        written.map_err(|cause| FolderError::Unusable { path: self.folder.clone(), cause })
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // The note is only a hint; the lock is what counts.
        let _ = std::fs::remove_file(self.folder.join(NOTE));
    }
}

/// Reason why a lock was not taken.
enum Unlocked {
    Taken,
    Failed(io::Error),
}

/// Takes the lock of a folder. An existing lock file can be taken even in a read-only folder.
fn lock(folder: &Path) -> Result<File, Unlocked> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(NO_LINKS);
    let opened = match options.open(&path) {
        Err(error) if may_be_read(&error) && path.exists() => File::open(&path),
        opened => opened,
    };
    let file = opened.map_err(Unlocked::Failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Unlocked::Taken),
        Err(TryLockError::Error(cause)) => Err(Unlocked::Failed(cause)),
    }
}

/// Returns whether a file was not opened because it is a link.
fn is_link(cause: &io::Error) -> bool {
    cause.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Returns whether a folder that cannot be written for this reason may still be read.
fn may_be_read(cause: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(cause.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Reads which process owns the folder, if one has recorded itself there.
pub fn owner(folder: &Path) -> Option<Owner> {
    let text = std::fs::read_to_string(folder.join(NOTE)).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.parse().ok()?;
    let socket = lines.next().filter(|line| !line.is_empty()).map(PathBuf::from);
    Some(Owner { pid, socket })
}

/// Returns the id of the user as whom this program runs.
fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Checks that a folder belongs to this user. If the folder does not exist, checks the nearest
/// folder above it, which may also be the superuser's. Files in the home of another user would be
/// lost to this user later.
///
/// # Errors
/// [`FolderError::Foreign`].
pub fn check_owner(folder: &Path) -> Result<(), FolderError> {
    let user = |path: &Path| path.metadata().ok().map(|status| status.uid());
    let Some((path, user)) = folder.ancestors().find_map(|path| Some((path, user(path)?))) else {
        return Ok(());
    };
    let is_open = path != folder && user == 0;
    match user == own() || is_open {
        true => Ok(()),
        false => Err(FolderError::Foreign { path: path.to_owned(), user }),
    }
}

/// Creates a folder that only this user may enter, or checks that an existing folder is private in
/// the same way.
///
/// # Errors
/// [`FolderError::Unusable`], [`FolderError::Foreign`], [`FolderError::NotPrivate`].
pub fn make_private(path: &Path) -> Result<(), FolderError> {
    let unusable = |cause| FolderError::Unusable { path: path.to_owned(), cause };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
    let status = std::fs::symlink_metadata(path).map_err(unusable)?;
    if status.uid() != own() {
        return Err(FolderError::Foreign { path: path.to_owned(), user: status.uid() });
    }
    match status.is_dir() && status.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(FolderError::NotPrivate(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("state");
        let first = Owned::take(&folder).unwrap();
        first.note(Some(Path::new("/run/x.sock"))).unwrap();
        let Err(FolderError::Taken { owner, .. }) = Owned::take(&folder) else {
            panic!("two owners");
        };
        let socket = Some(PathBuf::from("/run/x.sock"));
        assert_eq!(owner, Owner { pid: std::process::id(), socket });
        drop(first);
        assert_eq!(super::owner(&folder), None);
        Owned::take(&folder).unwrap();
    }

    #[test]
    fn a_folder_for_sockets_must_be_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        make_private(&path).unwrap();
        make_private(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(make_private(&path), Err(FolderError::NotPrivate(_))));
    }
}
