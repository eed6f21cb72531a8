//! Files and folders that are held open and compared with the file at their path. Special files are
//! not held open.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::{names_in, note_disk, open_with};

/// A resolved file or folder. Its name is not resolved again.
#[derive(Debug)]
pub struct Held {
    /// The path when it was resolved, without links.
    place: PathBuf,
    metadata: Metadata,
    /// The open file; `None` for special files and those that may not be read.
    file: Option<File>,
}

impl Held {
    /// Resolves a path, wherever it leads.
    pub fn at(path: &Path) -> io::Result<Self> {
        note_disk();
        // The kernel and the library must agree on the meaning of the name.
        let named = path.metadata()?;
        let place = path.canonicalize()?;
        let metadata = place.symlink_metadata()?;
        check_same(&named, &metadata)?;
        let is_plain = metadata.is_file() || metadata.is_dir();
        let file = is_plain.then(|| open_same(&place, &metadata).ok()).flatten();
        Ok(Self { place, metadata, file })
    }

    /// Resolves the path of a folder.
    pub fn folder(path: &Path) -> io::Result<Self> {
        let held = Self::at(path)?;
        match held.metadata.is_dir() {
            true => Ok(held),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Resolves a name from this folder, wherever it leads.
    pub fn resolve(&self, name: &Path) -> io::Result<Self> {
        Self::at(&self.place()?.join(name))
    }

    /// Resolves a relative path to a place inside this folder. Fails with
    /// [`CrossesDevices`](io::ErrorKind::CrossesDevices) if the place is outside.
    pub fn within(&self, name: &Path) -> io::Result<Self> {
        match self.resolve(name) {
            Ok(held) if held.place.starts_with(&self.place) => Ok(held),
            Err(error) if self.ends_inside(name) => Err(error),
            _ => Err(io::ErrorKind::CrossesDevices.into()),
        }
    }

    /// Tests whether each step of a name, up to the first that fails, stays in the folder.
    fn ends_inside(&self, name: &Path) -> bool {
        // A folder that is gone has nothing inside.
        let Ok(mut path) = self.place() else { return false };
        for part in name.components() {
            path.push(part);
            match path.canonicalize() {
                Ok(place) if place.starts_with(&self.place) => {}
                Ok(_) => return false,
                // A link may lead anywhere.
                Err(_) => return !path.is_symlink(),
            }
        }
        true
    }

    /// Returns the path, without links. Fails if the file was moved, deleted or replaced.
    pub fn place(&self) -> io::Result<PathBuf> {
        check_same(&self.metadata, &self.place.symlink_metadata()?)?;
        match self.place.canonicalize()? == self.place {
            true => Ok(self.place.clone()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn metadata(&self) -> io::Result<Metadata> {
        match &self.file {
            Some(file) => file.metadata(),
            None => Ok(self.metadata.clone()),
        }
    }

    /// Opens the file for reading, even if it was renamed or replaced. A special file must still be
    /// at its path.
    pub fn open(&self) -> io::Result<File> {
        let Some(file) = &self.file else { return open_same(&self.place, &self.metadata) };
        let mut file = file.try_clone()?;
        io::Seek::rewind(&mut file)?;
        Ok(file)
    }

    /// Returns at most `limit` names from this folder, in no particular order. Leaves out names
    /// that are not UTF-8.
    pub fn names(&self, limit: usize) -> io::Result<Vec<String>> {
        names_in(self.open()?, limit)
    }
}

/// Returns true: [`Held::within`] always works.
pub fn keeps_inside() -> bool {
    true
}

fn open_same(place: &Path, metadata: &Metadata) -> io::Result<File> {
    let file = open_with(place, OFlags::NOFOLLOW)?;
    check_same(metadata, &file.metadata()?)?;
    Ok(file)
}

/// Fails unless both are the same file.
fn check_same(a: &Metadata, b: &Metadata) -> io::Result<()> {
    match (a.dev(), a.ino()) == (b.dev(), b.ino()) {
        true => Ok(()),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}
