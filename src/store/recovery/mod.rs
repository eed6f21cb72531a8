//! Opens a state folder: checks it, repairs what can be repaired, and reports what was found.
//!
//! Each step is tried only when the step before it is not enough: checksums show that the database
//! is intact; damaged pages are restored from the second copy; a database beyond repair is replaced
//! by the newest good backup. Then the log is applied, missing bursts (the requests of one commit)
//! are recognized by their numbers, and ids continue where they were. Before a repair, all files
//! are copied into the folder `damaged`.

pub(crate) mod backup;
mod judge;
mod restore;

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use self::judge::{Judged, Verdict, judge};
pub(crate) use self::restore::restore;
use self::restore::{finish_restoring, refuse_restoring};
use super::folder::marks::{self, Mark, Marks};
use super::folder::{Aside, aside, sums, wal};
pub(crate) use super::folder::{Files, Finding, TRUST_FILE};
use super::logged::{LoggedStore, Reopen};
use super::sqlite::{SqliteStore, refuse_other};
use super::{Counters, Extent, Store, StoreError};
use crate::visible::visible_path;
use crate::whole_file::remove;

/// A store on a state folder, and the problems found there.
pub(crate) struct Opened {
    /// The store. While the folder cannot be written, the store is read-only, and each change first
    /// tries to reopen it for writing.
    pub store: LoggedStore<SqliteStore>,
    /// Problems to tell the user about.
    pub findings: Vec<Finding>,
}

/// Function that takes the lock of a folder, unless this process has the lock already. On failure
/// it returns the reason.
pub(crate) type Relock = Box<dyn FnMut() -> Result<(), String> + Send>;

/// Opens the state in a folder that belongs to this process. `relock` runs before anything is
/// written, and again at each change while the folder cannot be written.
///
/// # Errors
/// [`StoreError::OtherFormat`], [`StoreError::Link`], or the error that prevents even reading.
pub(crate) fn open(folder: &Path, mut relock: Relock) -> Result<Opened, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    let closed = close_to_others(&files)?;
    let opened = relock().map_err(StoreError::ReadOnly);
    let opened = opened.and_then(|()| open_for_writing(&files));
    let mut opened = match opened {
        Err(StoreError::OtherFormat { path, found, known, .. }) => {
            let copy = Some(aside::keep_format(&files, found).map_err(beside)?);
            return Err(StoreError::OtherFormat { path, found, known, copy });
        }
        Err(error @ StoreError::Link { .. }) => return Err(error),
        Err(error) => open_for_reading(&files, error, relock)?,
        Ok(opened) => opened,
    };
    opened.findings.extend(closed);
    opened.findings.iter().for_each(|finding| tracing::warn!("{}", finding.text));
    Ok(opened)
}

/// Checks the files of a state folder without changing anything, and returns what a start would
/// report about their contents.
///
/// # Errors
/// [`StoreError::OtherFormat`], [`StoreError::Link`], or another error when a file cannot be read.
pub(crate) fn inspect(folder: &Path) -> Result<Vec<Finding>, StoreError> {
    let files = Files::new(folder);
    files.refuse_links()?;
    refuse_restoring(&files)?;
    let state = State::read(&files)?;
    let mut findings = state.findings();
    let inner = state.in_memory(&files, &mut findings)?;
    let store = LoggedStore::reading(inner, &files, state.mark.as_ref(), None, &mut findings);
    store.map(|_| findings)
}

/// Checks the state of a folder while the server has it open: reads the whole database and
/// rewrites the pages of the second copy that differ.
///
/// # Errors
/// Fails when a page is damaged or a file cannot be used.
pub(crate) fn check_all(files: &Files, store: &mut impl Store) -> Result<(), StoreError> {
    match store.snapshot()? {
        Some(snapshot) => snapshot.check(&files.copy()).map_err(beside),
        None => Ok(()),
    }
}

/// The files of a state folder as they were found, before any repair.
struct State {
    mark: Option<Mark>,
    /// Marks that are missing or cannot be read.
    unusable: Vec<PathBuf>,
    wal: wal::Wal,
    /// Set when the write-ahead log does not match the database; the log is then ignored.
    foreign_wal: bool,
    judged: Judged,
}

impl State {
    fn read(files: &Files) -> Result<Self, StoreError> {
        let failed = StoreError::opening(files.folder());
        let found = marks::read(files);
        let mut wal = wal::read(&files.wal()).map_err(&failed)?;
        let sums = sums::Sums::read(&files.sums());
        let foreign_wal = found.newest.is_some_and(|mark| is_foreign(&wal, &mark, sums.as_ref()));
        if foreign_wal {
            wal = wal::Wal::default();
        }
        let judged = judge(files, found.newest.as_ref(), &wal, sums).map_err(&failed)?;
        Ok(Self { mark: found.newest, unusable: found.unusable, wal, foreign_wal, judged })
    }

