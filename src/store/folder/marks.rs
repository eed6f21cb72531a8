//! The high-water marks: two small files that record how far the state has come.
//!
//! After each burst (the requests of one commit), the number of the burst and the last ids are
//! recorded in at least one of the files. Thus a later start recognizes missing bursts, and no id
//! is given twice even when the database is gone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use super::super::{Counters, Extent, SEQUENCES};
use super::files::Files;

/// First eight bytes of a mark; the last character is the format number.
const MAGIC: u64 = u64::from_le_bytes(*b"ctxmark1");
const NUMBERS: usize = 9;
const FIELDS: usize = NUMBERS + SEQUENCES.len();
const BYTES: usize = 8 * (FIELDS + 1);

/// How far the state has come at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Counters after the last burst (the requests that one commit stores).
    pub(crate) counters: Counters,
    /// Last ids of the tables and state of the database's files after the last burst.
    pub(crate) extent: Extent,
    /// Set while a server starts, when the write-ahead log may be a new one.
    pub(crate) opening: bool,
}

/// The files of the two marks, open for writing.
pub(crate) struct Marks {
    files: [File; 2],
    /// Index of the file that was written last.
    last: usize,
}

/// The marks found in a folder.
pub(crate) struct Found {
    /// Newest readable mark.
    pub(crate) newest: Option<Mark>,
    /// Marks that are missing or cannot be read.
    pub(crate) unusable: Vec<PathBuf>,
}

/// Reads both marks.
pub(crate) fn read(files: &Files) -> Found {
    let mut found = Found { newest: None, unusable: Vec::new() };
    for path in files.marks() {
        match std::fs::read(&path).ok().and_then(|bytes| decode(&bytes)) {
            Some(mark) => {
                let newer = |old: &Mark| old.counters.burst < mark.counters.burst;
                if found.newest.as_ref().is_none_or(newer) {
                    found.newest = Some(mark);
                }
            }
            None => found.unusable.push(path),
        }
    }
    found
}

impl Marks {
    /// Opens both files, creating them if they are missing.
    pub(crate) fn open(files: &Files) -> io::Result<Self> {
        let open = |path| {
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
        };
        let [first, second] = files.marks();
        Ok(Self { files: [open(first)?, open(second)?], last: 0 })
    }

    /// Writes the mark to the file whose turn it is; the other file keeps the previous one.
    pub(crate) fn note(&mut self, mark: &Mark) -> io::Result<()> {
        self.last = 1 - self.last;
        self.files[self.last].write_all_at(&encode(mark), 0)
    }

    /// Writes the mark to both files.
    pub(crate) fn note_in_both(&mut self, mark: &Mark) -> io::Result<()> {
        self.note(mark)?;
        self.note(mark)
    }
}

fn encode(mark: &Mark) -> [u8; BYTES] {
    let Mark { counters, extent, opening } = mark;
    let mut fields = [0; FIELDS];
    fields[..NUMBERS].copy_from_slice(&[
        MAGIC,
        counters.burst,
        counters.next_item,
        counters.next_version,
        counters.last_timestamp.cast_unsigned(),
        extent.epoch,
        u64::from(extent.salt),
        u64::from(*opening),
        extent.digest,
    ]);
    fields[NUMBERS..].copy_from_slice(&extent.sequences);
    let mut bytes = [0; BYTES];
    for (field, at) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
        at.copy_from_slice(&field.to_le_bytes());
    }
    let hash = blake3::hash(&bytes[..8 * FIELDS]);
    bytes[8 * FIELDS..].copy_from_slice(&hash.as_bytes()[..8]);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Mark> {
    // Bytes after the mark, as in a doubled file, are ignored.
    let bytes = bytes.get(..BYTES)?;
    let (body, hash) = bytes.split_at(8 * FIELDS);
    if blake3::hash(body).as_bytes()[..8] != *hash {
        return None;
    }
    let mut fields = [0; FIELDS];
    for (field, at) in fields.iter_mut().zip(body.chunks_exact(8)) {
        *field = u64::from_le_bytes(at.try_into().ok()?);
    }
    let [magic, burst, next_item, next_version, last, epoch, salt, opening, digest, ..] = fields;
    let mut sequences = [0; SEQUENCES.len()];
    sequences.copy_from_slice(&fields[NUMBERS..]);
    (magic == MAGIC).then_some(Mark {
        counters: Counters { burst, next_item, next_version, last_timestamp: last.cast_signed() },
        extent: Extent { sequences, epoch, digest, salt: u32::try_from(salt).ok()? },
        opening: opening != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(burst: u64) -> Mark {
        let counters = Counters { burst, next_item: 2, next_version: 3, last_timestamp: -4 };
        let extent =
            Extent { sequences: [5, 6, 7, 8, 9, 10], epoch: 11, digest: 12, salt: u32::MAX };
        Mark { counters, extent, opening: false }
    }

    #[test]
    fn the_newest_mark_counts_and_either_file_may_be_lost() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path());
        assert_eq!(read(&files).unusable.len(), 2);
        let mut marks = Marks::open(&files).unwrap();
        for burst in 1..=5 {
            marks.note(&mark(burst)).unwrap();
        }
        assert_eq!(read(&files).newest, Some(mark(5)));
        for (path, left) in files.marks().iter().zip([5, 4]) {
            let whole = std::fs::read(path).unwrap();
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                std::fs::write(path, &bytes).unwrap();
                let found = read(&files);
                assert_eq!(found.unusable, std::slice::from_ref(path));
                let burst = found.newest.unwrap().counters.burst;
                assert!(burst >= left.min(4) && burst <= 5, "{burst}");
            }
            std::fs::write(path, &whole).unwrap();
        }
    }
}
