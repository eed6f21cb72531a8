//! The files of a state folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::super::StoreError;
use crate::whole_file::create;

/// Name of the list of trusted projects in the state folder.
pub const TRUST_FILE: &str = "trusted-projects.json";
/// Number of bytes that must fit on the disk before a server accepts changes.
const PROBE_BYTES: usize = 64 << 10;

/// Paths of the files in a state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Creates the paths of the files in `folder`, which need not exist.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the state folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.folder.join("contexture.db")
    }

    /// Returns the path of the database's write-ahead log.
    pub fn wal(&self) -> PathBuf {
        self.folder.join("contexture.db-wal")
    }

    /// Returns the path of the index that SQLite makes of its write-ahead log while a server runs.
    pub fn wal_index(&self) -> PathBuf {
        self.folder.join("contexture.db-shm")
    }

    /// Returns the paths of the two high-water marks.
    pub fn marks(&self) -> [PathBuf; 2] {
        ["contexture.mark-1", "contexture.mark-2"].map(|name| self.folder.join(name))
    }

    /// Returns the path of a backup that is being restored. While the file exists, it is the state,
    /// and the other files are what the restoring has not replaced yet.
    pub fn restoring(&self) -> PathBuf {
        self.folder.join("contexture.restoring")
    }

    /// Returns the path of the list of trusted projects.
    pub fn trust(&self) -> PathBuf {
        self.folder.join(TRUST_FILE)
    }

    /// Returns the folder for copies of damaged states.
    pub fn damaged(&self) -> PathBuf {
        self.folder.join("damaged")
    }

    /// Returns the folder of the backups.
    pub fn backups(&self) -> PathBuf {
        self.folder.join("backups")
    }

    /// Returns the paths of all files that the state is read from.
    pub(in crate::store) fn all(&self) -> Vec<PathBuf> {
        let [first, second] = self.marks();
        vec![self.database(), self.wal(), first, second]
    }

    /// Checks that a file in the folder can be created, written and removed.
    pub(in crate::store) fn probe(&self) -> io::Result<()> {
        let path = self.folder.join("contexture.probe");
        let written = create(&path).and_then(|mut file| file.write_all(&[0; PROBE_BYTES]));
        let removed = std::fs::remove_file(&path);
        written.and(removed)
    }

    /// Fails when a file or folder of the state is a symbolic link: somebody who planted the link
    /// could choose which file is overwritten.
    pub(in crate::store) fn refuse_links(&self) -> Result<(), StoreError> {
        let others =
            [self.wal_index(), self.damaged(), self.backups(), self.restoring(), self.trust()];
        for path in self.all().into_iter().chain(others) {
            let status = std::fs::symlink_metadata(&path);
            if status.is_ok_and(|status| status.is_symlink()) {
                return Err(StoreError::Link(path));
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
        std::os::unix::fs::symlink("/tmp/elsewhere", files.wal()).unwrap();
        let said = files.refuse_links().unwrap_err().to_string();
        assert!(said.contains("contexture.db-wal") && said.contains("link"), "{said}");
    }
}
