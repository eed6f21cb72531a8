//! Writes files atomically, so that nobody ever sees a half-written file. This module knows nothing
//! of the content.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Replaces or creates a file that is private to the user. `write` gets an empty draft and its
/// path, and fills the draft, which then takes the place of the file. If anything fails, the file
/// stays as it was.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut File, &Path) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let draft = PathBuf::from(name);
    let written = create(&draft).and_then(|mut file| {
        write(&mut file, &draft)?;
        file.flush()?;
        file.sync_data()
    });
    let written = written.and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

/// Creates an empty file that only the user may read, in place of any file or link at `path`.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let _ = std::fs::remove_file(path);
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
}
