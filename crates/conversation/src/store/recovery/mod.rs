//! Opens a state folder: looks for damage, replaces a damaged database with the newest good backup,
//! and reports what was found.
//!
//! A start reads the definitions of the tables and compares the number of changes in the database
//! with the high-water marks. It reads the whole database only if the two differ or if the server
//! has found damage before; otherwise the server does that after its first answers. Before a database
//! is replaced, all files are copied into the folder `damaged`.

pub mod backup;
mod restore;

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use self::backup::Backup;
pub use self::restore::restore;
use self::restore::{finish_restoring, refuse_restoring, remove_wal, replace_database};
use super::StoreError;
use super::folder::aside;
use super::folder::marks::{self, HighWaterMark};
pub use super::folder::{Files, Finding, TRUST_FILE};
use super::sqlite::{Image, Reopen, SqliteStore, refuse_other};
pub use super::sqlite::{OpenedStore, check_file};
use crate::visible::visible_path;
use crate::whole_file::remove;

/// Function that takes the lock of a folder, unless this process has the lock already. On failure
/// it returns the reason.
pub type Relock = Box<dyn FnMut() -> Result<(), String> + Send>;

/// Opens the state in a folder that belongs to this process. `relock` runs before anything is
/// written, and again at each change while the folder cannot be written.
///
/// # Errors
/// [`StoreError::OtherFormat`], [`StoreError::Link`], or the error that prevents even reading.
pub fn open(folder: &Path, relock: Relock) -> Result<OpenedStore, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    let closed = close_to_others(&files)?;
    let mut opened = match open_again(&files, &Arc::new(Mutex::new(relock)), true) {
        Err(StoreError::OtherFormat { path, found, known, .. }) => {
            let copy = Some(aside::keep_format(&files, found).map_err(beside)?);
            return Err(StoreError::OtherFormat { path, found, known, copy });
        }
        opened => opened?,
    };
    opened.findings.extend(closed);
    Ok(opened)
}

/// Opens the state for writing. If that is not possible, opens it for reading if `or_read`.
fn open_again(
    files: &Files,
    relock: &Arc<Mutex<Relock>>,
    or_read: bool,
) -> Result<OpenedStore, StoreError> {
    let locked = relock.lock().unwrap_or_else(PoisonError::into_inner)();
    let opened = locked.map_err(StoreError::ReadOnly);
    let opened = opened.and_then(|()| or_wholly(|wholly| open_for_writing(files, wholly)));
    let mut opened = match opened {
        Err(error @ (StoreError::OtherFormat { .. } | StoreError::Link(_))) => return Err(error),
        Err(error) if or_read => or_wholly(|wholly| open_for_reading(files, &error, wholly))?,
        opened => opened?,
    };
    let (files, relock) = (files.clone(), Arc::clone(relock));
    let reopen: Reopen = Box::new(move |or_read| open_again(&files, &relock, or_read));
    opened.store.reopen_by(reopen);
    opened.findings.iter().for_each(|finding| tracing::warn!("{}", finding.text));
    Ok(opened)
}

/// Opens a state. If the part that a start reads is damaged, reads the whole state, and opens it
/// again.
fn or_wholly(
    open: impl Fn(bool) -> Result<OpenedStore, StoreError>,
) -> Result<OpenedStore, StoreError> {
    match open(false) {
        Err(StoreError::Damaged(_)) => open(true),
        opened => opened,
    }
}

/// Reads a whole state folder without changing anything, and returns what a repair would report
/// about its contents.
///
/// # Errors
/// [`StoreError::OtherFormat`], [`StoreError::Link`], or another error when a file cannot be read.
pub fn inspect(folder: &Path) -> Result<Vec<Finding>, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    refuse_restoring(&files)?;
    Ok(FolderState::read(&files, true)?.findings())
}

/// The state of a folder as it was found.
struct FolderState {
    mark: Option<HighWaterMark>,
    /// Marks that are missing or cannot be read.
    unusable: Vec<PathBuf>,
    /// The database; `None` if there is none.
    image: Option<Image>,
    /// Number of changes in the database; 0 if it is damaged.
    changes: u64,
    /// Description of the damage of the database, if it is damaged.
    wrong: Option<String>,
    /// Good backup with which to replace the database, and its number of changes.
    backup: Option<(Backup, u64)>,
}

impl FolderState {
    /// Reads the files, and the whole database if `wholly` or if something is suspect.
    fn read(files: &Files, wholly: bool) -> Result<Self, StoreError> {
        let marks::FoundMarks { newest: mark, unusable } = marks::read(files);
        let mut state = Self { mark, unusable, image: None, changes: 0, wrong: None, backup: None };
        match state.read_database(files, wholly) {
            Ok(()) => {}
            Err(StoreError::Damaged(wrong)) => {
                (state.image, state.changes, state.wrong) = (None, 0, Some(wrong));
            }
            Err(error) => return Err(error),
        }
        if state.wrong.is_some() || state.missing() > 0 {
            state.backup = backup::newest_good(files, state.changes);
        }
        Ok(state)
    }

    fn read_database(&mut self, files: &Files, wholly: bool) -> Result<(), StoreError> {
        let path = files.database();
        if std::fs::metadata(&path).map_or(true, |status| status.len() == 0) {
            let damaged = || StoreError::Damaged("it is missing or empty".to_owned());
            return if self.reached() == 0 { Ok(()) } else { Err(damaged()) };
        }
        let image = Image::open(&path)?;
        let format = image.format()?;
        let known = self.mark.map(|mark| mark.format);
        if known.is_none_or(|known| known == format) {
            refuse_other(format, &path)?;
        } else {
            return Err(StoreError::Damaged("the number of its format has changed".to_owned()));
        }
        if format == 0 {
            return Ok(());
        }
        self.changes = image.counters()?.changes;
        let is_suspect = self.missing() > 0 || self.mark.is_none_or(|mark| mark.is_damaged);
        if wholly || is_suspect {
            image.check()?;
        }
        self.image = Some(image);
        Ok(())
    }

