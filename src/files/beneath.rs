//! A folder from which only files inside the folder can be opened. A name from a model, a template
//! or a project is resolved once, by the kernel, and exactly the resolved file is read. Must not
//! know who asks.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::path::expanded;
use super::project::Projects;
use super::read::{
    ReadOptions, check_range, check_size, load_open, open, part, refuse_special, refused,
};
use super::{FileError, FileText};

/// Flags for opening only a handle, which touches no device and waits for no FIFO.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Maximum number of attempts when something is renamed while the kernel resolves a name.
const MAX_TRIES: usize = 16;

/// A folder that is held open. Names are resolved from it and may not lead out of it.
#[derive(Debug)]
pub struct Beneath {
    folder: File,
    /// Name of the folder as it was given.
    named: PathBuf,
    way: Way,
}

/// The method that keeps names from leading out of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The kernel refuses to leave the folder (Linux 5.6 and later).
    Kernel,
    /// The open file's own path is checked afterwards.
    Asking,
}

/// A resolved file that is held open. Its name is not resolved again.
#[derive(Debug)]
pub struct Opened {
    handle: File,
    path: PathBuf,
    within: Option<PathBuf>,
}

/// A name resolved for a project.
#[derive(Debug)]
pub(crate) struct Named {
    /// True if the name leads to a place within the project. A name that cannot be resolved counts
    /// as outside, unless it is merely missing from the project.
    pub is_inside: bool,
    /// The file, or the reason why it cannot be opened.
    pub file: Result<Opened, FileError>,
}

impl Beneath {
    /// Opens the folder at `folder`, an absolute path. Links to it are followed.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Unreadable`].
    pub fn new(folder: &Path) -> Result<Self, FileError> {
        static WAY: OnceLock<Way> = OnceLock::new();
        Self::by(folder, *WAY.get_or_init(best_way))
    }

    fn by(folder: &Path, way: Way) -> Result<Self, FileError> {
        let held = rustix::fs::open(folder, HANDLE | OFlags::DIRECTORY, Mode::empty());
        let held = held.map_err(|error| refused(folder, error.into()))?;
        Ok(Self { folder: held.into(), named: folder.to_owned(), way })
    }

    /// Returns the folder's name as it was given.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// Returns the folder's real path, without links.
    ///
    /// # Errors
    /// [`FileError`] when the folder was deleted.
    pub fn place(&self) -> Result<PathBuf, FileError> {
        place_of(&self.folder).map_err(|error| refused(&self.named, error))
    }

    /// Opens the file `name`, relative to the folder or absolute, if it is in the folder. A link
    /// counts as its target.
    ///
    /// # Errors
    /// [`FileError::Outside`], or the reason why a file within the folder cannot be opened.
    pub fn open(&self, name: &Path) -> Result<Opened, FileError> {
        let handle = self.resolved(name)?;
        // Needed for both methods of keeping names inside, so that both return the same path.
        let place = place_of(&handle).map_err(|_| self.outside(name))?;
        match place.strip_prefix(self.place()?) {
            Ok(below) => {
                let (path, within) = (self.named.join(below), Some(self.named.clone()));
                Ok(Opened { handle, path, within })
            }
            Err(_) => Err(self.outside(name)),
        }
    }

    /// Returns at most `limit` names from a folder within this one, in no particular order.
    ///
    /// # Errors
    /// Same as [`Beneath::open`].
    pub fn names(&self, folder: &Path, limit: usize) -> Result<Vec<String>, FileError> {
        let Opened { handle, path, .. } = self.open(folder)?;
        let unreadable = |error: Errno| refused(&path, error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = rustix::fs::openat(&handle, ".", flags, Mode::empty()).map_err(unreadable)?;
        let entries = Dir::new(listed).map_err(unreadable)?;
        let names = entries.filter_map(Result::ok);
        let names = names.filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()));
        Ok(names.filter(|name| name != "." && name != "..").take(limit).collect())
    }

    fn resolved(&self, name: &Path) -> Result<File, FileError> {
        if let Some(relative) = self.below(name).filter(|_| self.way == Way::Kernel) {
            match within(&self.folder, relative) {
                // The name leads out, perhaps to come back in again.
                Err(Errno::XDEV | Errno::AGAIN) => {}
                Err(error) => return Err(refused(&self.named.join(relative), error.into())),
                Ok(handle) => return Ok(handle.into()),
            }
        }
        let handle = rustix::fs::openat(&self.folder, name, HANDLE, Mode::empty());
        // Errors must not reveal what exists outside.
        handle.map(File::from).map_err(|_| self.outside(name))
    }

    /// Makes a name relative to the folder, byte for byte: even a final slash has a meaning.
    fn below<'a>(&self, name: &'a Path) -> Option<&'a Path> {
        let name = name.as_os_str().as_bytes();
        if !name.starts_with(b"/") {
            return Some(Path::new(OsStr::from_bytes(name)));
        }
        let folder = self.named.as_os_str().as_bytes();
        let folder = folder.strip_suffix(b"/").unwrap_or(folder);
        let below = name.strip_prefix(folder)?.strip_prefix(b"/")?;
        let start = below.iter().position(|byte| *byte != b'/')?;
        Some(Path::new(OsStr::from_bytes(&below[start..])))
    }

    fn outside(&self, name: &Path) -> FileError {
        FileError::Outside { path: name.to_owned(), folder: self.named.clone() }
    }
}

