//! Replaces a state with a backup: all files are prepared beside it, and the renaming of one file
//! makes the backup the state.

use std::io;
use std::path::{Path, PathBuf};

use super::{backup, begin_anew};
use crate::store::StoreError;
use crate::store::folder::{Aside, Files};
use crate::whole_file::{remove, sync_folder};

/// Replaces the state with a backup and copies the old files into `damaged`. Ids continue where
/// they were. Returns the folder with the copies. If the program ends before this is done, the state
/// is the old one until the renaming of one file, and the backup from then on.
///
/// # Errors
/// Those of [`backup::check`], after which nothing has changed; [`StoreError::Link`];
/// [`StoreError::Backup`] when a file cannot be copied or written.
pub(crate) fn restore(folder: &Path, backup: &Path) -> Result<PathBuf, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    backup::check(backup)?;
    let failed = StoreError::with_backup(backup);
    let mut aside = Aside::new(&files, None);
    finish_restoring(&files).map_err(&failed)?;
    aside.keep().map_err(&failed)?;
    backup::copy(backup, &files.restoring()).map_err(&failed)?;
    sync_folder(folder).map_err(&failed)?;
    finish_restoring(&files).map_err(&failed)?;
    Ok(aside.kept().unwrap_or_default())
}

/// Puts the backup that is being restored in the place of the state, if there is one. Can be
/// repeated from the beginning after it was broken off anywhere.
pub(super) fn finish_restoring(files: &Files) -> io::Result<()> {
    let backup = files.restoring();
    if !backup.exists() {
        return Ok(());
    }
    begin_anew(files, Some(&backup))?;
    remove(&files.log())?;
    backup::put_trust_back(&backup, files)?;
    sync_folder(files.folder())?;
    remove(&backup)
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
