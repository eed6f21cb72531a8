//! Files and folders that are held by a handle of the kernel (`O_PATH`). Taking a handle neither
//! opens a device nor waits for a FIFO.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::super::{names_in, note_disk, open_at_once};

/// Flags to get a handle without opening the file.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Maximum number of attempts to resolve a name while other programs rename files.
const MAX_TRIES: usize = 16;

/// A resolved file or folder. Its name is not resolved again.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Resolves a path, wherever it leads.
    pub fn at(path: &Path) -> io::Result<Self> {
        note_disk();
        let handle = rustix::fs::open(path, HANDLE, Mode::empty())?;
        Ok(Self(handle.into()))
    }

    /// Resolves the path of a folder.
    pub fn folder(path: &Path) -> io::Result<Self> {
        note_disk();
        let handle = rustix::fs::open(path, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self(handle.into()))
    }

    /// Resolves a name from this folder, wherever it leads.
    pub fn resolve(&self, name: &Path) -> io::Result<Self> {
        let handle = rustix::fs::openat(&self.0, name, HANDLE, Mode::empty())?;
        Ok(Self(handle.into()))
    }

    /// Resolves a relative path, no step of which may leave this folder. Fails with
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) if a step does, even if a later step
    /// returns to the folder, or if other programs rename files at every attempt.
    pub fn within(&self, name: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MAX_TRIES {
            match rustix::fs::openat2(&self.0, name, HANDLE, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
                Ok(handle) => return Ok(Self(handle.into())),
            }
        }
        Err(Errno::XDEV.into())
    }

    /// Returns the path, without links. Fails if the file was deleted or replaced.
    pub fn place(&self) -> io::Result<PathBuf> {
        let place = std::fs::read_link(self.name())?;
        let (held, named) = (rustix::fs::fstat(&self.0)?, rustix::fs::lstat(&place)?);
        match (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) {
            true => Ok(place),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Opens the file for reading, even if it was renamed or replaced.
    pub fn open(&self) -> io::Result<File> {
        open_at_once(&self.name())
    }

    /// Returns at most `limit` names from this folder, in no particular order. Leaves out names
    /// that are not UTF-8.
    pub fn names(&self, limit: usize) -> io::Result<Vec<String>> {
        names_in(&self.0, limit)
    }

    fn name(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Tests whether [`Held::within`] works: the kernel must be Linux 5.6 or later, and some
/// sandboxes block the call.
pub fn keeps_inside() -> bool {
    static KEEPS: OnceLock<bool> = OnceLock::new();
    *KEEPS.get_or_init(|| {
        let flags = HANDLE | OFlags::DIRECTORY;
        let tried = rustix::fs::openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH);
        !matches!(tried, Err(Errno::NOSYS | Errno::PERM | Errno::INVAL))
    })
}
