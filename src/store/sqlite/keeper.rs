//! Maintains the files beside the database: checksums of its pages, and a second copy of the pages.
//!
//! Both are updated at each checkpoint, after SQLite has written the pages and before SQLite
//! empties its write-ahead log. Therefore, after a crash in between, the write-ahead log still has
//! all changed pages.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use super::super::StoreError;
use super::super::folder::sums::{Sums, sum};
use super::super::folder::{Files, Snapshot, wal};

/// The checksums and the second copy of one database.
pub(super) struct Keeper {
    files: Files,
    /// The database file. Never closed while SQLite has the database open, because closing the file
    /// would release SQLite's locks.
    database: Arc<File>,
    copy: Option<File>,
    /// Checksums as of the last checkpoint. If none could be read, `None` until the first
    /// checkpoint.
    sums: Option<Arc<Sums>>,
    /// Checksum over the page checksums.
    pub(super) digest: u64,
    wal: Option<File>,
}

impl Keeper {
    /// Opens or creates the database, private to the user, before SQLite does.
    pub(super) fn new(files: &Files, sums: Option<Sums>) -> io::Result<Self> {
        let database = open(files.database())?;
        Ok(Self {
            files: files.clone(),
            database: Arc::new(database),
            copy: None,
            digest: sums.as_ref().map_or(0, Sums::digest),
            sums: sums.map(Arc::new),
            wal: None,
        })
    }

    /// Returns the number of the last checkpoint.
    pub(super) fn epoch(&self) -> u64 {
        self.sums.as_ref().map_or(0, |sums| sums.epoch)
    }

    /// Returns the salt of the write-ahead log; 0 when there is none.
    pub(super) fn salt(&mut self) -> io::Result<u32> {
        self.wal()?.map_or(Ok(0), wal::salt)
    }

    /// Returns the length of the write-ahead log in bytes.
    pub(super) fn wal_bytes(&mut self) -> u64 {
        let length = |file: &File| file.metadata().map_or(0, |status| status.len());
        self.wal().ok().flatten().map_or(0, length)
    }

    /// Fails if the database file was removed: writes to it would be lost.
    pub(super) fn refuse_removed(&self) -> Result<(), StoreError> {
        match self.database.metadata() {
            Ok(status) if status.nlink() == 0 => Err(StoreError::Removed(self.files.database())),
            _ => Ok(()),
        }
    }

    /// Returns whether a [`Snapshot`] still reads the database as of the last checkpoint.
    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.database) > 1
    }

    /// Returns a snapshot for a backup; `None` while there are no checksums. No checkpoint is made
    /// while the snapshot exists.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        let sums = Arc::clone(self.sums.as_ref()?);
        Some(Snapshot { database: Arc::clone(&self.database), sums })
    }

    /// Updates the checksums and the copy. The pages in the write-ahead log must already be in the
    /// database.
    pub(super) fn follow(&mut self) -> io::Result<()> {
        let Some(page_size) = wal::page_size(&self.database)? else {
            return Err(io::Error::other("the database has lost its first page"));
        };
        let count = usize::try_from(self.database.metadata()?.len()).unwrap_or(0) / page_size;
        let mut sums = match &self.sums {
            Some(sums) if sums.page_size == page_size => (**sums).clone(),
            _ => Sums { epoch: 0, salt: 0, page_size, pages: Vec::new() },
        };
        let known = sums.pages.len();
        sums.epoch += 1;
        sums.salt = self.salt()?;
        sums.pages.resize(count, 0);
        let mut changed = match self.wal()? {
            Some(wal) => wal::page_numbers(wal, page_size)?,
            None => Vec::new(),
        };
        changed.retain(|number| (1..=known).contains(&(*number as usize)));
        let grown = (known..count).map(|index| index + 1);
        let changed: Vec<usize> = changed.iter().map(|n| *n as usize).chain(grown).collect();
        let copy_is_whole = self.open_copy(known, page_size);
        let mut page = vec![0; page_size];
        for number in changed.iter().filter(|number| **number <= count) {
            let at = ((number - 1) * page_size) as u64;
            self.database.read_exact_at(&mut page, at)?;
            sums.pages[number - 1] = sum(&page);
            self.put_into_copy(&page, at);
        }
        if !copy_is_whole {
            self.copy_all(count, page_size);
        }
        if let Some(copy) = &self.copy {
            let _ = copy.set_len((count * page_size) as u64);
        }
        sums.write(&self.files.sums())?;
        self.digest = sums.digest();
        self.sums = Some(Arc::new(sums));
        Ok(())
    }

    /// Opens the copy. Returns `false` when the whole copy must be rewritten.
    fn open_copy(&mut self, pages: usize, page_size: usize) -> bool {
        if self.copy.is_none() {
            self.copy = open(self.files.copy()).ok();
        }
        let length = self.copy.as_ref().and_then(|copy| copy.metadata().ok()).map(|s| s.len());
        length == Some((pages * page_size) as u64)
    }

    /// Writes a page to the copy. On failure, removes the copy; a later checkpoint makes a new one.
    fn put_into_copy(&mut self, page: &[u8], at: u64) {
        let written = self.copy.as_ref().map(|copy| copy.write_all_at(page, at));
        if let Some(Err(error)) = written {
            tracing::warn!("the second copy of the database cannot be written: {error}");
            self.copy = None;
            let _ = std::fs::remove_file(self.files.copy());
        }
    }

    fn copy_all(&mut self, count: usize, page_size: usize) {
        let mut page = vec![0; page_size];
        for index in 0..count {
            let at = (index * page_size) as u64;
            if self.database.read_exact_at(&mut page, at).is_err() || self.copy.is_none() {
                return;
            }
            self.put_into_copy(&page, at);
        }
    }

    /// Opens the write-ahead log if it exists. SQLite does not replace the file while the database
    /// is open.
    fn wal(&mut self) -> io::Result<Option<&File>> {
        if self.wal.is_none() {
            self.wal = match File::open(self.files.wal()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                opened => Some(opened?),
            };
        }
        Ok(self.wal.as_ref())
    }
}

fn open(path: std::path::PathBuf) -> io::Result<File> {
    use std::os::unix::fs::PermissionsExt;
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}