    /// Returns the number of changes that were stored at some time.
    fn reached(&self) -> u64 {
        self.mark.map_or(0, |mark| mark.counters.changes)
    }

    /// Returns the number of changes that the database lacks.
    fn missing(&self) -> u64 {
        self.reached().saturating_sub(self.changes)
    }

    /// Returns the findings about the files.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(wrong) = &self.wrong {
            findings.push(self.damage(wrong));
        } else if self.missing() > 0 {
            findings.push(self.loss());
        }
        if let [path] = &*self.unusable {
            findings.push(Finding::repaired(format!(
                "{} was missing or could not be read, so it is written anew",
                visible_path(path)
            )));
        }
        findings
    }

    fn damage(&self, wrong: &str) -> Finding {
        let text = format!("the database was damaged ({wrong}); ");
        match &self.backup {
            Some((backup, changes)) => {
                let text = text + &taken(backup);
                match (self.mark, self.reached().saturating_sub(*changes)) {
                    (Some(_), 0) => Finding::repaired(text + ", and no change is lost"),
                    (Some(_), lost) => Finding::lost(format!("{text}, and {}", are_lost(lost))),
                    (None, _) => Finding::lost(text + ", and the changes made since then are lost"),
                }
            }
            None => Finding::lost(
                text + "there is no good backup, so an empty database takes its place, and \
                        everything in it is lost",
            ),
        }
    }

    fn loss(&self) -> Finding {
        let lacks = "the newest changes are missing from the database";
        match &self.backup {
            Some((backup, changes)) => {
                let text = format!("{lacks}; {}", taken(backup));
                match self.reached().saturating_sub(*changes) {
                    0 => Finding::repaired(text + ", and no change is lost"),
                    lost => Finding::lost(format!("{text}, and {}", are_lost(lost))),
                }
            }
            None => Finding::lost(format!("{lacks}; {}", are_lost(self.missing()))),
        }
    }
}

/// Says which backup takes the place of the database.
fn taken(backup: &Backup) -> String {
    let at = jiff::Timestamp::from_second(backup.at).unwrap_or_default();
    format!("the backup of {at} ({}) takes its place", visible_path(&backup.path))
}

fn are_lost(count: u64) -> String {
    match count {
        1 => "1 change is lost".to_owned(),
        count => format!("{count} changes are lost"),
    }
}

fn open_for_writing(files: &Files, wholly: bool) -> Result<OpenedStore, StoreError> {
    files.probe().map_err(|error| StoreError::ReadOnly(error.to_string()))?;
    backup::drop_drafts(files);
    finish_restoring(files).map_err(beside)?;
    let state = FolderState::read(files, wholly)?;
    let mut findings = state.findings();
    if state.wrong.is_some() || state.missing() > 0 {
        let kept = aside::keep(files).map_err(beside)?;
        let text = format!("the files as they were are kept in {}", visible_path(&kept));
        findings.push(Finding::repaired(text));
    }
    let FolderState { mark, image, wrong, backup, .. } = state;
    drop(image);
    match backup {
        Some((backup, _)) => replace_database(files, &backup.path).map_err(beside)?,
        None if wrong.is_some() => {
            remove_wal(files).and_then(|()| remove(&files.database())).map_err(beside)?;
        }
        None => {}
    }
    let store = SqliteStore::open(files, mark.as_ref())?;
    Ok(OpenedStore { store, findings })
}

/// Opens the state for reading, as a copy in memory, and records why nothing can be written.
fn open_for_reading(
    files: &Files,
    error: &StoreError,
    wholly: bool,
) -> Result<OpenedStore, StoreError> {
    refuse_restoring(files)?;
    let state = FolderState::read(files, wholly)?;
    let mut findings = state.findings();
    let image = match &state.backup {
        Some((backup, _)) => Some(Image::open(&backup.path)?),
        None => state.image,
    };
    let mut store = match image {
        Some(image) => SqliteStore::of_image(&image, state.mark.as_ref())?,
        None => SqliteStore::in_memory()?,
    };
    let why = match error {
        StoreError::ReadOnly(why) => why.clone(),
        error => error.to_string(),
    };
    findings.push(Finding::repaired(format!(
        "the state folder {} cannot be written ({why}); changes are refused until it can be",
        visible_path(files.folder())
    )));
    store.refuse(why);
    Ok(OpenedStore { store, findings })
}

/// Removes all access for other users when they could write to the folder and thus change the
/// state.
fn close_to_others(files: &Files) -> Result<Option<Finding>, StoreError> {
    let folder = files.folder();
    let status = std::fs::metadata(folder).map_err(StoreError::opening(folder))?;
    let mode = status.mode();
    if mode & 0o022 == 0 || status.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    let closed = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode & 0o700));
    let shown = visible_path(folder);
    Ok(Some(Finding::repaired(match closed {
        Ok(()) => format!("others could write to the state folder {shown}; now only you can"),
        Err(error) => format!(
            "others can write to the state folder {shown}, and their access cannot be removed \
             ({error}); run chmod 700 on it"
        ),
    })))
}

fn beside(error: io::Error) -> StoreError {
    StoreError::Beside(error.to_string())
}

#[cfg(test)]
mod tests;
