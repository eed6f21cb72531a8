//! Checksums of the database's pages as of the last checkpoint.

use std::io::{self, Write};
use std::path::Path;

use crate::whole_file::replace;

const MAGIC: &[u8; 8] = b"ctxsums1";
/// Length of the header in bytes: magic number, epoch, page size, number of pages, salt.
const HEADER: usize = 8 * 5;

/// The checksums of a database's pages. The file in which they are stored ends with a hash of its
/// content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Number of the checkpoint.
    pub(crate) epoch: u64,
    /// Salt of the write-ahead log that the checkpoint emptied.
    pub(crate) salt: u32,
    /// Page size in bytes.
    pub(crate) page_size: usize,
    /// One checksum per page, in order.
    pub(crate) pages: Vec<u64>,
}

impl Sums {
    /// Reads the checksums from a file; `None` when the file is missing or damaged.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let (body, hash) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if body.len() < HEADER || !body.starts_with(MAGIC) || blake3::hash(body) != *hash {
            return None;
        }
        let mut numbers = body[8..]
            .chunks_exact(8)
            .map(|eight| u64::from_le_bytes(eight.try_into().unwrap_or_default()));
        let (epoch, page_size, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let salt = u32::try_from(numbers.next()?).ok()?;
        let pages: Vec<u64> = numbers.collect();
        let page_size = usize::try_from(page_size).ok()?;
        (pages.len() as u64 == count).then_some(Self { epoch, salt, page_size, pages })
    }

    /// Computes a checksum over all fields but the salt, which cannot be computed again from the
    /// pages.
    pub(crate) fn digest(&self) -> u64 {
        sum(&self.body(0))
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut bytes = self.body(self.salt);
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        replace(path, |file, _| file.write_all(&bytes))
    }

    fn body(&self, salt: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + 8 * self.pages.len() + 32);
        bytes.extend_from_slice(MAGIC);
        let numbers = [self.epoch, self.page_size as u64, self.pages.len() as u64, u64::from(salt)];
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.pages.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
        bytes
    }

    /// Returns whether `page` matches the checksum of the page with this index, counted from 0.
    pub(crate) fn fits(&self, index: usize, page: &[u8]) -> bool {
        self.pages.get(index) == Some(&sum(page))
    }
}

/// Computes the checksum of a page: the first eight bytes of its BLAKE3 hash.
pub(crate) fn sum(page: &[u8]) -> u64 {
    let hash = blake3::hash(page);
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sums");
        assert_eq!(Sums::read(&path), None);
        let sums = Sums { epoch: 7, salt: 8, page_size: 4096, pages: vec![1, u64::MAX, 3] };
        sums.write(&path).unwrap();
        assert_eq!(Sums::read(&path), Some(sums));
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(Sums::read(&path), None);
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(Sums::read(&path), None);
        }
        std::fs::write(&path, [whole.clone(), whole].concat()).unwrap();
        assert_eq!(Sums::read(&path), None);
    }
}
