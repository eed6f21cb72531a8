//! The high-water marks: two small files that record how far the state has come.
//!
//! After each commit, the number of the last change and the last ids are recorded in both files.
//! Thus a later start recognizes missing changes, and no id is given twice even when the database
//! is gone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use super::super::{Counters, SEQUENCES};
use super::files::Files;

/// First eight bytes of a mark; the last character is the format number of marks.
const MAGIC: u64 = u64::from_le_bytes(*b"ctxmark2");
const NUMBERS: usize = 7;
const FIELDS: usize = NUMBERS + SEQUENCES.len();
const BYTES: usize = 8 * (FIELDS + 1);

/// How far the state has come at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMark {
    /// Format number of the database.
    pub format: i64,
    /// Counters after the last commit.
    pub counters: Counters,
    /// Last id given in each table whose ids never repeat.
    pub sequences: [u64; SEQUENCES.len()],
    /// Set when the running server has found the database damaged.
    pub is_damaged: bool,
}

/// The files of the two marks, open for writing.
pub(crate) struct Marks([File; 2]);

/// The marks found in a folder.
pub(crate) struct FoundMarks {
    /// Newest readable mark.
    pub newest: Option<HighWaterMark>,
    /// Marks that are missing or cannot be read.
    pub unusable: Vec<PathBuf>,
}

/// Reads both marks.
pub(crate) fn read(files: &Files) -> FoundMarks {
    let mut found = FoundMarks { newest: None, unusable: Vec::new() };
    for path in files.marks() {
        match std::fs::read(&path).ok().and_then(|bytes| decode(&bytes)) {
            Some(mark) => {
                let newer = |old: &HighWaterMark| old.counters.changes < mark.counters.changes;
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
        Ok(Self([open(first)?, open(second)?]))
    }

    /// Writes the mark to one file after the other, so that one of them is whole at any moment.
    pub(crate) fn note(&self, mark: &HighWaterMark) -> io::Result<()> {
        let bytes = encode(mark);
        self.0.iter().try_for_each(|file| file.write_all_at(&bytes, 0))
    }
}

fn encode(mark: &HighWaterMark) -> [u8; BYTES] {
    let HighWaterMark { format, counters, sequences, is_damaged } = mark;
    let mut fields = [0; FIELDS];
    fields[..NUMBERS].copy_from_slice(&[
        MAGIC,
        format.cast_unsigned(),
        counters.changes,
        counters.next_item,
        counters.next_version,
        counters.last_timestamp.cast_unsigned(),
        u64::from(*is_damaged),
    ]);
    fields[NUMBERS..].copy_from_slice(sequences);
    let mut bytes = [0; BYTES];
    for (field, at) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
        at.copy_from_slice(&field.to_le_bytes());
    }
    let hash = blake3::hash(&bytes[..8 * FIELDS]);
    bytes[8 * FIELDS..].copy_from_slice(&hash.as_bytes()[..8]);
    bytes
}

fn decode(bytes: &[u8]) -> Option<HighWaterMark> {
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
    let [magic, format, changes, next_item, next_version, last, damaged, ..] = fields;
    let mut sequences = [0; SEQUENCES.len()];
    sequences.copy_from_slice(&fields[NUMBERS..]);
    let last_timestamp = last.cast_signed();
    (magic == MAGIC).then_some(HighWaterMark {
        format: format.cast_signed(),
        counters: Counters { changes, next_item, next_version, last_timestamp },
        sequences,
        is_damaged: damaged != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(changes: u64) -> HighWaterMark {
        let counters = Counters { changes, next_item: 2, next_version: 3, last_timestamp: -4 };
        HighWaterMark {
            format: 1,
            counters,
            sequences: [5, 6, 7, 8, 9, 10],
            is_damaged: changes == 5,
        }
    }

    #[test]
    fn either_mark_may_be_lost() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::new(dir.path());
        assert_eq!(read(&files).unusable.len(), 2);
        let marks = Marks::open(&files).unwrap();
        for changes in 1..=5 {
            marks.note(&mark(changes)).unwrap();
        }
        for path in &files.marks() {
            let whole = std::fs::read(path).unwrap();
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1;
                std::fs::write(path, &bytes).unwrap();
                let found = read(&files);
                assert_eq!(found.unusable, std::slice::from_ref(path));
                assert_eq!(found.newest, Some(mark(5)));
            }
            std::fs::write(path, &whole).unwrap();
        }
    }
}
