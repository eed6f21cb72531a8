//! A folder from which only files inside the folder can be opened. A name from a model, a template
//! or a project is resolved once, by the kernel, and exactly the resolved file is read. This module
//! must not know who asks.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::path::expanded;
use super::project::Projects;
use super::read::{
    ReadOptions, check_range, check_size, load_open, part, refused, seen_open, size_of_regular,
};
use super::{FileError, FileText};
use crate::system::{Held, keeps_inside};

/// A folder that is held open. Names are resolved from it, and the files must be inside it.
#[derive(Debug)]
pub struct Beneath {
    folder: Held,
    /// Name of the folder as it was given.
    named: PathBuf,
    /// True if the operating system keeps names inside the folder. Otherwise, only the path of the
    /// opened file is checked afterwards.
    is_kept: bool,
}

/// A resolved file that is held open. Its name is not resolved again.
#[derive(Debug)]
pub struct OpenedFile {
    held: Held,
    path: PathBuf,
    within: Option<PathBuf>,
}

/// A name resolved for a project.
#[derive(Debug)]
pub struct Named {
    /// Real path of the file, or the path that was tried if the file cannot be opened; `None` if
    /// the name stays within the project, as far as it can be resolved.
    pub outside: Option<PathBuf>,
    /// The file, or the reason why it cannot be opened.
    pub file: Result<OpenedFile, FileError>,
}

impl Beneath {
    /// Opens the folder at `folder`, an absolute path. Links to it are followed.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Unreadable`].
    pub fn new(folder: &Path) -> Result<Self, FileError> {
        let held = Held::folder(folder).map_err(|error| refused(folder, error))?;
        Ok(Self { folder: held, named: folder.to_owned(), is_kept: keeps_inside() })
    }

    /// Returns the folder's name as it was given.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// Returns the folder's real path, without links.
    ///
    /// # Errors
    /// [`FileError`] if the folder has been deleted.
    pub fn place(&self) -> Result<PathBuf, FileError> {
        self.folder.place().map_err(|error| refused(&self.named, error))
    }

    /// Opens the file `name`, relative to the folder or absolute, if it is in the folder. A link
    /// counts as its target.
    ///
    /// # Errors
    /// [`FileError::Outside`], or the reason why a file within the folder cannot be opened.
    pub fn open(&self, name: &Path) -> Result<OpenedFile, FileError> {
        let held = self.resolved(name)?;
        // This check is made even if the system keeps names inside, so that the path is always the
        // same.
        let place = held.place().map_err(|_| self.outside(name))?;
        let below = place.strip_prefix(self.place()?).map_err(|_| self.outside(name))?;
        let (path, within) = (self.named.join(below), Some(self.named.clone()));
        Ok(OpenedFile { held, path, within })
    }

    /// Returns at most `limit` names from a folder within this one, in no particular order.
    ///
    /// # Errors
    /// Same as [`Beneath::open`].
    pub fn names(&self, folder: &Path, limit: usize) -> Result<Vec<String>, FileError> {
        let OpenedFile { held, path, .. } = self.open(folder)?;
        held.names(limit).map_err(|error| refused(&path, error))
    }

    fn resolved(&self, name: &Path) -> Result<Held, FileError> {
        if let Some(relative) = self.below(name).filter(|_| self.is_kept) {
            match self.folder.within(relative) {
                // The path leaves the folder, and may come back into it.
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
                Err(error) => return Err(refused(&self.named.join(relative), error)),
                Ok(held) => return Ok(held),
            }
        }
        // Errors must not reveal what exists outside.
        self.folder.resolve(name).map_err(|_| self.outside(name))
    }

    /// Makes a name relative to the folder, byte for byte: even a final slash has a meaning.
    /// Returns `None` for an absolute name that is not below the folder's name.
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

impl OpenedFile {
    /// Resolves an absolute name, wherever it leads.
    ///
    /// # Errors
    /// [`FileError::Missing`], [`FileError::Unreadable`].
    pub fn at(path: &Path) -> Result<Self, FileError> {
        let unreadable = |error| refused(path, error);
        let held = Held::at(path).map_err(unreadable)?;
        let path = held.place().map_err(unreadable)?;
        Ok(Self { held, path, within: None })
    }

    /// Returns the file's path. For a file that was opened in a folder, this is the folder's name
    /// plus the path below the folder; otherwise, it is the real path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder from which the file was opened, as the folder was given; `None` for a
    /// file opened by [`OpenedFile::at`].
    pub fn within(&self) -> Option<&Path> {
        self.within.as_deref()
    }

    /// Checks that this is a regular file of at most `limit` bytes, without opening it.
    ///
    /// # Errors
    /// [`FileError::TooLarge`], [`FileError::IsDirectory`], [`FileError::NotRegular`].
    pub fn check(&self, limit: u64) -> Result<(), FileError> {
        let size = size_of_regular(&self.path, self.held.metadata())?;
        check_size(&self.path, size, limit)
    }

    /// Reads the whole text, of at most `limit` bytes.
    ///
    /// # Errors
    /// Same as [`read`](super::read()).
    pub fn text(&self, limit: u64) -> Result<String, FileError> {
        self.check(limit)?;
        let file = self.held.open().map_err(|error| refused(&self.path, error))?;
        load_open(&self.path, file, limit)
    }

    /// Reads the content of a file of at most `limit` bytes that begins as a picture or PDF; `None`
    /// for any other file.
    ///
    /// # Errors
    /// Same as [`read`](super::read()).
    pub fn seen(&self, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
        self.check(u64::MAX)?;
        let file = self.held.open().map_err(|error| refused(&self.path, error))?;
        seen_open(&self.path, file, limit)
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
/// [`FileError::NotAbsolute`] for a relative name without a project, and for a name such as
/// `~user/x`; [`FileError::NotLocal`].
pub fn resolve(name: &str, project: Option<&Path>) -> Result<Named, FileError> {
    let path = match (name.starts_with(['/', '~']), project) {
        (false, Some(_)) => PathBuf::from(name),
        _ => expanded(name)?,
    };
    let Some(project) = project else {
        return Ok(Named::outside(path));
    };
    let outside = |path: &Path| FileError::Outside { path: path.into(), folder: project.into() };
    let folder = Beneath::new(project).map_err(|_| outside(&path));
    Ok(match folder.and_then(|folder| folder.open(&path)) {
        // `join` keeps an absolute name as it is.
        Err(FileError::Outside { .. }) => Named::outside(project.join(path)),
        file => Named { outside: None, file },
    })
}

impl Named {
    fn outside(tried: PathBuf) -> Self {
        let file = OpenedFile::at(&tried);
        let place = file.as_ref().map_or(tried, |file| file.path().to_owned());
        Self { outside: Some(place), file }
    }
}

#[cfg(test)]
mod tests;