impl Opened {
    /// Resolves an absolute name, wherever it leads.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Unreadable`].
    pub fn at(path: &Path) -> Result<Self, FileError> {
        let unreadable = |error: io::Error| refused(path, error);
        let handle = rustix::fs::open(path, HANDLE, Mode::empty());
        let handle = handle.map_err(|error| unreadable(error.into()))?;
        let handle = File::from(handle);
        let path = place_of(&handle).map_err(unreadable)?;
        Ok(Self { handle, path, within: None })
    }

    /// Returns the file's path: the folder's name plus the path below it if it was opened in a
    /// folder, otherwise the real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder from which the file was opened, as the folder was given; `None` for a
    /// file opened by [`Opened::at`].
    pub fn within(&self) -> Option<&Path> {
        self.within.as_deref()
    }

    /// Checks that this is a regular file of at most `limit` bytes, without opening it.
    ///
    /// # Errors
    /// [`FileError::TooLarge`], [`FileError::IsDirectory`], [`FileError::NotRegular`].
    pub fn check(&self, limit: u64) -> Result<(), FileError> {
        let metadata = self.handle.metadata().map_err(|error| refused(&self.path, error))?;
        refuse_special(&self.path, &metadata)?;
        check_size(&self.path, metadata.len(), limit)
    }

    /// Reads the whole text, of at most `limit` bytes.
    ///
    /// # Errors
    /// Same as [`read`](super::read()).
    pub fn text(&self, limit: u64) -> Result<String, FileError> {
        self.check(limit)?;
        load_open(&self.path, open(&name_of(&self.handle), &self.path)?, limit)
    }

    /// Reads the whole file, or the lines of `range`, like [`read`](super::read()).
    ///
    /// # Errors
    /// Same as [`read`](super::read()).
    pub fn read(
        &self,
        range: Option<(u64, Option<u64>)>,
        options: &ReadOptions,
    ) -> Result<FileText, FileError> {
        check_range(range)?;
        part(&self.path, self.text(options.max_bytes)?, range, &mut Projects::default())
    }
}

/// Resolves a name from a model: relative to the project, absolute, or starting with `~`. Dots and
/// links have the meaning that the kernel gives them.
///
/// # Errors
/// [`FileError::NotAbsolute`] for a relative name without a project, [`FileError::NotLocal`].
pub(crate) fn resolve(name: &str, project: Option<&Path>) -> Result<Named, FileError> {
    let path = match (name.starts_with(['/', '~']), project) {
        (false, Some(_)) => PathBuf::from(name),
        _ => expanded(name)?,
    };
    let Some(project) = project else {
        return Ok(Named { is_inside: false, file: Opened::at(&path) });
    };
    let outside = |path: &Path| FileError::Outside { path: path.into(), folder: project.into() };
    let folder = Beneath::new(project).map_err(|_| outside(&path));
    Ok(match folder.and_then(|folder| folder.open(&path)) {
        // `join` keeps an absolute name as it is.
        Err(FileError::Outside { .. }) => {
            Named { is_inside: false, file: Opened::at(&project.join(path)) }
        }
        file => Named { is_inside: true, file },
    })
}

/// Resolves a name that may not lead out of the folder at any step.
fn within(folder: &File, name: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let open = || rustix::fs::openat2(folder, name, HANDLE, Mode::empty(), resolve);
    let mut opened = open();
    for _ in 1..MAX_TRIES {
        if opened.as_ref().err() != Some(&Errno::AGAIN) {
            break;
        }
        opened = open();
    }
    opened
}

/// Tests whether the kernel can keep a name inside a folder; old kernels and some sandboxes cannot.
fn best_way() -> Way {
    let flags = HANDLE | OFlags::DIRECTORY;
    match rustix::fs::openat2(CWD, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => Way::Asking,
        _ => Way::Kernel,
    }
}

/// Returns a path that reopens an open file, even if it was renamed or replaced.
fn name_of(handle: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Returns the path of an open file; fails if it was deleted or replaced.
fn place_of(handle: &File) -> io::Result<PathBuf> {
    let place = fs::read_link(name_of(handle))?;
    let (held, named) = (rustix::fs::fstat(handle)?, rustix::fs::lstat(&place)?);
    match (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) {
        true => Ok(place),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests;
