//! Errors of stores.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::visible::visible_path;

/// Error from a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database has a format that this program does not know.
    #[error(
        "{} has format {found}, but this program only knows format {known}; {}use the contexture \
         that wrote it, or another state folder (--state on the command line), or move the files \
         contexture.* out of the folder to begin with an empty state",
        visible_path(path),
        copied(copy.as_deref())
    )]
    OtherFormat {
        /// Path of the database.
        path: PathBuf,
        /// Number of the database's format.
        found: i64,
        /// Number of the format that this program knows.
        known: i64,
        /// Folder with a copy of the state's files, if one was made.
        copy: Option<PathBuf>,
    },
    /// A file of the state, or the state folder, could not be opened or created.
    #[error("cannot open {}: {cause}", visible_path(path))]
    Open {
        /// Path of the file or folder.
        path: PathBuf,
        /// Description of the problem.
        cause: String,
    },
    /// SQLite could not read or write: the disk is full, the file is read-only, or the like.
    #[error("the state could not be read or stored ({0})")]
    Write(#[source] rusqlite::Error),
    /// SQLite undid all requests of a burst (those of one commit) because one of them failed.
    #[error(
        "another change, which was to be stored together with this one, failed, so neither was \
         stored; try again"
    )]
    Lost,
    /// This file or folder of the state is a symbolic link.
    #[error(
        "{} is a link, but the state must be in plain files; remove the link, or use another state \
         folder (--state on the command line)",
        visible_path(.0)
    )]
    Link(PathBuf),
    /// This file of the state was removed while the server was running.
    #[error(
        "{} was removed while the server was running, so nothing can be stored; stop the server, \
         put the file back or restore a backup with `contexture restore FILE`, and start the \
         server again",
        visible_path(.0)
    )]
    Removed(PathBuf),
    /// The state is read-only, for this reason.
    #[error(
        "the state is read-only now ({0}), so nothing can be stored; remove the cause, then try \
         again"
    )]
    ReadOnly(String),
    /// A file of the state could not be read or written, or is damaged, for this reason.
    #[error("cannot use a file in the state folder: {0}")]
    Beside(String),
    /// A backup could not be written or used.
    #[error("cannot use the backup {}: {cause}", visible_path(path))]
    Backup {
        /// Path of the backup.
        path: PathBuf,
        /// Description of the problem.
        cause: String,
    },
    /// The session to be changed does not exist.
    #[error("there is no session ses-{0}")]
    NoSuchSession(u64),
    /// Another session, which is not deleted, has this name.
    #[error("a session {0:?} already exists; rename or delete it, or choose another name")]
    NameTaken(String),
    /// Stored data is damaged or contradictory.
    #[error("the stored state is damaged: {0}")]
    Damaged(String),
}

/// Says where the copy of a refused state is.
fn copied(copy: Option<&Path>) -> String {
    copy.map_or_else(String::new, |copy| {
        format!("nothing was changed, and a copy of the state is in {}; ", visible_path(copy))
    })
}

impl StoreError {
    /// Returns a function that makes [`Open`](Self::Open) for this path from its cause.
    pub(super) fn opening<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        move |error| Self::Open { path: path.to_owned(), cause: error.to_string() }
    }

    /// Returns a function that makes [`Backup`](Self::Backup) for this path from its cause.
    pub(super) fn with_backup<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        move |error| Self::Backup { path: path.to_owned(), cause: error.to_string() }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl From<rusqlite::Error> for StoreError {
    /// Keeps an error that this program raised itself while it read a column, says when the
    /// database is damaged, and wraps any other error.
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        if let Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) = code {
            return Self::Damaged(error.to_string());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_its_id() {
        assert_eq!(StoreError::NoSuchSession(7).to_string(), "there is no session ses-7");
    }
}
