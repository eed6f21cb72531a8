//! Judges a database by the checksums of its pages, and repairs it from the second copy.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::folder::Files;
use super::super::folder::marks::Mark;
use super::super::folder::sums::{Sums, sum};
use super::super::folder::wal::{self, Wal};

/// Number of bytes read from a file at once.
const CHUNK: usize = 1 << 20;

/// State of a database, as determined without SQLite.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no database.
    Absent,
    /// Every page is as it was at the last checkpoint, or is newer in the write-ahead log. Without
    /// checksums, the second copy proves this.
    Sound,
    /// These pages, counted from 0, are damaged but intact in the copy. Empty when the file is
    /// merely too long.
    Repairable(Vec<usize>),
    /// There are no checksums to judge the database by.
    Unknown,
    /// At least this many pages are damaged both in the database and in the copy. 1 if the
    /// checksums are lost and the two differ.
    Beyond(usize),
}

/// A verdict, and the checksums if they are still valid.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) sums: Option<Sums>,
}

/// Judges the database by `sums`, its page checksums as of the last checkpoint. The checksums are
/// ignored when `mark` records a later checkpoint.
pub(super) fn judge(
    files: &Files,
    mark: Option<&Mark>,
    wal: &Wal,
    sums: Option<Sums>,
) -> io::Result<Judged> {
    let length = match std::fs::metadata(files.database()) {
        Ok(status) => status.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let epoch = mark.map_or(0, |mark| mark.extent.epoch);
    let sums = match sums.filter(|sums| sums.epoch >= epoch) {
        None => found_again(files, mark)?,
        sums => sums,
    };
    let Some(sums) = sums else {
        let verdict = match length {
            0 => Verdict::Absent,
            _ if same_as_copy(files, wal)? => Verdict::Sound,
            // Without checksums, no page can be trusted.
            _ if epoch > 0 => Verdict::Beyond(1),
            _ => Verdict::Unknown,
        };
        return Ok(Judged { verdict, sums: None });
    };
    let (mut repaired, mut lost) = (Vec::new(), 0);
    let mut pages = Pages::of(File::open(files.database()).ok(), sums.page_size);
    let copy = File::open(files.copy()).ok();
    let mut twin = vec![0; sums.page_size];
    for index in 0..sums.pages.len() {
        let good = pages.next()?.is_some_and(|page| sums.fits(index, page));
        if good || wal.pages.contains_key(&(index as u32 + 1)) {
            continue;
        }
        let at = (index * sums.page_size) as u64;
        match copy.as_ref().map(|copy| copy.read_exact_at(&mut twin, at)) {
            Some(Ok(())) if sums.fits(index, &twin) => repaired.push(index),
            _ => lost += 1,
        }
    }
    let too_long = length > size(&sums, wal);
    let verdict = match (lost, repaired.is_empty()) {
        (0, true) if !too_long => Verdict::Sound,
        (0, _) => Verdict::Repairable(repaired),
        _ => Verdict::Beyond(lost),
    };
    Ok(Judged { verdict, sums: Some(sums) })
}

/// Computes the checksums from the database, or else from its copy. Returns `None` when neither has
/// the digest recorded in the mark, or no mark records a checkpoint.
fn found_again(files: &Files, mark: Option<&Mark>) -> io::Result<Option<Sums>> {
    let Some(mark) = mark.filter(|mark| mark.extent.epoch > 0) else { return Ok(None) };
    for path in [files.database(), files.copy()] {
        let sums = sums_of(&path, mark.extent.epoch)?;
        if let Some(sums) = sums.filter(|sums| sums.digest() == mark.extent.digest) {
            return Ok(Some(sums));
        }
    }
    Ok(None)
}

/// Computes the checksums of a database; `None` when the file cannot be opened or is not a
/// database.
pub(super) fn sums_of(path: &Path, epoch: u64) -> io::Result<Option<Sums>> {
    let Ok(file) = File::open(path) else { return Ok(None) };
    let Ok(Some(page_size)) = wal::page_size(&file) else { return Ok(None) };
    let mut sums = Sums { epoch, salt: 0, page_size, pages: Vec::new() };
    let mut pages = Pages::of(Some(file), page_size);
    while let Some(page) = pages.next()? {
        sums.pages.push(sum(page));
    }
    Ok(Some(sums))
}

/// Restores damaged pages from the copy, and cuts the database to its maximum length.
pub(super) fn repair(files: &Files, pages: &[usize], sums: &Sums, wal: &Wal) -> io::Result<()> {
    let database =
        OpenOptions::new().write(true).create(true).truncate(false).open(files.database())?;
    let copy = File::open(files.copy())?;
    let mut page = vec![0; sums.page_size];
    for index in pages {
        let at = (index * sums.page_size) as u64;
        copy.read_exact_at(&mut page, at)?;
        database.write_all_at(&page, at)?;
    }
    let length = database.metadata()?.len().min(size(sums, wal));
    database.set_len(length)?;
    database.sync_data()
}

/// Reads the database into memory. Damaged pages come from the copy, newer pages from the
/// write-ahead log.
pub(super) fn image(files: &Files, judged: &Judged, wal: &Wal) -> io::Result<Vec<u8>> {
    let mut image = match std::fs::read(files.database()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    if let (Verdict::Repairable(pages), Some(sums)) = (&judged.verdict, &judged.sums) {
        let length = usize::try_from(size(sums, wal)).unwrap_or(usize::MAX);
        image.resize(length, 0);
        let copy = File::open(files.copy())?;
        for index in pages {
            let at = index * sums.page_size;
            copy.read_exact_at(&mut image[at..at + sums.page_size], at as u64)?;
        }
    }
    if let Some(page_size) = wal.page_size() {
        image.resize(wal.size as usize * page_size, 0);
        let log = File::open(files.wal())?;
        for (number, at) in wal.pages.iter().filter(|(number, _)| **number <= wal.size) {
            let from = (*number as usize - 1) * page_size;
            log.read_exact_at(&mut image[from..from + page_size], *at)?;
        }
    }
    Ok(image)
}

/// Reads the format number from the database's header; `None` when the file is not a database.
pub(super) fn format(files: &Files, wal: &Wal) -> Option<i64> {
    let (path, at) = match wal.pages.get(&1) {
        Some(at) => (files.wal(), *at),
        None => (files.database(), 0),
    };
    let mut header = [0; 64];
    File::open(path).ok()?.read_exact_at(&mut header, at).ok()?;
    let version = u32::from_be_bytes([header[60], header[61], header[62], header[63]]);
    header.starts_with(wal::DATABASE_MAGIC).then_some(i64::from(version))
}

/// Returns the maximum length of the database in bytes: its length at the last checkpoint, or after
/// the last commit in the write-ahead log.
fn size(sums: &Sums, wal: &Wal) -> u64 {
    let pages = sums.pages.len().max(wal.size as usize);
    (pages * sums.page_size) as u64
}

/// Returns whether database and copy have the same pages, ignoring pages that are in the
/// write-ahead log.
fn same_as_copy(files: &Files, wal: &Wal) -> io::Result<bool> {
    let database = File::open(files.database())?;
    let (Ok(Some(page_size)), Ok(copy)) = (wal::page_size(&database), File::open(files.copy()))
    else {
        return Ok(false);
    };
    let mut pages = Pages::of(Some(database), page_size);
    let mut twins = Pages::of(Some(copy), page_size);
    for number in 1.. {
        match (pages.next()?, twins.next()?) {
            (None, None) => break,
            (page, twin) if page == twin || wal.pages.contains_key(&number) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The pages of a file, read one after the other; a missing file has no pages.
struct Pages {
    file: Option<BufReader<File>>,
    page: Vec<u8>,
}

impl Pages {
    fn of(file: Option<File>, page_size: usize) -> Self {
        let file = file.map(|file| BufReader::with_capacity(CHUNK, file));
        Self { file, page: vec![0; page_size] }
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        match file.read_exact(&mut self.page) {
            Ok(()) => Ok(Some(&self.page)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.file = None;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
