//! The files of a store in a state folder.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::super::StoreError;
use super::super::folder::Files;
use super::super::folder::marks::{HighWaterMark, Marks};

/// The files that an open store writes.
pub(super) struct StoreFiles {
    marks: Marks,
    /// Files that SQLite has open, each with its inode.
    open: Vec<(PathBuf, u64)>,
}

impl StoreFiles {
    /// Opens the files beside a database that is already open.
    pub(super) fn new(files: &Files) -> io::Result<Self> {
        let inode = |path: PathBuf| Some((path.clone(), std::fs::metadata(path).ok()?.ino()));
        let open = [files.database(), files.wal()].into_iter().filter_map(inode).collect();
        Ok(Self { marks: Marks::open(files)?, open })
    }

    /// Fails if a file of the database was removed or replaced: writes to it would be lost.
    pub(super) fn refuse_removed(&self) -> Result<(), StoreError> {
        for (path, inode) in &self.open {
            if std::fs::metadata(path).map_or(true, |status| status.ino() != *inode) {
                return Err(StoreError::Removed(path.clone()));
            }
        }
        Ok(())
    }

    /// Writes the high-water mark. A failure only causes a warning, because the commit itself is
    /// already stored.
    pub(super) fn note(&self, mark: &HighWaterMark) {
        if let Err(error) = self.marks.note(mark) {
            tracing::warn!(
                "cannot write the state's high-water mark: {error}; the change itself is stored"
            );
        }
    }
}