    /// Returns the findings about the files, except the finding that the database is beyond repair.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.foreign_wal {
            findings.push(Finding::repaired(
                "the database's write-ahead log does not match the database, so the log is ignored",
            ));
        }
        if let [path] = &*self.unusable {
            findings.push(Finding::repaired(format!(
                "{} was missing or could not be read, so it is written anew",
                visible_path(path)
            )));
        }
        match &self.judged.verdict {
            Verdict::Repairable(pages) => findings.push(Finding::repaired(format!(
                "the database was damaged ({}) and is repaired from its second copy",
                damage(pages.len())
            ))),
            Verdict::Sound if self.judged.sums.is_none() && self.epoch() > 0 => {
                findings.push(Finding::repaired(
                    "the checksums of the database were missing or could not be used, so they are \
                     computed anew",
                ));
            }
            _ => {}
        }
        findings
    }

    fn epoch(&self) -> u64 {
        self.mark.map_or(0, |mark| mark.extent.epoch)
    }

    /// Describes why the database cannot be used; `None` when it can. Fails when it has another
    /// format.
    fn beyond(&self, files: &Files) -> Result<Option<String>, StoreError> {
        let check_format = || {
            let format = judge::format(files, &self.wal).unwrap_or_default();
            refuse_other(format, &files.database())
        };
        match &self.judged.verdict {
            Verdict::Sound => check_format().map(|()| None),
            Verdict::Repairable(_) => Ok(None),
            Verdict::Absent if self.epoch() == 0 => Ok(None),
            Verdict::Absent => Ok(Some("it is missing".to_owned())),
            Verdict::Beyond(pages) => {
                if self.judged.sums.is_none() {
                    check_format()?;
                }
                Ok(Some(format!("pages damaged both in it and in its copy: at least {pages}")))
            }
            Verdict::Unknown => {
                match SqliteStore::check_image(self.image(files)?, &files.database()) {
                    Ok(()) => Ok(None),
                    Err(error @ StoreError::OtherFormat { .. }) => Err(error),
                    Err(StoreError::Damaged(wrong)) => Ok(Some(wrong)),
                    Err(error) => Ok(Some(error.to_string())),
                }
            }
        }
    }

    fn image(&self, files: &Files) -> Result<Vec<u8>, StoreError> {
        judge::image(files, &self.judged, &self.wal).map_err(StoreError::opening(&files.database()))
    }

    /// Reads the database into memory, or else the backup that would replace it; the store is empty
    /// if there is neither.
    fn in_memory(
        &self,
        files: &Files,
        findings: &mut Vec<Finding>,
    ) -> Result<SqliteStore, StoreError> {
        let path = files.database();
        let image = match self.beyond(files)? {
            None => self.image(files)?,
            Some(wrong) => {
                let backup = good_backup(files);
                findings.push(beyond(&wrong, backup.as_ref()));
                let bytes = backup.map_or(Ok(Vec::new()), |backup| backup::bytes(&backup.path));
                bytes.map_err(StoreError::opening(&path))?
            }
        };
        match image.is_empty() {
            true => SqliteStore::in_memory(),
            false => SqliteStore::of_image(image, &path),
        }
    }
}

/// Returns whether the write-ahead log has commits but does not match the mark. A matching log has
/// the salt of the mark or, after a checkpoint, the next salt. When the checksums are newer than
/// the mark (the server was killed, or an older copy of the mark was put back), the salt of the
/// checksums counts, not the mark's. Every log matches a mark that was made while a server started.
fn is_foreign(wal: &wal::Wal, mark: &Mark, sums: Option<&sums::Sums>) -> bool {
    let newer = sums.filter(|sums| sums.epoch > mark.extent.epoch);
    let salt = newer.map_or(mark.extent.salt, |sums| sums.salt);
    let known = [salt, salt.wrapping_add(1)].contains(&wal.salt);
    !mark.opening && !wal.pages.is_empty() && !known
}

