//! A folder that is held open to write into it. Each name is one part and is resolved from the
//! folder itself, so that no link leads out of it, whoever renames what at the same time.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// End of the name of a file that is not whole yet.
const DRAFT: &str = ".new";
/// Flags for each file and folder: a link is refused, and a pipe is not waited for.
const PLAIN: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The folder.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder at a path. Links to it are followed.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// Opens a folder in this one, and creates it if there is none. Returns `None` for anything
    /// else of this name, such as a link.
    pub fn below(&self, name: &str) -> io::Result<Option<Self>> {
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Err(error) if error != Errno::EXIST => return Err(error.into()),
            _ => {}
        }
        match rustix::fs::openat(&self.0, name, PLAIN | OFlags::DIRECTORY, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => Ok(None),
            opened => Ok(Some(Self(opened?))),
        }
    }

    /// Opens a file in this folder for reading. A link is refused.
    pub fn open(&self, name: &str) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.0, name, PLAIN, Mode::empty())?.into())
    }

    /// Replaces or creates a file that is private to the user. If anything fails, the file stays
    /// as it was.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let draft = format!("{name}{DRAFT}");
        let remove = || rustix::fs::unlinkat(&self.0, &*draft, AtFlags::empty());
        let _ = remove();
        let flags = PLAIN | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file: File =
            rustix::fs::openat(&self.0, &*draft, flags, Mode::from_raw_mode(0o600))?.into();
        let written = file.write_all(content).and_then(|()| file.sync_data());
        let written =
            written.and_then(|()| Ok(rustix::fs::renameat(&self.0, &*draft, &self.0, name)?));
        if written.is_err() {
            let _ = remove();
        }
        written
    }
}
