//! Reads and writes whole files: reading waits for nothing and has an end, and nobody ever sees a
//! half-written file. This module knows nothing of the content.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::system::open_at_once;

/// End of the name of a file that is not whole yet.
pub const DRAFT: &str = ".new";

/// Opens a regular file of at most `most` bytes. Refuses anything else at once, in words: a pipe would
/// be waited for, and a device may have no end.
pub fn open(path: &Path, most: u64) -> io::Result<File> {
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let file = open_at_once(path)?;
    let status = file.metadata()?;
    match status.len() {
        _ if status.is_dir() => Err(refused("it is a folder, not a regular file".to_owned())),
        _ if !status.is_file() => Err(refused("it is not a regular file".to_owned())),
        bytes if bytes > most => Err(refused(format!("it has more than {most} bytes"))),
        _ => Ok(file),
    }
}

/// Reads a regular file of at most `most` bytes, as [`open`] does. It may grow meanwhile; what is more
/// is not read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, most)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the text of a regular file, as [`read`] does.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Replaces or creates a file that is private to the user. `write` gets an empty draft and its
/// path, and fills the draft, which then takes the place of the file. If anything fails, the file
/// stays as it was.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut File, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(DRAFT);
    let draft = PathBuf::from(name);
    let written = create(&draft).and_then(|mut file| {
        step()?;
        write(&mut file, &draft)?;
        file.flush()?;
        step()?;
        file.sync_data()
    });
    let written = written.and_then(|()| {
        step()?;
        std::fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = remove(&draft);
    }
    written
}

/// Removes a file, unless there is none.
pub fn remove(path: &Path) -> io::Result<()> {
    step()?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes the names in a folder to the disk, so that they survive a loss of power.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    step()?;
    File::open(path)?.sync_all()
}

/// Marks a place between two operations on files. In a test, the program can be made to end there.
#[cfg(not(test))]
pub fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub use self::kill::step;

/// Ends the program at a chosen place, as far as its files are concerned.
#[cfg(test)]
pub mod kill {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Fails at the place with this number, and at all places after it, until `None` is set.
    pub fn at(place: Option<usize>) {
        LEFT.set(place);
    }

    pub fn step() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }

    /// Returns whether the program has been ended.
    pub fn has_come() -> bool {
        LEFT.get() == Some(0)
    }
}

/// Creates an empty file that only the user may read, in place of any file or link at `path`.
pub fn create(path: &Path) -> io::Result<File> {
    let _ = remove(path);
    step()?;
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        replace(&path, |file, _| file.write_all(b"one")).unwrap();
        let failed = replace(&path, |file, draft| {
            file.write_all(b"tw")?;
            assert_eq!(std::fs::read(draft)?, b"tw");
            Err(io::Error::other("no"))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_a_regular_file_within_its_limit_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "four");
        let why = |path: &Path| read(path, 3).unwrap_err().to_string();
        assert_eq!(why(&path), "it has more than 3 bytes");
        let pipe = dir.path().join("p");
        crate::system::make_fifo(&pipe);
        for path in [&*pipe, Path::new("/dev/zero")] {
            assert_eq!(why(path), "it is not a regular file", "{path:?}");
        }
        assert_eq!(why(dir.path()), "it is a folder, not a regular file");
    }
}