fn open_for_writing(files: &Files) -> Result<Opened, StoreError> {
    files.probe().map_err(|error| StoreError::ReadOnly(error.to_string()))?;
    finish_restoring(files).map_err(beside)?;
    let mut state = State::read(files)?;
    let mut findings = state.findings();
    let wrong = state.beyond(files)?;
    let mut aside = Aside::new(files, state.wal.original.take());
    let mut sums = state.judged.sums.clone();
    let is_repairable = matches!(state.judged.verdict, Verdict::Repairable(_));
    // Opening the state overwrites damaged files.
    if wrong.is_some() || state.foreign_wal || is_repairable {
        aside.keep().map_err(beside)?;
    }
    if let Some(wrong) = wrong {
        let backup = good_backup(files);
        findings.insert(0, beyond(&wrong, backup.as_ref()));
        begin_anew(files, backup.as_ref().map(|backup| &*backup.path)).map_err(beside)?;
        sums = sums::Sums::read(&files.sums());
    } else if let (Verdict::Repairable(pages), Some(sums)) = (&state.judged.verdict, &sums) {
        judge::repair(files, pages, sums, &state.wal).map_err(beside)?;
    }
    if state.foreign_wal {
        std::fs::remove_file(files.wal()).map_err(beside)?;
    }
    let mut marks = Marks::open(files).map_err(beside)?;
    let mark = state.mark.unwrap_or(Mark {
        counters: Counters { next_item: 1, next_version: 1, last_timestamp: 0, burst: 0 },
        extent: Extent::default(),
        opening: true,
    });
    marks.note_in_both(&Mark { opening: true, ..mark }).map_err(beside)?;
    let mut inner = SqliteStore::open(files, sums)?;
    inner.note_opening()?;
    let mark = state.mark.as_ref();
    let store = LoggedStore::recover(inner, marks, mark, &mut aside, &mut findings)?;
    if let Some(kept) = aside.kept() {
        let text = format!("the files as they were are kept in {}", visible_path(&kept));
        findings.push(Finding::repaired(text));
    }
    Ok(Opened { store, findings })
}

/// Opens the state for reading, as a copy in memory, and records why nothing can be written.
fn open_for_reading(
    files: &Files,
    error: StoreError,
    mut relock: Relock,
) -> Result<Opened, StoreError> {
    refuse_restoring(files)?;
    let state = State::read(files)?;
    let mut findings = state.findings();
    let inner = state.in_memory(files, &mut findings)?;
    let why = match error {
        StoreError::ReadOnly(why) => why,
        error => error.to_string(),
    };
    findings.push(Finding::repaired(format!(
        "the state folder {} cannot be written ({why}); changes are refused until it can be",
        visible_path(files.folder())
    )));
    let again = files.clone();
    let reopen: Reopen<SqliteStore> = Box::new(move || {
        relock().map_err(StoreError::ReadOnly)?;
        open_for_writing(&again).map(|opened| opened.store)
    });
    let refusal = Some((why, reopen));
    let mark = state.mark.as_ref();
    let store = LoggedStore::reading(inner, files, mark, refusal, &mut findings)?;
    Ok(Opened { store, findings })
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

/// Describes the damage of a database with this number of bad pages.
fn damage(bad_pages: usize) -> String {
    match bad_pages {
        0 => "it was too long".to_owned(),
        1 => "1 bad page".to_owned(),
        count => format!("{count} bad pages"),
    }
}

fn good_backup(files: &Files) -> Option<backup::Backup> {
    let mut newest_first = backup::list(files).into_iter().rev();
    newest_first.find(|backup| {
        let checked = backup::check(&backup.path);
        checked.inspect_err(|error| tracing::warn!("{error}")).is_ok()
    })
}

fn beyond(wrong: &str, backup: Option<&backup::Backup>) -> Finding {
    let text = format!("the database was damaged and could not be repaired ({wrong}); ");
    Finding::lost(match backup {
        Some(backup) => {
            let at = jiff::Timestamp::from_second(backup.at).unwrap_or_default();
            let path = visible_path(&backup.path);
            text + &format!(
                "the backup of {at} ({path}) takes its place, so later changes are lost"
            )
        }
        None => text + "there is no good backup, so an empty database takes its place",
    })
}

/// Replaces the database with a backup, or removes it if there is none.
fn begin_anew(files: &Files, backup: Option<&Path>) -> io::Result<()> {
    // These files are valid only together with the current database.
    [files.wal(), files.sums(), files.copy()].iter().try_for_each(|path| remove(path))?;
    let Some(backup) = backup else { return remove(&files.database()) };
    backup::put_back(backup, files)?;
    let epoch = marks::read(files).newest.map_or(0, |mark| mark.extent.epoch);
    let sums = judge::sums_of(&files.database(), epoch + 1)?;
    sums.map_or(Ok(()), |sums| sums.write(&files.sums()))
}

#[cfg(test)]
mod tests;
