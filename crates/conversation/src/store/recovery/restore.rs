//! Replaces a state with a backup: the backup is copied beside the state, and the renaming of one
//! file makes it the state.

use std::io;
use std::path::{Path, PathBuf};

use super::backup;
use crate::store::StoreError;
use crate::store::folder::{Files, aside, marks};
use crate::store::sqlite::SqliteStore;
use crate::whole_file::{remove, sync_folder};

/// Replaces the state with a backup and copies the old files into `damaged`. Ids continue where
/// they were. Returns the folder with the copies. If the program ends before this is done, the state
/// is the old one until the renaming of one file, and the backup from then on.
///
/// # Errors
/// Those of [`backup::check`], after which nothing has changed; [`StoreError::Link`];
/// [`StoreError::Backup`] when a file cannot be copied or written.
pub fn restore(folder: &Path, backup: &Path) -> Result<PathBuf, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    backup::check(backup)?;
    let failed = StoreError::with_backup(backup);
    finish_restoring(&files).map_err(&failed)?;
    let kept = aside::keep(&files).map_err(&failed)?;
    backup::copy(backup, &files.restoring()).map_err(&failed)?;
    put_in_place(&files).map_err(&failed)?;
    Ok(kept)
}

/// Replaces the database with that of a backup. The list of trusted projects stays.
pub(super) fn replace_database(files: &Files, backup: &Path) -> io::Result<()> {
    backup::copy_database(backup, &files.restoring())?;
    put_in_place(files)
}

fn put_in_place(files: &Files) -> io::Result<()> {
    sync_folder(files.folder())?;
    finish_restoring(files)
}

/// Puts the backup that is being restored in the place of the state, if there is one. Can be
/// repeated from the beginning after it was broken off anywhere. The restored state counts as newer
/// than the one before, so that it is not taken for a state that lacks changes.
pub(super) fn finish_restoring(files: &Files) -> io::Result<()> {
    let backup = files.restoring();
    if !backup.exists() {
        return Ok(());
    }
    remove_wal(files)?;
    backup::copy_database(&backup, &files.database())?;
    backup::put_trust_back(&backup, files)?;
    if let Some(mut mark) = marks::read(files).newest {
        mark.counters.changes += 1;
        SqliteStore::open(files, Some(&mark)).map_err(io::Error::other)?;
    }
    sync_folder(files.folder())?;
    remove(&backup)
}

/// Removes the write-ahead log, which is valid only together with its database.
pub(super) fn remove_wal(files: &Files) -> io::Result<()> {
    remove(&files.wal())?;
    remove(&files.wal_index())
}

/// Fails if a backup is being restored, since the files are then those of neither state.
pub(super) fn refuse_restoring(files: &Files) -> Result<(), StoreError> {
    let backup = files.restoring();
    match backup.exists() {
        false => Ok(()),
        true => Err(StoreError::with_backup(&backup)(
            "restoring it was broken off; make the state folder writable and start the server, which \
             ends the restoring",
        )),
    }
}
