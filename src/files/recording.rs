//! Finds and opens files that other programs may still be writing, to read them piece by piece.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use super::FileError;
use super::read::{open, refused, size_of_regular};

/// Maximum size of a recording in bytes.
pub(crate) const LARGEST_RECORDING: u64 = 4 << 30;
/// Maximum number of files that are taken from one folder and the folders in it.
pub(crate) const MOST_RECORDINGS: usize = 20_000;
/// Maximum depth of folders that are searched for recordings.
const DEEPEST: usize = 12;
/// Number of bytes at the beginning of a file, and before an offset, from which the file is
/// recognized.
const END_BYTES: u64 = 4096;
/// Size of the buffer for reading.
const BUFFER: usize = 256 << 10;

/// An open file of which a part may have been read before.
pub(crate) struct Recording {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Recording {
    /// Opens a regular file, under its real name.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let file = open(path, LARGEST_RECORDING)?;
        let bytes = size_of_regular(path, file.metadata())?;
        let path = path.canonicalize().map_err(|error| refused(path, error))?;
        Ok(Self { file, path, bytes })
    }

    /// Returns the file's real name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's size when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a hash of the file's beginning and of the bytes before `offset`, which stays the
    /// same as long as the file changes only after `offset`.
    pub(crate) fn ends(&self, offset: u64) -> Result<String, FileError> {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = vec![0; usize::try_from(offset.min(END_BYTES)).unwrap_or(0)];
        // Reading at an offset does not move the position of a reader of the file.
        for start in [0, offset - bytes.len() as u64] {
            let read = self.file.read_exact_at(&mut bytes, start);
            read.map_err(|error| refused(&self.path, error))?;
            hasher.update(&bytes);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Returns the content from `offset` to the end that the file had when it was opened.
    pub(crate) fn from(&self, offset: u64) -> Result<BufReader<Take<&File>>, FileError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).map_err(|error| refused(&self.path, error))?;
        let part = file.take(self.bytes.saturating_sub(offset));
        Ok(BufReader::with_capacity(BUFFER, part))
    }
}

/// Returns `path` if it is a file. If `path` is a folder, returns the files in it, and in folders
/// below it, that may be recordings, sorted by name. Does not follow links in the folder.
///
/// # Errors
/// [`FileError`] for a path that is missing, or neither a file nor a folder.
pub(crate) fn recordings(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    match size_of_regular(path, path.metadata()) {
        Ok(_) => return Ok(vec![path.to_owned()]),
        Err(FileError::IsDirectory { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut walk = WalkBuilder::new(path);
    walk.standard_filters(false).follow_links(false).max_depth(Some(DEEPEST));
    walk.sort_by_file_name(std::ffi::OsStr::cmp);
    let entries = walk.build().filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let may_be = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl" || end == "md");
    let paths = files.map(ignore::DirEntry::into_path).filter(may_be);
    Ok(paths.take(MOST_RECORDINGS).collect())
}

/// Returns the project of a file within a folder `.specstory`: the folder that contains
/// `.specstory`.
pub(crate) fn project_of_history(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| folder.ends_with(".specstory"))?.parent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_has_the_same_ends_and_another_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let ends = Recording::open(&path).unwrap().ends(8).unwrap();
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let grown = Recording::open(&path).unwrap();
        assert_eq!(grown.ends(8).unwrap(), ends);
        let mut rest = String::new();
        grown.from(8).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "three\n");
        std::fs::write(&path, "one\ntoo\nthree\n").unwrap();
        assert_ne!(Recording::open(&path).unwrap().ends(8).unwrap(), ends);
    }

    #[test]
    fn only_regular_files_that_may_be_recordings_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join(".specstory/history");
        std::fs::create_dir_all(&inner).unwrap();
        for name in ["b.md", "a.jsonl", "c.txt"] {
            std::fs::write(inner.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(inner.join("a.jsonl"), inner.join("link.jsonl")).unwrap();
        let fifo = inner.join("pipe.jsonl");
        crate::system::make_fifo(&fifo);
        let found = recordings(folder.path()).unwrap();
        assert_eq!(found, [inner.join("a.jsonl"), inner.join("b.md")]);
        assert_eq!(project_of_history(&found[1]), Some(folder.path()));
        assert_eq!(
            Recording::open(&fifo).err().map(|error| error.kind()),
            Some("not-a-regular-file")
        );
        assert!(recordings(&folder.path().join("none")).is_err());
    }
}
