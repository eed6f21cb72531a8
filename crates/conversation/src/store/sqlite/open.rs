//! Opens the database, sets its modes, and creates its tables.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::super::folder::Files;
use super::super::folder::marks::HighWaterMark;
use super::super::tables::{Columns, Statements};
use super::super::{Counters, StoreError};
use super::SqliteStore;
use super::hashes::{self, Damage};
use super::place::StoreFiles;
use crate::visible::visible_path;

/// Statements that create the tables of an empty database.
pub(super) const SCHEMA: &str = include_str!("../schema.sql");
/// Number of the format that [`SCHEMA`] describes. A database of another format is refused, so
/// each change of the schema needs another number. It is stored as `user_version`, which is 0 in a
/// new database.
pub(super) const FORMAT: i64 = 17;
/// Number of the format of a new database.
const NEW: i64 = 0;
/// First bytes of every SQLite database.
const DATABASE_MAGIC: &[u8] = b"SQLite format 3\0";
/// Positions of the two bytes in a database's header that say what is needed to read and write it:
/// both are 2 with a write-ahead log, and 1 without.
const FORMAT_VERSIONS: std::ops::Range<usize> = 18..20;
/// Number of pages that a backup copies in one step: all of them, because it begins again whenever
/// a write comes between two steps.
const ALL_PAGES: i32 = i32::MAX;
/// Size of a page of a database in memory, in bytes. Each table has at least a page, and most tables
/// of a conversation in memory stay small.
const PAGE_IN_MEMORY: i64 = 1024;

impl SqliteStore {
    /// Opens or creates the database of a folder, and continues after the numbers in `mark`.
    ///
    /// # Errors
    /// [`StoreError::OtherFormat`], [`StoreError::Open`], [`StoreError::Damaged`].
    pub fn open(files: &Files, mark: Option<&HighWaterMark>) -> Result<Self, StoreError> {
        let path = files.database();
        let mut options = OpenOptions::new();
        let made = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
        let private = made.and_then(|file| file.set_permissions(Permissions::from_mode(0o600)));
        private.map_err(StoreError::opening(&path))?;
        let mut store = Self::prepare(Connection::open(&path).map_err(open_error(&path))?, &path)?;
        store.place = Some(StoreFiles::new(files).map_err(StoreError::opening(files.folder()))?);
        if let Some(mark) = mark {
            store.raise(mark)?;
        }
        store.note_mark(false);
        Ok(store)
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// [`StoreError::Open`] when memory runs out.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = Path::new(":memory:");
        let open = || -> Result<Connection, rusqlite::Error> {
            let db = Connection::open_in_memory()?;
            db.pragma_update(None, "page_size", PAGE_IN_MEMORY)?;
            Ok(db)
        };
        Self::prepare(open().map_err(open_error(path))?, path)
    }

    /// Reads a database into memory, and continues after the numbers in `mark`.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub fn of_image(image: &Image, mark: Option<&HighWaterMark>) -> Result<Self, StoreError> {
        let path = Path::new(":memory:");
        let copy = || -> Result<Connection, rusqlite::Error> {
            let mut db = Connection::open_in_memory()?;
            Backup::new(&image.db, &mut db)?.run_to_completion(ALL_PAGES, Duration::ZERO, None)?;
            Ok(db)
        };
        let mut store = Self::prepare(copy().map_err(open_error(path))?, path)?;
        mark.map_or(Ok(()), |mark| store.raise(mark))?;
        Ok(store)
    }

    /// Checks that a database has a state, and that the state is whole. Does not change the
    /// database.
    ///
    /// # Errors
    /// The problem that SQLite finds, [`StoreError::OtherFormat`], or [`StoreError::Backup`] if the
    /// database is empty or another program's.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        Image::open(path)?.check_whole()
    }

    fn prepare(mut db: Connection, path: &Path) -> Result<Self, StoreError> {
        db.set_prepared_statement_cache_capacity(128);
        let damage = Damage::default();
        let set_up = |db: &mut Connection| -> Result<i64, rusqlite::Error> {
            set_inert(db)?;
            hashes::define(db, &damage)?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "NORMAL")?;
            // Reading must work on a read-only disk.
            db.pragma_update(None, "temp_store", "MEMORY")?;
            db.pragma_update(None, "cache_spill", false)?;
            // A checkpoint must not wait for a backup to end.
            db.busy_timeout(Duration::ZERO)?;
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
            counters: counters(&db)?,
            db,
            damage,
            place: None,
            is_unsettled: true,
            reopen: None,
            refusal: None,
            trouble: None,
            managers: HashMap::new(),
            next_request,
            transaction: false,
            kept: false,
            savepoint: false,
            lost: false,
            is_changing: false,
            changed: 0,
        })
    }
}

/// A database that is read as it is, without a change to any file. No server may be running on it.
pub struct Image {
    db: Connection,
    damage: Damage,
    path: PathBuf,
}

