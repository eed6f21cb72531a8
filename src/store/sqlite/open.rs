//! Opens the database, sets its modes, and creates its tables.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};

use super::super::StoreError;
use super::super::folder::Files;
use super::super::folder::sums::Sums;
use super::super::folder::wal::FORMAT_VERSIONS;
use super::SqliteStore;
use super::keeper::Keeper;
use crate::visible::visible_path;

/// Statements that create the tables of an empty database.
const SCHEMA: &str = include_str!("../schema.sql");
/// Number of the format that [`SCHEMA`] describes. A database of another format is refused, so
/// each change of the schema needs another number. It is stored as `user_version`, which is 0 in a
/// new database.
pub(super) const FORMAT: i64 = 15;
/// Number of the format of a new database.
const NEW: i64 = 0;
/// Query for how many of four tables exist. Every state has all four.
const FOUR_TABLES: &str = "SELECT count(*) FROM sqlite_schema
    WHERE type = 'table' AND name IN ('counter', 'manager', 'version', 'request')";

impl SqliteStore {
    /// Opens or creates the database of a folder, and maintains checksums and a copy of its pages.
    /// `sums` are the checksums as of the last checkpoint, if known.
    ///
    /// # Errors
    /// [`StoreError::OtherFormat`], [`StoreError::Open`], [`StoreError::Damaged`].
    pub(crate) fn open(files: &Files, sums: Option<Sums>) -> Result<Self, StoreError> {
        let path = files.database();
        let keeper = Keeper::new(files, sums).map_err(StoreError::opening(&path))?;
        let db = Connection::open(&path).map_err(open_error(&path))?;
        let mut store = Self::prepare(db, &path)?;
        store.keeper = Some(keeper);
        Ok(store)
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// [`StoreError::Open`] when memory runs out.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = Path::new(":memory:");
        Self::prepare(Connection::open_in_memory().map_err(open_error(path))?, path)
    }

    /// Opens a database in memory from its bytes. `path` only appears in errors.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub(crate) fn of_image(image: Vec<u8>, path: &Path) -> Result<Self, StoreError> {
        Self::prepare(image_connection(image, path)?, path)
    }

    /// Checks a database given as bytes.
    ///
    /// # Errors
    /// The problem that SQLite finds, or [`StoreError::OtherFormat`].
    pub(crate) fn check_image(image: Vec<u8>, path: &Path) -> Result<(), StoreError> {
        check(&image_connection(image, path)?, path)
    }

    /// Checks that a database has a state, and that the state is whole. Does not change the
    /// database.
    ///
    /// # Errors
    /// The problem that SQLite finds, [`StoreError::OtherFormat`], or [`StoreError::Backup`] if the
    /// database is empty or another program's.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let db = Connection::open_with_flags(path, flags).map_err(open_error(path))?;
        check(&db, path)?;
        let tables = db.query_row(FOUR_TABLES, [], |row| row.get(0)).map_err(open_error(path))?;
        match tables {
            4 => Ok(()),
            _ => Err(StoreError::with_backup(path)("it has no state of Contexture")),
        }
    }

    /// Adds 1 to the number of times that the database was opened. This write also gives the
    /// write-ahead log a header.
    pub(crate) fn note_opening(&mut self) -> Result<(), StoreError> {
        self.writing()?;
        self.run("UPDATE opened SET times = times + 1")
    }

    pub(super) fn prepare(mut db: Connection, path: &Path) -> Result<Self, StoreError> {
        db.set_prepared_statement_cache_capacity(64);
        let set_up = |db: &mut Connection| -> Result<i64, rusqlite::Error> {
            db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "NORMAL")?;
            // Only `settle` makes checkpoints, because the checksums have to follow each one.
            db.pragma_update(None, "wal_autocheckpoint", 0)?;
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            // Reading must work on a read-only disk.
            db.pragma_update(None, "temp_store", "MEMORY")?;
            db.pragma_update(None, "cache_spill", false)?;
            db.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        let found = set_up(&mut db).map_err(open_error(path))?;
        refuse_other(found, path)?;
        if found == NEW {
            create(&mut db).map_err(open_error(path))?;
        }
        let next_request = db
            .query_row("SELECT coalesce(max(seq), 0) + 1 FROM request", [], |row| row.get(0))
            .map_err(open_error(path))?;
        Ok(Self {
            db,
            keeper: None,
            unsettled: true,
            managers: HashMap::new(),
            next_request,
            transaction: false,
            kept: false,
            savepoint: false,
            lost: false,
        })
    }
}

fn image_connection(mut image: Vec<u8>, path: &Path) -> Result<Connection, StoreError> {
    // A database in memory has no write-ahead log.
    if let Some(versions) = image.get_mut(FORMAT_VERSIONS) {
        versions.fill(1);
    }
    let open = || -> Result<Connection, rusqlite::Error> {
        let mut db = Connection::open_in_memory()?;
        db.deserialize_read_exact(MAIN_DB, &*image, image.len(), false)?;
        Ok(db)
    };
    open().map_err(open_error(path))
}

fn check(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = db.pragma_query_value(None, "user_version", |row| row.get(0));
    refuse_other(found.map_err(open_error(path))?, path)?;
    let verdict = db.pragma_query_value(None, "quick_check", |row| row.get(0));
    let verdict: String = verdict.map_err(open_error(path))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        wrong => Err(StoreError::Damaged(format!("{}: {wrong}", visible_path(path)))),
    }
}

/// Fails for a database of a format that this program does not know. A new database has none yet.
pub(in super::super) fn refuse_other(found: i64, path: &Path) -> Result<(), StoreError> {
    match found {
        NEW | FORMAT => Ok(()),
        _ => {
            Err(StoreError::OtherFormat { path: path.to_owned(), found, known: FORMAT, copy: None })
        }
    }
}

fn create(db: &mut Connection) -> Result<(), rusqlite::Error> {
    let transaction = db.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()
}

fn open_error(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged(format!("{}: {error}", visible_path(path)))
        }
        _ => StoreError::opening(path)(error),
    }
}
