//! Reads the write-ahead log of SQLite without SQLite, to find damage that SQLite does not report.
//!
//! SQLite silently drops the first frame with a wrong checksum and everything after it, and applies
//! any log whose checksums are right, even one that does not belong to this state of the database.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// First bytes of every SQLite database.
pub(crate) const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Positions of the two bytes in a database's header that select the journal mode: both are 2 with
/// a write-ahead log, and 1 without.
pub(crate) const FORMAT_VERSIONS: std::ops::Range<usize> = 18..20;
/// Number of header bytes up to and including the page size.
const DATABASE_HEADER: usize = 18;
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// Magic number of a log with checksums over little-endian words; for big-endian words, the number
/// is greater by 1. See the [file format](https://www.sqlite.org/fileformat2.html#walformat).
const MAGIC: u32 = 0x377f_0682;

/// The committed contents of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wal {
    /// Salt: a number that grows by one whenever the log starts over; 0 when there is no log.
    pub(crate) salt: u32,
    /// Offset in the log of the newest committed content of each page, by page number.
    pub(crate) pages: HashMap<u32, u64>,
    /// Database size in pages after the last commit; 0 without a commit.
    pub(crate) size: u32,
    /// Contents of the whole log, kept because SQLite will overwrite whatever follows the last
    /// commit; `None` if nothing follows it.
    pub(crate) original: Option<Vec<u8>>,
    bytes_of_page: usize,
    /// Offset of the end of the last commit.
    end: usize,
}

impl Wal {
    /// Returns the page size in bytes, if the log has any pages.
    pub(crate) fn page_size(&self) -> Option<usize> {
        (!self.pages.is_empty()).then_some(self.bytes_of_page)
    }
}

/// Reads a log. A file that is missing, empty or not a log counts as an empty log.
pub(crate) fn read(path: &Path) -> io::Result<Wal> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Wal::default()),
        Err(error) => return Err(error),
    };
    let mut wal = parse(&bytes).unwrap_or_default();
    wal.original = (bytes.len() > wal.end).then_some(bytes);
    Ok(wal)
}

/// Reads the page numbers of all frames in a log, committed or not, sorted and without duplicates.
pub(crate) fn page_numbers(file: &File, page_size: usize) -> io::Result<Vec<u32>> {
    let frame = (FRAME_HEADER + page_size) as u64;
    let frames = (file.metadata()?.len().saturating_sub(HEADER as u64)) / frame;
    let mut numbers = Vec::with_capacity(usize::try_from(frames).unwrap_or(0));
    for index in 0..frames {
        let mut number = [0; 4];
        file.read_exact_at(&mut number, HEADER as u64 + index * frame)?;
        numbers.push(u32::from_be_bytes(number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Reads the salt of a log; 0 when the log is empty.
pub(crate) fn salt(file: &File) -> io::Result<u32> {
    let mut bytes = [0; 4];
    match file.read_exact_at(&mut bytes, 16) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read.map(|()| u32::from_be_bytes(bytes)),
    }
}

/// Reads the page size of a database in bytes; `None` when the file is not a database. Fails when
/// the file is too short for a header.
pub(crate) fn page_size(database: &File) -> io::Result<Option<usize>> {
    let mut header = [0; DATABASE_HEADER];
    database.read_exact_at(&mut header, 0)?;
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65536,
        size => usize::from(size),
    };
    let valid = header.starts_with(DATABASE_MAGIC) && size.is_power_of_two() && size >= 512;
    Ok(valid.then_some(size))
}

fn parse(bytes: &[u8]) -> Option<Wal> {
    let header = bytes.get(..HEADER)?;
    let big_endian = match word(header, 0)? {
        MAGIC => false,
        magic if magic == MAGIC + 1 => true,
        _ => return None,
    };
    let page_size = word(header, 8)? as usize;
    if !page_size.is_power_of_two() || !(512..=65536).contains(&page_size) {
        return None;
    }
    let mut sum = checksum((0, 0), &header[..24], big_endian);
    if sum != (word(header, 24)?, word(header, 28)?) {
        return None;
    }
    let mut wal = Wal { salt: word(header, 16)?, bytes_of_page: page_size, ..Wal::default() };
    let mut open: Vec<(u32, u64)> = Vec::new();
    let frames = bytes[HEADER..].chunks_exact(FRAME_HEADER + page_size);
    for (index, frame) in frames.enumerate() {
        let (head, page) = frame.split_at(FRAME_HEADER);
        sum = checksum(checksum(sum, &head[..8], big_endian), page, big_endian);
        let ours = head[8..16] == header[16..24];
        if !ours || sum != (word(head, 16)?, word(head, 20)?) {
            break;
        }
        open.push((word(head, 0)?, (HEADER + index * frame.len() + FRAME_HEADER) as u64));
        let size = word(head, 4)?;
        if size != 0 {
            wal.size = size;
            wal.end = HEADER + (index + 1) * frame.len();
            wal.pages.extend(open.drain(..));
        }
    }
    Some(wal)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Computes SQLite's write-ahead log checksum, continuing from `sum`.
fn checksum(sum: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let (mut first, mut second) = sum;
    for pair in bytes.chunks_exact(8) {
        let number = |at: usize| {
            let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
        };
        first = first.wrapping_add(number(0)).wrapping_add(second);
        second = second.wrapping_add(number(4)).wrapping_add(first);
    }
    (first, second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;

    fn count(path: &Path) -> i64 {
        let db = Connection::open(path).unwrap();
        db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn as_much_is_read_as_sqlite_reads_whatever_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        for number in 0..20 {
            db.execute("INSERT INTO t VALUES (?1)", [number]).unwrap();
        }
        let [database, log] =
            ["a.db", "a.db-wal"].map(|n| std::fs::read(dir.path().join(n)).unwrap());
        drop(db);
        let whole = parse(&log).unwrap();
        assert!(whole.salt != 0 && whole.size >= 2 && whole.pages.contains_key(&2));
        let frame = (log.len() - HEADER) / 20;
        for at in (0..log.len()).step_by(97) {
            let mut bytes = log.clone();
            bytes[at] ^= 4;
            let (db, wal) = (dir.path().join("b.db"), dir.path().join("b.db-wal"));
            let _ = std::fs::remove_file(dir.path().join("b.db-shm"));
            std::fs::write(&db, &database).unwrap();
            std::fs::write(&wal, &bytes).unwrap();
            let found = read(&wal).unwrap();
            let frames = found.pages.get(&2).map_or(0, |at| (*at as usize - HEADER) / frame + 1);
            assert_eq!(frames as i64, count(&db), "a byte at {at}");
        }
    }
}
