//! Opening the database: its format, its mode, and what becomes of a damaged one.

use std::collections::HashMap;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::super::{StoreError, free_name};
use super::SqliteStore;
use crate::visible::visible_path;

/// The numbered migrations; one is never edited, only another added.
const SCHEMA: &[&str] = &[include_str!("../schema/001.sql"), include_str!("../schema/002.sql")];

/// A store that was opened, and what the user should know about it.
pub struct Opened {
    /// The store.
    pub store: SqliteStore,
    /// Set when a damaged database was moved aside: where it is now.
    pub moved_aside: Option<PathBuf>,
}

impl SqliteStore {
    /// Opens or creates the database. A file that is no sound database is moved aside, under a
    /// name that ends in `.damaged-N`, and an empty one is begun; nothing is deleted.
    ///
    /// # Errors
    /// [`StoreError::Newer`], [`StoreError::Open`].
    pub fn open(path: &Path) -> Result<Opened, StoreError> {
        match Self::open_sound(path) {
            Err(StoreError::Damaged(_)) => {
                let aside = move_aside(path)?;
                Ok(Opened { store: Self::open_sound(path)?, moved_aside: Some(aside) })
            }
            opened => Ok(Opened { store: opened?, moved_aside: None }),
        }
    }

    /// A store that is gone with the process.
    ///
    /// # Errors
    /// [`StoreError::Open`], which only a lack of memory brings about.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = Path::new(":memory:");
        Self::prepare(Connection::open_in_memory().map_err(|e| open_error(path, &e))?, path)
    }

    /// Reads a database through and through without changing it.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        let error = |error: rusqlite::Error| open_error(path, &error);
        let db =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(error)?;
        let found: i64 =
            db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(error)?;
        let known = SCHEMA.len() as i64;
        if found > known {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        let verdict: String =
            db.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(error)?;
        match verdict.as_str() {
            "ok" => Ok(()),
            wrong => Err(StoreError::Damaged(format!("{}: {wrong}", visible_path(path)))),
        }
    }

    fn open_sound(path: &Path) -> Result<Self, StoreError> {
        make_private(path)?;
        Self::prepare(Connection::open(path).map_err(|e| open_error(path, &e))?, path)
    }

    fn prepare(mut db: Connection, path: &Path) -> Result<Self, StoreError> {
        db.set_prepared_statement_cache_capacity(64);
        let set_up = |db: &mut Connection| -> Result<i64, rusqlite::Error> {
            db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "NORMAL")?;
            db.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        let found = set_up(&mut db).map_err(|e| open_error(path, &e))?;
        let known = SCHEMA.len() as i64;
        if found > known {
            return Err(StoreError::Newer { path: path.to_owned(), found, known });
        }
        migrate(&mut db, found).map_err(|e| open_error(path, &e))?;
        let next_request = db
            .query_row("SELECT coalesce(max(seq), 0) + 1 FROM request", [], |row| row.get(0))
            .map_err(|e| open_error(path, &e))?;
        Ok(Self {
            db,
            managers: HashMap::new(),
            next_request,
            transaction: false,
            kept: false,
            savepoint: false,
            lost: false,
        })
    }
}

/// Makes the file, empty, if there is none, and the user's alone. SQLite gives its log the same
/// mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let made = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    let private = made.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
    private.map_err(|error| StoreError::Open { path: path.to_owned(), cause: error.to_string() })
}

fn migrate(db: &mut Connection, found: i64) -> Result<(), rusqlite::Error> {
    for (number, sql) in (1i64..).zip(SCHEMA).filter(|(number, _)| *number > found) {
        let transaction = db.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    Ok(())
}

fn open_error(path: &Path, error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged(error.to_string())
        }
        _ => StoreError::Open { path: path.to_owned(), cause: error.to_string() },
    }
}

/// Renames the database and its log to the first free name ending in `.damaged-N`.
fn move_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let with = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = free_name(path);
    for part in ["", "-wal", "-shm"] {
        let (from, to) = (with(path, part), with(&aside, part));
        if from.exists() {
            std::fs::rename(&from, &to)
                .map_err(|e| StoreError::Open { path: from, cause: e.to_string() })?;
        }
    }
    Ok(aside)
}
