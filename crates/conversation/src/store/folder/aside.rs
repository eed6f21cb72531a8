//! Copies the state's files aside before a recovery changes or drops any of them.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::files::Files;
use crate::visible::visible_path;
use crate::whole_file::create;

/// Copies all files of a state into a new folder in `damaged`, and returns the folder.
pub(in crate::store) fn keep(files: &Files) -> io::Result<PathBuf> {
    let folder = new_folder(&files.damaged())?;
    for path in files.all().into_iter().chain([files.trust()]) {
        if let Some(name) = path.file_name() {
            copy(&path, &folder.join(name))?;
        }
    }
    Ok(folder)
}

/// Copies the files of a state that has another format into the folder `format-N`. Leaves a copy
/// that is already there, unless the file has changed since.
pub(in crate::store) fn keep_format(files: &Files, format: i64) -> io::Result<PathBuf> {
    let folder = files.folder().join(format!("format-{format}"));
    private_folder(&folder)?;
    let (own, other) = (std::fs::canonicalize(&folder)?, std::fs::canonicalize(files.folder())?);
    if own.parent() != Some(&*other) {
        return Err(io::Error::other(format!("{} is a link", visible_path(&folder))));
    }
    for path in files.all() {
        let Some(name) = path.file_name() else { continue };
        let to = folder.join(name);
        if !is_copied(&path, &to) {
            copy(&path, &to)?;
        }
    }
    Ok(folder)
}

fn is_copied(from: &Path, to: &Path) -> bool {
    let status = |path: &Path| {
        let status = std::fs::symlink_metadata(path).ok()?;
        Some((status.len(), status.modified().ok()?))
    };
    status(from).zip(status(to)).is_some_and(|(from, to)| from.0 == to.0 && from.1 <= to.1)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => {
            let mut file = create(to)?;
            io::copy(&mut opened?, &mut file)?;
            file.sync_data()
        }
    }
}

fn new_folder(within: &Path) -> io::Result<PathBuf> {
    private_folder(within)?;
    let stamp = stamp();
    for number in 1.. {
        let name = if number == 1 { stamp.clone() } else { format!("{stamp}-{number}") };
        let folder = within.join(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Creates a folder and its parents, accessible only to the user.
pub(in crate::store) fn private_folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns the current time in the form used in file names.
pub(in crate::store) fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H%M%SZ").to_string()
}
