//! Reads one text file, whole or some of its lines. Must not know what the text is for.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::project::Projects;
use super::{FileError, lines};
use crate::context::picture::PictureKind;
use crate::system::open_at_once;

/// Default size limit of a file, in bytes: 1 MiB, about 300,000 tokens.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 1 << 20;

/// Number of bytes at the start of a file that are searched for a NUL byte, the sign of a binary
/// file. Git checks about as many.
const NUL_WINDOW: usize = 8 * 1024;

/// Ends of the names of pictures and PDFs.
const PICTURE_ENDS: &[&str] = &["png", "jpg", "jpeg", "gif", "webp", "pdf"];

/// Maximum number of bytes reserved before reading: a sparse file may claim any size.
const MAX_RESERVED_BYTES: u64 = 64 << 20;

/// Limits on reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Maximum size of the file in bytes, even if only some lines are read.
    pub max_bytes: u64,
}

/// A file's text, or some of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Path as it was requested; for an opened file, its [`path`](super::OpenedFile::path).
    pub path: PathBuf,
    /// The text with the file's line ends, without a leading UTF-8 byte-order mark.
    pub content: String,
    /// First and last line of `content`; `None` when it is the whole file.
    pub lines: Option<(u64, u64)>,
    /// Number of lines in the whole file; an empty file has none.
    pub total_lines: u64,
    /// Project of the file, by [`project_root`](super::project_root).
    pub project: Option<PathBuf>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_bytes: DEFAULT_MAX_FILE_BYTES }
    }
}

/// Reads the file at `path`, which must be absolute: the whole file, or the lines of `range`, both
/// ends included. A range without an end reaches to the last line.
///
/// Symbolic links are followed. FIFOs, sockets and devices are refused without opening them. Take
/// the time for [`Item::taken_ms`](crate::context::item::Item::taken_ms) before the call, so that a
/// change during the call is noticed later.
///
/// Errors: every kind of [`FileError`] except `not-absolute`, `not-local` and `outside-folder`.
pub fn read(
    path: &Path,
    range: Option<(u64, Option<u64>)>,
    options: &ReadOptions,
) -> Result<FileText, FileError> {
    read_in(path, range, options, &mut Projects::default())
}

/// Reads a file like [`read`], but remembers the projects of earlier files.
pub(super) fn read_in(
    path: &Path,
    range: Option<(u64, Option<u64>)>,
    options: &ReadOptions,
    projects: &mut Projects,
) -> Result<FileText, FileError> {
    check_range(range)?;
    part(path, load(path, options.max_bytes)?, range, projects)
}

/// Fails for a range that no file can have.
pub(super) fn check_range(range: Option<(u64, Option<u64>)>) -> Result<(), FileError> {
    match range {
        Some((start, end)) if start == 0 || end.is_some_and(|end| end < start) => {
            Err(FileError::BadRange { start, end })
        }
        _ => Ok(()),
    }
}

/// Cuts the lines of `range` from a file's whole text.
pub(super) fn part(
    path: &Path,
    text: String,
    range: Option<(u64, Option<u64>)>,
    projects: &mut Projects,
) -> Result<FileText, FileError> {
    let total_lines = lines::count(&text);
    let (content, lines) = match range {
        None => (text, None),
        Some((start, end)) => {
            let past_end =
                || FileError::PastEnd { path: path.to_path_buf(), start, end, total_lines };
            let part = lines::slice(&text, start, end).ok_or_else(past_end)?;
            (part.to_owned(), Some((start, end.unwrap_or(total_lines))))
        }
    };
    let project = projects.of_file(path);
    Ok(FileText { path: path.to_path_buf(), content, lines, total_lines, project })
}

/// Returns the lines of `range` from `text`, or all lines, as if the file at `path` had this text.
///
/// # Errors
/// [`FileError::BadRange`], [`FileError::TooLarge`], [`FileError::PastEnd`].
pub fn lines_of(
    path: &Path,
    text: String,
    range: Option<(u64, Option<u64>)>,
    options: &ReadOptions,
) -> Result<FileText, FileError> {
    check_range(range)?;
    check_size(path, text.len() as u64, options.max_bytes)?;
    part(path, text, range, &mut Projects::default())
}

