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
pub(crate) const DEFAULT_MAX_FILE_BYTES: u64 = 1 << 20;

/// Number of bytes at the start of a file that are searched for a NUL byte, the sign of a binary
/// file. Git checks about as many.
const NUL_WINDOW: usize = 8 * 1024;

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
    /// Path as it was requested; for an opened file, its [`path`](super::Opened::path).
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
pub(crate) fn read(
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
pub(crate) fn lines_of(
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

/// Reads the content of a file of at most `limit` bytes that begins as a picture or PDF; `None` for
/// any other file.
pub(crate) fn seen(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
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
        return Ok(None);
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
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Content, range and total number of lines, or the kind of the error.
    type Expected<'a> = Result<(&'a str, Option<(u64, u64)>, u64), &'a str>;

    #[track_caller]
    fn check(bytes: &[u8], range: Option<(u64, Option<u64>)>, expected: Expected<'_>) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        fs::write(&path, bytes).unwrap();
        let found = read(&path, range, &ReadOptions { max_bytes: 20 });
        let found = found.as_ref().map(|f| (f.content.as_str(), f.lines, f.total_lines));
        assert_eq!(found.map_err(FileError::kind), expected);
    }

    #[test]
    fn whole_files_are_verbatim() {
        check(b"a\nb\n", None, Ok(("a\nb\n", None, 2)));
        check(b"a\r\nb", None, Ok(("a\r\nb", None, 2)));
        check(b"", None, Ok(("", None, 0)));
        check("\u{feff}ä".as_bytes(), None, Ok(("ä", None, 1)));
    }

    #[test]
    fn ranges_are_lines_of_the_file() {
        check(b"a\nb\nc\n", Some((2, Some(3))), Ok(("b\nc\n", Some((2, 3)), 3)));
        check(b"a\nb\nc", Some((3, None)), Ok(("c", Some((3, 3)), 3)));
        check(b"a\r\nb\r\n", Some((1, Some(1))), Ok(("a\r\n", Some((1, 1)), 2)));
        check(b"one", Some((1, Some(1))), Ok(("one", Some((1, 1)), 1)));
    }

    #[test]
    fn ranges_past_the_end_say_the_real_length() {
        check(b"a\nb\n", Some((2, Some(3))), Err("past-end"));
        check(b"a\nb\n", Some((3, None)), Err("past-end"));
        check(b"", Some((1, None)), Err("past-end"));
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("x"), "1\n2\n3").unwrap();
        let error = read(&temp.path().join("x"), Some((2, Some(9))), &ReadOptions::default());
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("has 3 lines, so the range 2-9 goes past its end")
        );
    }

    #[test]
    fn impossible_ranges_are_refused_before_reading() {
        check(b"a\n", Some((0, None)), Err("bad-range"));
        check(b"a\n", Some((2, Some(1))), Err("bad-range"));
        let gone = Path::new("/nonexistent/x");
        assert_eq!(
            read(gone, Some((0, Some(1))), &ReadOptions::default()).unwrap_err().kind(),
            "bad-range"
        );
    }

    #[test]
    fn binary_files_say_what_gave_them_away() {
        let sign = |bytes: &[u8]| match decode(Path::new("/x"), bytes.to_vec()) {
            Err(FileError::Binary { sign, offset, .. }) => Some((sign, offset)),
            _ => None,
        };
        assert_eq!(sign(b"ab\0c"), Some(("binary: it has a NUL byte", 2)));
        let invalid = "not UTF-8 text: it has an invalid byte";
        assert_eq!(sign(b"abc\xffd"), Some((invalid, 3)));
        assert_eq!(sign(b"ab\xc3"), Some((invalid, 2)));
        let mut late_nul = vec![b'a'; NUL_WINDOW];
        late_nul.push(0);
        assert_eq!(sign(&late_nul), None);
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        check(&[b'a'; 20], None, Ok(("aaaaaaaaaaaaaaaaaaaa", None, 1)));
        check(&[b'a'; 21], None, Err("file-too-large"));
        check(&[b'a'; 21], Some((1, Some(1))), Err("file-too-large"));
    }

    #[test]
    fn huge_sparse_files_are_refused_without_reading() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("huge");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read(&path, None, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, FileError::TooLarge { bytes: 0x100_0000_0000, .. }), "{error}");
    }

    #[track_caller]
    fn check_kind(path: &Path, expected: &str) {
        let found = read(path, None, &ReadOptions::default());
        assert_eq!(found.unwrap_err().kind(), expected);
    }

    #[test]
    fn what_is_not_a_file_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        check_kind(temp.path(), "is-a-directory");
        check_kind(&at("gone"), "file-missing");
        fs::write(at("file"), "").unwrap();
        check_kind(&at("file/below"), "file-missing");
        symlink(at("gone"), at("dangling")).unwrap();
        check_kind(&at("dangling"), "file-missing");
        symlink(at("loop"), at("loop")).unwrap();
        check_kind(&at("loop"), "file-unreadable");
        check_kind(Path::new("/a\0b"), "file-unreadable");
        check_kind(Path::new("/dev/null"), "not-a-regular-file");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        check_kind(&at("socket"), "not-a-regular-file");
    }

    #[test]
    fn fifos_never_block() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("fifo");
        crate::system::make_fifo(&path);
        check_kind(&path, "not-a-regular-file");
        let after_the_first_look = load_open(&path, open_at_once(&path).unwrap(), 1);
        assert_eq!(after_the_first_look.unwrap_err().kind(), "not-a-regular-file");
    }

    #[test]
    fn a_closed_file_is_unreadable_with_its_cause() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("closed");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        if File::open(&path).is_ok() {
            return; // Permissions do not stop root.
        }
        let error = read(&path, None, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.kind(), "file-unreadable");
        assert!(error.to_string().contains("Permission denied"), "{error}");
    }

    #[test]
    fn refusals_of_the_system_are_sorted() {
        let kind = |kind: io::ErrorKind| refused(Path::new("/x"), kind.into()).kind();
        assert_eq!(kind(io::ErrorKind::PermissionDenied), "file-unreadable");
        assert_eq!(kind(io::ErrorKind::NotADirectory), "file-missing");
    }

    #[test]
    fn files_without_a_size_are_read() {
        let text = read(Path::new("/proc/self/status"), None, &ReadOptions::default()).unwrap();
        assert!(text.content.starts_with("Name:"));
    }
}
