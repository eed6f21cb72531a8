//! The files of a state folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::super::StoreError;
use crate::whole_file::create;

/// Number of bytes that must find room before a server takes changes.
const PROBE_BYTES: usize = 64 << 10;

/// Names of the files in a state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Names the files of `folder`, whether or not they are there.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the database.
    pub fn database(&self) -> PathBuf {
        self.folder.join("contexture.db")
    }

    /// Returns the write-ahead log of the database.
    pub(crate) fn wal(&self) -> PathBuf {
        self.folder.join("contexture.db-wal")
    }

    /// Returns the log in front of the database.
    pub fn log(&self) -> PathBuf {
        self.folder.join("contexture.log")
    }

    /// Returns the second copy of the database, as of the last checkpoint.
    pub(crate) fn copy(&self) -> PathBuf {
        self.folder.join("contexture.copy")
    }

    /// Returns the checksums of the database's pages, as of the last checkpoint.
    pub(crate) fn sums(&self) -> PathBuf {
        self.folder.join("contexture.sums")
    }

    /// Returns the two high-water marks.
    pub(crate) fn marks(&self) -> [PathBuf; 2] {
        ["contexture.mark-1", "contexture.mark-2"].map(|name| self.folder.join(name))
    }

    /// Returns the folder of what could not be used.
    pub fn damaged(&self) -> PathBuf {
        self.folder.join("damaged")
    }

    /// Returns the folder of the backups.
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    /// Returns everything that the state is read from.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        let [first, second] = self.marks();
        vec![self.database(), self.wal(), self.log(), self.copy(), self.sums(), first, second]
    }

    /// Tries whether a file can be made, written and removed.
    pub(super) fn probe(&self) -> io::Result<()> {
        let path = self.folder.join("contexture.probe");
        let written = create(&path).and_then(|mut file| file.write_all(&[0; PROBE_BYTES]));
        let removed = std::fs::remove_file(&path);
        written.and(removed)
    }

    /// Refuses links in the place of files: whoever planted one would choose what is overwritten.
    pub(super) fn refuse_links(&self) -> Result<(), StoreError> {
        let folders = [self.damaged(), self.backups()];
        for path in self.all().into_iter().chain(folders) {
            let status = std::fs::symlink_metadata(&path);
            if status.is_ok_and(|status| status.is_symlink()) {
                return Err(StoreError::Link { path });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_the_place_of_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path());
        files.refuse_links().unwrap();
        std::os::unix::fs::symlink("/tmp/elsewhere", files.log()).unwrap();
        let said = files.refuse_links().unwrap_err().to_string();
        assert!(said.contains("contexture.log") && said.contains("link"), "{said}");
    }
}