impl Image {
    /// Opens a database and its write-ahead log, even in a folder that cannot be written.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::Damaged`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let damage = Damage::default();
        let open = || -> Result<Connection, rusqlite::Error> {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let db = match has_wal(path) {
                // Without locks, SQLite needs no file for the index of the write-ahead log.
                true => Connection::open_with_flags_and_vfs(path, flags, "unix-none")?,
                // SQLite would create the missing log.
                false => {
                    let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                    Connection::open_with_flags(immutable(path), flags)?
                }
            };
            set_inert(&db)?;
            db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            db.pragma_update(None, "temp_store", "MEMORY")?;
            hashes::define(&db, &damage)?;
            Ok(db)
        };
        let db = open().map_err(open_error(path))?;
        let mut header = [0; FORMAT_VERSIONS.end];
        let other = || StoreError::Damaged("it is not a database".to_owned());
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut header, 0));
        match read {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(other()),
            read => read.map_err(StoreError::opening(path))?,
        }
        if !header.starts_with(DATABASE_MAGIC) {
            return Err(other());
        }
        // SQLite would not write a database with a greater number.
        match header[FORMAT_VERSIONS].iter().all(|version| [1, 2].contains(version)) {
            true => Ok(Self { db, damage, path: path.to_owned() }),
            false => Err(StoreError::Damaged("its first page is damaged".to_owned())),
        }
    }

    /// Returns the number of the database's format; 0 if the database is empty.
    pub fn format(&self) -> Result<i64, StoreError> {
        let format = self.db.pragma_query_value(None, "user_version", |row| row.get(0));
        format.map_err(open_error(&self.path))
    }

    /// Reads the counters, after a check that the definitions of the tables are as they were made.
    pub fn counters(&self) -> Result<Counters, StoreError> {
        let read = || -> Result<bool, rusqlite::Error> {
            let made: i32 = self.db.pragma_query_value(None, "application_id", |row| row.get(0))?;
            // Whoever adds a trigger or a view can also write the number that belongs to it.
            let sql = "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')";
            let others: i64 = self.db.query_row(sql, [], |row| row.get(0))?;
            Ok(others == 0 && made == hashes::schema_number(&self.db)?)
        };
        match read().map_err(open_error(&self.path))? {
            true => counters(&self.db).map_err(|error| match error {
                StoreError::Write(error) => open_error(&self.path)(error),
                error => error,
            }),
            false => Err(StoreError::Damaged("the definitions of its tables have changed".into())),
        }
    }

    /// Reads the whole database.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub fn check(&self) -> Result<(), StoreError> {
        hashes::check(&self.db, &self.damage).map_err(StoreError::Damaged)
    }

    /// Checks that this is a whole state of this program.
    ///
    /// # Errors
    /// [`StoreError::OtherFormat`], [`StoreError::Backup`] without a state, [`StoreError::Damaged`].
    pub fn check_whole(&self) -> Result<(), StoreError> {
        let format = self.format()?;
        refuse_other(format, &self.path)?;
        if format == NEW {
            return Err(StoreError::with_backup(&self.path)("it has no state of Contexture"));
        }
        self.counters()?;
        self.check()
    }
}

/// Keeps a database from running what its schema says: triggers, views, and functions that do more
/// than compute. A file may be another's: a backup, or what another program made.
pub(in super::super) fn set_inert(db: &Connection) -> Result<(), rusqlite::Error> {
    for (setting, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        db.set_db_config(setting, is_on)?;
    }
    Ok(())
}

fn has_wal(path: &Path) -> bool {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    std::fs::metadata(wal).is_ok_and(|status| status.len() > 0)
}

/// Returns the URI of a file that SQLite must take as it is.
fn immutable(path: &Path) -> OsString {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    OsString::from_vec(uri)
}

/// Reads the whole database of a folder on a connection of its own, while a server may be running.
///
/// # Errors
/// [`StoreError::Damaged`], or [`StoreError::Open`].
pub fn check_file(files: &Files) -> Result<(), StoreError> {
    let (db, damage) = beside(&files.database())?;
    hashes::check(&db, &damage).map_err(StoreError::Damaged)
}

/// Copies the database of a folder to the file `to`, while a server may be running.
///
/// # Errors
/// [`StoreError::Open`], [`StoreError::Damaged`].
pub(crate) fn copy_file(files: &Files, to: &Path) -> Result<(), StoreError> {
    let (db, _) = beside(&files.database())?;
    let copy = || -> Result<(), rusqlite::Error> {
        let mut to = Connection::open(to)?;
        let copied = Backup::new(&db, &mut to)?;
        copied.run_to_completion(ALL_PAGES, Duration::ZERO, None)?;
        drop(copied);
        // A file alone must be the whole database.
        to.pragma_update(None, "journal_mode", "DELETE")
    };
    copy().map_err(open_error(to))
}

/// Opens a second connection to a database that a server may have open.
fn beside(path: &Path) -> Result<(Connection, Damage), StoreError> {
    let damage = Damage::default();
    let open = || -> Result<Connection, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        set_inert(&db)?;
        hashes::define(&db, &damage)?;
        Ok(db)
    };
    Ok((open().map_err(open_error(path))?, damage))
}

fn counters(db: &Connection) -> Result<Counters, StoreError> {
    let sql = format!("SELECT {} FROM counter WHERE sound", Counters::list());
    let row = db.row(&sql, [], Counters::of)?;
    row.ok_or_else(|| StoreError::Damaged("its counters are missing".to_owned()))
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
    transaction.execute_batch(&hashes::with_hashes(SCHEMA))?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    let number = hashes::schema_number(&transaction)?;
    transaction.pragma_update(None, "application_id", number)?;
    transaction.commit()
}

fn open_error(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| match error.sqlite_error_code() {
        // SQLite has no code of its own for tables that it does not find or understand.
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            StoreError::Damaged(format!("{}: {error}", visible_path(path)))
        }
        _ => StoreError::opening(path)(error),
    }
}
