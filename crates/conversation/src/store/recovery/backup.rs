//! Backups: a database and the list of trusted projects in one file, followed by a line with the
//! length of the list and the hash of the whole.
//!
//! SQLite copies the database while the server keeps running. A backup is read back before it takes
//! the place of an earlier one, so that a damaged state never replaces a good backup.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::super::folder::aside::{private_folder, stamp};
use super::super::folder::{Files, TRUST_FILE};
use super::super::sqlite::{Image, copy_file};
use crate::visible::visible_path;
use crate::whole_file::{DRAFT, open, remove, replace};

/// Default number of automatic backups to keep.
pub const BACKUPS_KEPT: usize = 7;
/// Age of the newest automatic backup, in seconds, at which the next one is due.
const DAY: i64 = 24 * 60 * 60;
/// Number of changes after which the next automatic backup is due.
pub const CHANGES_A_BACKUP: u64 = 1_000;
/// Name of the automatic backup of the latest changes, which the next one replaces.
const LATEST: &str = "latest.db";
/// Name of the backup that the user asked for last.
const ASKED: &str = "asked.db";
const TRAILER: &[u8] = b"\ncontexture-backup-2 ";
const LENGTH_DIGITS: usize = 16;
const HASH_DIGITS: usize = 64;
const TRAILER_BYTES: usize = TRAILER.len() + LENGTH_DIGITS + 1 + HASH_DIGITS + 1;

/// A file with a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Path of the backup.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: u64,
    /// Time at which the backup was written, in Unix seconds.
    pub at: i64,
}

/// Writes an automatic backup into the `backups` folder. If the last one of this kind is a day old
/// at the time `now`, in Unix seconds, the new one is kept beside the earlier ones, of which only the
/// newest `kept` (at least one) stay. Otherwise it replaces the last one that was not kept.
///
/// # Errors
/// [`StoreError::Damaged`] when the database is damaged; [`StoreError::Backup`]. Earlier backups stay.
pub fn write_automatic(files: &Files, now: i64, kept: usize) -> Result<Backup, StoreError> {
    if !is_due(files, now) {
        return write(files, LATEST);
    }
    let backup = write(files, &format!("contexture-{}.db", stamp()))?;
    drop_old(&days(files), kept);
    Ok(backup)
}

/// Removes the drafts that a kill left, of files of the state and of backups. Only the process that
/// owns the state may call this.
pub(super) fn drop_drafts(files: &Files) {
    for folder in [files.folder(), &files.backups()] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_draft)) {
            // What cannot be removed now, the next start removes.
            let _ = remove(&entry.path());
        }
    }
}

/// Returns whether a name is that of a draft, or of a file that SQLite makes beside one.
fn is_draft(name: &str) -> bool {
    let own = ["contexture", LATEST, ASKED, TRUST_FILE];
    let of = name.split_once(DRAFT).map(|(of, _)| of);
    of.is_some_and(|of| own.iter().any(|own| of.starts_with(own)))
}

/// Writes a backup that the user asked for. Replaces the previous backup of this kind.
///
/// # Errors
/// Same as [`write_automatic`].
pub fn write_asked(files: &Files) -> Result<Backup, StoreError> {
    write(files, ASKED)
}

fn write(files: &Files, name: &str) -> Result<Backup, StoreError> {
    files.refuse_links()?;
    let folder = files.backups();
    let path = folder.join(name);
    let failed = StoreError::with_backup(&path);
    private_folder(&folder).map_err(&failed)?;
    let trust = match std::fs::read(files.trust()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.map_err(&failed)?,
    };
    // A damaged database is told apart from a file that cannot be written.
    let mut damage = None;
    let written = replace(&path, |file, draft| {
        let copied = copy_file(files, draft).and_then(|()| Image::open(draft)?.check_whole());
        if let Err(error) = copied {
            let text = io::Error::other(error.to_string());
            damage = Some(error).filter(|error| matches!(error, StoreError::Damaged(_)));
            return Err(text);
        }
        append_trust(file, &trust)
    });
    written.map_err(|error| damage.unwrap_or_else(|| failed(error)))?;
    backup_at(&path).ok_or_else(|| StoreError::with_backup(&path)("it was removed in the meantime"))
}

/// Appends the list of trusted projects and the last line to a file with a database.
fn append_trust(file: &mut File, trust: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::End(0))?;
    file.write_all(trust)?;
    file.rewind()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(&mut *file)?;
    file.write_all(TRAILER)?;
    let (length, hash) = (trust.len(), hasher.finalize().to_hex());
    writeln!(file, "{length:0LENGTH_DIGITS$x} {hash}")
}

/// Returns whether the next backup of a day is due at the time `now`, in Unix seconds.
pub fn is_due(files: &Files, now: i64) -> bool {
    // Those from the future were made while the clock was wrong. They neither count nor make others
    // due: else each look would write one more, and the older ones would soon be pruned.
    let at = days(files).iter().map(|backup| backup.at).filter(|at| *at <= now).max();
    at.is_none_or(|at| now - at >= DAY)
}

/// Finds the good automatic backup that has the most changes, if it has more than `above`. Returns
/// it with the number of changes.
pub fn newest_good(files: &Files, above: u64) -> Option<(Backup, u64)> {
    let changes = |backup: Backup| {
        let counters = Image::open(&backup.path).and_then(|image| image.counters());
        Some((backup, counters.ok()?.changes))
    };
    let mut found: Vec<(Backup, u64)> = list(files).into_iter().filter_map(changes).collect();
    found.sort_by_key(|(_, changes)| std::cmp::Reverse(*changes));
    let mut newer = found.into_iter().take_while(|(_, changes)| *changes > above);
    newer.find(|(backup, _)| {
        let checked = check(&backup.path);
        checked.inspect_err(|error| tracing::warn!("{error}")).is_ok()
    })
}

