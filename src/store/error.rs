//! Errors of stores.

use std::path::PathBuf;

use crate::visible::visible_path;

/// Error from a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database was written by a newer program.
    #[error(
        "{} has format {found}, but this program knows formats up to {known}; use a newer \
         contexture, or another folder with --state",
        visible_path(path)
    )]
    Newer {
        /// Path of the database.
        path: PathBuf,
        /// Number of its format.
        found: i64,
        /// Newest format that this program knows.
        known: i64,
    },
    /// The file could not be opened or created.
    #[error("cannot open {}: {cause}", visible_path(path))]
    Open {
        /// Path of the database.
        path: PathBuf,
        /// Message of the system.
        cause: String,
    },
    /// SQLite could not read or write: the disk is full, the file is read-only, or the like.
    #[error("the state could not be read or stored ({0}); the call changed nothing")]
    Write(#[source] rusqlite::Error),
    /// The database rolled back a burst of requests because one of them failed.
    #[error(
        "another call of the same batch could not be stored, so this one was undone too; repeat it"
    )]
    Lost,
    /// The log could not be read or written.
    #[error("cannot use the log {}: {cause}", visible_path(path))]
    Log {
        /// Path of the log.
        path: PathBuf,
        /// Message of the system.
        cause: String,
    },
    /// A file of the state is a link.
    #[error(
        "{} is a link, but the state must be in plain files; remove the link, or use another folder \
         with --state",
        visible_path(path)
    )]
    Link {
        /// Path of the link.
        path: PathBuf,
    },
    /// A file was removed while the server was running.
    #[error(
        "{} was removed while the server was running, so nothing can be stored; stop the server, \
         put the state folder or a backup back, and start it again",
        visible_path(path)
    )]
    Removed {
        /// Path of the file.
        path: PathBuf,
    },
    /// The state is read-only.
    #[error(
        "the state is read-only now ({why}), so nothing was changed; free disk space or make \
         the state folder writable, then repeat the call"
    )]
    ReadOnly {
        /// Message of the system.
        why: String,
    },
    /// A file beside the database could not be read or written.
    #[error("cannot use a file beside the database: {cause}")]
    Beside {
        /// Message of the system.
        cause: String,
    },
    /// A backup could not be written or used.
    #[error("cannot use the backup {}: {cause}", visible_path(path))]
    Backup {
        /// Path of the backup.
        path: PathBuf,
        /// Description of the problem.
        cause: String,
    },
    /// The session to be changed does not exist.
    #[error("there is no session {0}")]
    NoSuchSession(u64),
    /// Another live session has this name.
    #[error("there is already a session named {0:?}; choose another name")]
    NameTaken(String),
    /// Stored data cannot be parsed.
    #[error("the stored state is damaged: {0}")]
    Damaged(String),
}

impl From<rusqlite::Error> for StoreError {
    /// An error of our own, from reading a column, comes out as it was.
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::FromSqlConversionFailure(at, kind, cause) => match cause.downcast() {
                Ok(own) => *own,
                Err(cause) => {
                    Self::Write(rusqlite::Error::FromSqlConversionFailure(at, kind, cause))
                }
            },
            error => Self::Write(error),
        }
    }
}
