//! Keeps an index in a file: a log of records, each with a checksum, to which changes are appended.
//!
//! A record that is damaged ends the log; what it and later ones said is found out again. The file is
//! written anew when most of it is out of date. One process at a time may have it open.

mod bytes;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use self::bytes::{RecordReader, RecordWriter};
use crate::facts::{FileState, WordCount};
use crate::history::Commit;
use crate::index::{Definition, Index, IndexedPath, Updated};
use crate::language::Language;
use crate::names::NameId;
use crate::source::{FileStamp, MapSource};

/// Beginning of the file. Another one, as of another version, is an empty index.
const MAGIC: &[u8] = b"contexture map 2\n";
/// Length of the checksum of a record.
const CHECKSUM: usize = 8;
/// Maximum length of a record.
const MAX_RECORD: usize = 64 << 20;
/// Number of names in one record.
const NAMES_IN_RECORD: usize = 10_000;
/// Minimum number of outdated records at which the file may be written anew.
const MIN_OUTDATED: usize = 2_000;

/// Kinds of records.
const NAMES: u8 = 1;
const FILE: u8 = 2;
const STAMP: u8 = 3;
const REMOVED: u8 = 4;
const COMMIT: u8 = 5;

/// An index that is kept in a file.
#[derive(Debug)]
pub struct StoredIndex {
    index: Index,
    path: Option<PathBuf>,
    /// Length of the part of the file that is whole.
    length: u64,
    /// Number of names in the file.
    names: usize,
    /// Number of records in the file that later ones replaced.
    outdated: usize,
    /// True if what the file says must not be added to.
    is_stale: bool,
}

