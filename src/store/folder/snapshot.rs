//! The database as of a checkpoint, to be read while the server keeps running.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::sums::Sums;

/// The database as of a checkpoint. No other checkpoint is made while a snapshot exists.
#[derive(Debug)]
pub struct Snapshot {
    pub(in crate::store) database: Arc<File>,
    pub(in crate::store) sums: Arc<Sums>,
}

impl Snapshot {
    /// Reads the whole database and repairs the second copy.
    ///
    /// # Errors
    /// Fails when a page is damaged or the copy cannot be written.
    pub(in crate::store) fn check(&self, copy: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let copy = options.read(true).write(true).create(true).truncate(false).open(copy)?;
        let (mut page, mut twin) = (vec![0; self.sums.page_size], vec![0; self.sums.page_size]);
        for index in 0..self.sums.pages.len() {
            let at = (index * self.sums.page_size) as u64;
            self.read_page(index, &mut page)?;
            if copy.read_exact_at(&mut twin, at).is_err() || page != twin {
                copy.write_all_at(&page, at)?;
            }
        }
        copy.set_len((self.sums.pages.len() * self.sums.page_size) as u64)
    }

    pub(in crate::store) fn read_page(&self, index: usize, page: &mut [u8]) -> io::Result<()> {
        self.database.read_exact_at(page, (index * self.sums.page_size) as u64)?;
        if self.sums.fits(index, page) {
            return Ok(());
        }
        let advice = "the server repairs it when it next starts";
        let message = format!("page {} of the database is damaged; {advice}", index + 1);
        Err(io::Error::other(message))
    }
}