/// Lists the automatic backups in the folder, newest last.
pub fn list(files: &Files) -> Vec<Backup> {
    let latest = backup_at(&files.backups().join(LATEST));
    let mut found: Vec<Backup> = days(files).into_iter().chain(latest).collect();
    found.sort_by_key(|backup| backup.at);
    found
}

/// Lists the automatic backups of days in the folder, newest last.
fn days(files: &Files) -> Vec<Backup> {
    let entries = std::fs::read_dir(files.backups()).into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("contexture-") && name.ends_with(".db"))
    };
    let paths = entries.map(|entry| entry.path()).filter(named);
    let mut found: Vec<Backup> = paths.filter_map(|path| backup_at(&path)).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Reads a whole backup and checks its hash and its structure. A plain database without a hash
/// counts as a backup, too.
///
/// # Errors
/// [`StoreError::Backup`] when the file cannot be read, has a wrong hash or is damaged; otherwise the
/// problem that SQLite finds.
pub fn check(path: &Path) -> Result<(), StoreError> {
    let failed = StoreError::with_backup(path);
    let mut file = open(path, u64::MAX).map_err(&failed)?;
    let has_trailer = trailer(&mut file).map_err(&failed)?.is_some();
    let odd = file.metadata().map_err(&failed)?.len() % 512 != 0;
    if has_trailer || odd {
        read_trailer(&mut file).map_err(&failed)?;
    }
    Image::open(path).and_then(|image| image.check_whole()).map_err(|error| match error {
        StoreError::Damaged(wrong) => {
            let own = format!("{}: ", visible_path(path));
            let cause = wrong.strip_prefix(&*own).unwrap_or(&wrong).to_owned();
            StoreError::Backup { path: path.to_owned(), cause }
        }
        error => error,
    })
}

/// Copies a backup, even to another file system, and checks the copy before it replaces `to`.
///
/// # Errors
/// Fails when the backup is damaged or `to` cannot be written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    replace(to, |file, draft| {
        io::copy(&mut open(from, u64::MAX)?, file)?;
        check(draft).map_err(bad_copy)
    })
}

/// Converts the error of a draft's check. Leaves out the name of the draft, which is gone by the time
/// anybody reads the message.
fn bad_copy(error: StoreError) -> io::Error {
    match error {
        StoreError::Backup { cause, .. } | StoreError::Open { cause, .. } => {
            io::Error::other(cause)
        }
        error => io::Error::other(error),
    }
}

/// Copies the database in a backup, without what follows it, to the file `to`.
pub(super) fn copy_database(backup: &Path, to: &Path) -> io::Result<()> {
    let mut file = open(backup, u64::MAX)?;
    let (length, _) = parts(&mut file)?;
    file.seek(SeekFrom::Start(0))?;
    replace(to, |to, _| io::copy(&mut file.take(length), to).map(drop))
}

/// Replaces the list of trusted projects with that of a backup. A plain database has no list, so the
/// list stays.
pub(super) fn put_trust_back(backup: &Path, files: &Files) -> io::Result<()> {
    let mut file = open(backup, u64::MAX)?;
    let (start, Some(length)) = parts(&mut file)? else { return Ok(()) };
    if length == 0 {
        return remove(&files.trust());
    }
    file.seek(SeekFrom::Start(start))?;
    replace(&files.trust(), |to, _| io::copy(&mut file.take(length), to).map(drop))
}

/// Returns the length of the database in a backup, and the length of the list of trusted projects
/// after it; `None` for a plain database.
fn parts(file: &mut File) -> io::Result<(u64, Option<u64>)> {
    let whole = file.metadata()?.len();
    let Some((list, _)) = trailer(file)? else { return Ok((whole, None)) };
    let database = whole.checked_sub(TRAILER_BYTES as u64).and_then(|rest| rest.checked_sub(list));
    let database = database.ok_or_else(|| io::Error::other("its last line is damaged"))?;
    Ok((database, Some(list)))
}

fn backup_at(path: &Path) -> Option<Backup> {
    use std::os::unix::fs::MetadataExt;
    let status = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some(Backup { path: path.to_owned(), bytes: status.len(), at: status.mtime() })
}

fn drop_old(backups: &[Backup], kept: usize) {
    for old in &backups[..backups.len().saturating_sub(kept.max(1))] {
        if let Err(error) = std::fs::remove_file(&old.path) {
            tracing::warn!("cannot remove the old backup {}: {error}", visible_path(&old.path));
        }
    }
}

/// Reads the length of the list and the hash at the end, if they are there.
fn trailer(file: &mut File) -> io::Result<Option<(u64, String)>> {
    let Some(at) = file.metadata()?.len().checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut bytes = [0; TRAILER_BYTES];
    file.read_exact_at(&mut bytes, at)?;
    let line = bytes.strip_prefix(TRAILER).and_then(|rest| rest.strip_suffix(b"\n"));
    let line = line.and_then(|line| std::str::from_utf8(line).ok()?.split_once(' '));
    Ok(line
        .and_then(|(length, hash)| Some((u64::from_str_radix(length, 16).ok()?, hash.to_owned()))))
}

/// Reads the whole file and fails unless the hash at its end is that of the content.
fn read_trailer(file: &mut File) -> io::Result<()> {
    let changed =
        || io::Error::other("its content is not what was written: its hash is wrong or missing");
    let (_, expected) = trailer(file)?.ok_or_else(changed)?;
    let length = file.metadata()?.len() - TRAILER_BYTES as u64;
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(length))?;
    match hasher.finalize().to_hex().as_str() == expected {
        true => Ok(()),
        false => Err(changed()),
    }
}