impl StoredIndex {
    /// Opens the index that the file at `path` keeps, or an empty one. Without a path, the index is in
    /// memory only.
    #[must_use]
    pub fn open(path: Option<PathBuf>) -> Self {
        let mut kept = Self {
            index: Index::default(),
            path,
            length: 0,
            names: 0,
            outdated: 0,
            is_stale: false,
        };
        if let Some(text) = kept.path.as_deref().and_then(|path| fs::read(path).ok()) {
            kept.load(&text);
        }
        kept
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns the index, for the texts of unsaved buffers.
    pub fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    /// Brings the index up to date, and the file with it.
    ///
    /// # Errors
    /// Same as [`Index::update`]. That the file cannot be written is no error: the index is then found
    /// out again at the next start.
    pub fn update(&mut self, source: &dyn MapSource) -> Result<Updated, String> {
        let updated = self.index.update(source)?;
        let changes = updated.changed.len() + updated.removed.len() + updated.touched.len();
        self.outdated += changes;
        if self.path.is_some() && (changes > 0 || !updated.commits.is_empty() || self.is_stale) {
            let live = self.index.len() + self.index.history.order.len();
            let saved = match self.outdated > live.max(MIN_OUTDATED) || self.is_stale {
                true => self.write_anew(),
                false => self.append(&updated),
            };
            self.is_stale = saved.is_err();
        }
        Ok(updated)
    }

    fn append(&mut self, updated: &Updated) -> io::Result<()> {
        let mut out = Vec::new();
        if self.length == 0 {
            out.extend_from_slice(MAGIC);
        }
        let names = write_names(&self.index, self.names, &mut out);
        for path in &updated.changed {
            if let Some(entry) = self.index.entries.get(path.as_str()) {
                write_file(path, entry, &mut out);
            }
        }
        for path in &updated.touched {
            if let Some(entry) = self.index.entries.get(path.as_str()) {
                let mut writer = RecordWriter::new(STAMP);
                writer.text(path);
                write_stamp(entry, &mut writer);
                writer.end(&mut out);
            }
        }
        for path in &updated.removed {
            let mut writer = RecordWriter::new(REMOVED);
            writer.text(path);
            writer.end(&mut out);
        }
        for id in &updated.commits {
            if let Some(commit) = self.index.history.commits.get(id) {
                write_commit(id, commit, &mut out);
            }
        }
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = private(path, false)?;
        // Half of a record, from a crash, is overwritten.
        file.set_len(self.length)?;
        io::Seek::seek(&mut file, io::SeekFrom::Start(self.length))?;
        file.write_all(&out)?;
        self.length += out.len() as u64;
        self.names = names;
        Ok(())
    }

    /// Writes the file anew, beside the old one, which it replaces. Names that are no longer used go.
    fn write_anew(&mut self) -> io::Result<()> {
        self.index.forget_unused_names();
        let mut out = MAGIC.to_vec();
        let names = write_names(&self.index, 0, &mut out);
        for (path, entry) in &self.index.entries {
            write_file(path, entry, &mut out);
        }
        for id in &self.index.history.order {
            if let Some(commit) = self.index.history.commits.get(id) {
                write_commit(id, commit, &mut out);
            }
        }
        let Some(path) = &self.path else { return Ok(()) };
        let beside = path.with_extension("new");
        let mut file = private(&beside, true)?;
        file.write_all(&out)?;
        fs::rename(&beside, path)?;
        (self.length, self.names, self.outdated) = (out.len() as u64, names, 0);
        Ok(())
    }

    /// Reads the records of a file, as far as they are whole.
    fn load(&mut self, text: &[u8]) {
        let Some(mut rest) = text.strip_prefix(MAGIC) else { return };
        while let Some((record, after)) = next_record(rest) {
            if self.take(record).is_none() {
                break;
            }
            rest = after;
        }
        self.length = (text.len() - rest.len()) as u64;
        self.names = self.index.names.len();
    }

    /// Takes a record; `None` if it says what cannot be.
    fn take(&mut self, record: &[u8]) -> Option<()> {
        let (kind, rest) = record.split_first()?;
        let mut reader = RecordReader::new(rest);
        match *kind {
            NAMES => {
                while !reader.is_at_end() {
                    let before = self.index.names.len();
                    self.index.names.id(reader.text()?);
                    (self.index.names.len() > before).then_some(())?;
                }
            }
            FILE => {
                let path = reader.text()?;
                let entry = read_file(&mut reader, &mut self.index, path)?;
                if self.index.entries.insert(path.into(), entry).is_some() {
                    self.outdated += 1;
                }
            }
            STAMP => {
                let path = reader.text()?;
                let (stamp, is_settled) = read_stamp(&mut reader)?;
                let entry = self.index.entries.get_mut(path)?;
                (entry.stamp, entry.is_settled) = (stamp, is_settled);
                self.outdated += 1;
            }
            REMOVED => {
                self.index.entries.remove(reader.text()?)?;
                self.outdated += 2;
            }
            COMMIT => {
                let (id, commit) = read_commit(&mut reader)?;
                self.index.history.commits.insert(id, commit);
            }
            _ => return None,
        }
        reader.is_at_end().then_some(())
    }
}

fn private(path: &Path, anew: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(anew).mode(0o600).open(path)
}

fn next_record(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (checksum, rest) = rest.split_first_chunk::<CHECKSUM>()?;
    let record = rest.get(..length).filter(|_| length <= MAX_RECORD)?;
    (blake3::hash(record).as_bytes()[..CHECKSUM] == checksum[..])
        .then_some((record, &rest[length..]))
}

/// Writes the names from number `from` on, and returns how many there are.
fn write_names(index: &Index, from: usize, out: &mut Vec<u8>) -> usize {
    let count = index.names.len();
    let mut next = from;
    while next < count {
        let end = count.min(next + NAMES_IN_RECORD);
        let mut writer = RecordWriter::new(NAMES);
        (next..end).for_each(|id| writer.text(index.names.text(id as NameId)));
        writer.end(out);
        next = end;
    }
    count
}

fn write_stamp(entry: &IndexedPath, writer: &mut RecordWriter) {
    writer.number(entry.stamp.bytes);
    writer.number(entry.stamp.modified as u64);
    writer.number(entry.stamp.changed as u64);
    writer.number(entry.stamp.inode);
    writer.number(u64::from(entry.is_settled));
}

fn read_stamp(reader: &mut RecordReader<'_>) -> Option<(FileStamp, bool)> {
    let stamp = FileStamp {
        bytes: reader.number()?,
        modified: reader.number()? as i64,
        changed: reader.number()? as i64,
        inode: reader.number()?,
    };
    Some((stamp, reader.number()? == 1))
}

fn write_file(path: &str, entry: &IndexedPath, out: &mut Vec<u8>) {
    let mut writer = RecordWriter::new(FILE);
    writer.text(path);
    write_stamp(entry, &mut writer);
    writer.bytes(&entry.hash);
    let file = &entry.file;
    for number in [
        u64::from(file.language.number()),
        u64::from(file.state.number()),
        u64::from(file.lines),
        u64::from(file.length),
        u64::from(file.stem),
    ] {
        writer.number(number);
    }
    writer.list(&file.words, |writer, (id, times)| {
        writer.number((*id).into());
        writer.number(times.text.into());
        writer.number(times.names.into());
    });
    writer.list(&file.path_words, |writer, id| writer.number((*id).into()));
    writer.list(&file.references, |writer, (id, times)| {
        writer.number((*id).into());
        writer.number((*times).into());
    });
    writer.list(&file.definitions, |writer, it| {
        writer.number(it.name.into());
        writer.number(it.line.into());
        writer.number(it.end.into());
        writer.number(it.depth.into());
        writer.number(it.counts.into());
        writer.number(it.form.map_or(0, |form| u64::from(form) + 1));
        writer.text(&it.signature);
    });
    writer.list(&file.definers, |writer, id| writer.number((*id).into()));
    writer.end(out);
}

fn read_file(reader: &mut RecordReader<'_>, index: &mut Index, _path: &str) -> Option<IndexedPath> {
    let limit = index.names.len() as u64;
    let (stamp, is_settled) = read_stamp(reader)?;
    let hash = *reader.bytes()?.first_chunk::<32>()?;
    let id = |reader: &mut RecordReader<'_>| {
        reader.number().filter(|id| *id < limit).and_then(|id| NameId::try_from(id).ok())
    };
    let small = |reader: &mut RecordReader<'_>| u32::try_from(reader.number()?).ok();
    let file = crate::index::IndexedFacts {
        language: Language::of_number(u8::try_from(reader.number()?).ok()?)?,
        state: FileState::of_number(u8::try_from(reader.number()?).ok()?)?,
        lines: small(reader)?,
        length: small(reader)?,
        stem: id(reader)?,
        words: reader.list(|reader| {
            let id = id(reader)?;
            let text = u16::try_from(reader.number()?).ok()?;
            Some((id, WordCount { text, names: u16::try_from(reader.number()?).ok()? }))
        })?,
        path_words: reader.list(id)?,
        references: reader.list(|reader| Some((id(reader)?, small(reader)?)))?,
        definitions: reader.list(|reader| {
            Some(Definition {
                name: id(reader)?,
                line: small(reader)?,
                end: small(reader)?,
                depth: u8::try_from(reader.number()?).ok()?,
                counts: reader.number()? == 1,
                form: match reader.number()? {
                    0 => None,
                    form => Some(NameId::try_from(form - 1).ok().filter(|_| form <= limit)?),
                },
                signature: reader.text()?.into(),
            })
        })?,
        definers: reader.list(id)?,
    };
    Some(IndexedPath { stamp, is_settled, hash, file })
}

fn write_commit(id: &str, commit: &Commit, out: &mut Vec<u8>) {
    let mut writer = RecordWriter::new(COMMIT);
    writer.text(id);
    writer.list(&commit.paths, |writer, path| writer.text(path));
    writer.list(&commit.renamed, |writer, (from, to)| {
        writer.text(from);
        writer.text(to);
    });
    writer.list(&commit.words, |writer, word| writer.text(word));
    writer.end(out);
}

fn read_commit(reader: &mut RecordReader<'_>) -> Option<(String, Commit)> {
    let text = |reader: &mut RecordReader<'_>| reader.text().map(str::to_owned);
    let id = text(reader)?;
    let paths = reader.list(text)?.into();
    let renamed = reader.list(|reader| Some((text(reader)?, text(reader)?)))?.into();
    let words = reader.list(text)?.into();
    Some((id, Commit { paths, renamed, words }))
}

#[cfg(test)]
mod tests;