/// Reads the whole text of a regular file of at most `limit` bytes, without a byte-order mark.
pub(super) fn load(path: &Path, limit: u64) -> Result<String, FileError> {
    load_open(path, open(path, limit)?, limit)
}

/// Reads the whole text of an open file. Fails unless it is a regular file of at most `limit`
/// bytes.
pub(super) fn load_open(path: &Path, file: File, limit: u64) -> Result<String, FileError> {
    decode(path, content_of(path, file, limit)?)
}

/// Returns whether a file has the name of a picture or PDF.
fn is_picture_name(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    PICTURE_ENDS.iter().any(|picture| end.eq_ignore_ascii_case(picture))
}

/// Reads the content of a file of at most `limit` bytes that begins as a picture or PDF; `None` for
/// any other file. Fails for one that only has the name of a picture.
pub fn seen(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    seen_open(path, open(path, u64::MAX)?, limit)
}

/// Reads an open file like [`seen`].
pub(super) fn seen_open(
    path: &Path,
    mut file: File,
    limit: u64,
) -> Result<Option<Vec<u8>>, FileError> {
    let mut head = [0; 16];
    let read = file.read(&mut head);
    let count = read.map_err(|source| refused(path, source))?;
    if PictureKind::begun(&head[..count]).is_none() {
        // What another program would take for a picture by its name must be one: it may be code.
        return match is_picture_name(path) {
            true => Err(FileError::BrokenPicture { path: path.to_owned() }),
            false => Ok(None),
        };
    }
    file.rewind().map_err(|source| refused(path, source))?;
    content_of(path, file, limit).map(Some)
}

fn content_of(path: &Path, file: File, limit: u64) -> Result<Vec<u8>, FileError> {
    let size = size_of_regular(path, file.metadata())?;
    check_size(path, size, limit)?;
    let expected = size.min(limit).min(MAX_RESERVED_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0) + 1);
    // The file may have grown since its size was read, and files in /proc claim to be empty.
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|source| refused(path, source))?;
    check_size(path, bytes.len() as u64, limit)?;
    Ok(bytes)
}

/// Opens a regular file of at most `limit` bytes. Does not wait if the file has just become
/// something else, such as a FIFO.
pub(super) fn open(path: &Path, limit: u64) -> Result<File, FileError> {
    check_size(path, size_of_regular(path, path.metadata())?, limit)?;
    open_at_once(path).map_err(|source| refused(path, source))
}

/// Converts an I/O error: to [`FileError::Missing`] if nothing is at `path`, otherwise to
/// [`FileError::Unreadable`].
pub(super) fn refused(path: &Path, source: io::Error) -> FileError {
    let path = path.to_path_buf();
    if is_gone(&source) {
        FileError::Missing { path }
    } else {
        FileError::Unreadable { path, source }
    }
}

/// Returns whether the error means that nothing is there: no such name, or a file in place of a
/// folder of the path.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the size of a regular file, in bytes; fails for anything else.
pub(super) fn size_of_regular(
    path: &Path,
    metadata: io::Result<Metadata>,
) -> Result<u64, FileError> {
    let metadata = metadata.map_err(|source| refused(path, source))?;
    let (kind, path) = (metadata.file_type(), path.to_path_buf());
    let what = match kind {
        _ if kind.is_file() => return Ok(metadata.len()),
        _ if kind.is_dir() => return Err(FileError::IsDirectory { path }),
        _ if kind.is_fifo() => "FIFO",
        _ if kind.is_socket() => "socket",
        _ if kind.is_char_device() || kind.is_block_device() => "device",
        _ => "special file",
    };
    Err(FileError::NotRegular { path, what })
}

/// Fails for a file of more than `limit` bytes.
pub(super) fn check_size(path: &Path, bytes: u64, limit: u64) -> Result<(), FileError> {
    if bytes > limit {
        return Err(FileError::TooLarge { path: path.to_path_buf(), bytes, limit });
    }
    Ok(())
}

fn decode(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    let binary = |sign, offset: usize| FileError::Binary {
        path: path.to_path_buf(),
        sign,
        offset: offset as u64,
    };
    let head = &bytes[..bytes.len().min(NUL_WINDOW)];
    if let Some(offset) = memchr::memchr(0, head) {
        return Err(binary("binary: it has a NUL byte", offset));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        binary("not UTF-8 text: it has an invalid byte", offset)
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
