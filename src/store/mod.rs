//! Where the state is kept: one small trait in terms of plain data, and its SQLite implementation.
//!
//! The engine is the only caller, from one thread. Writes gather in one transaction until
//! [`Store::commit`]; each request's writes can be taken back alone.

mod log;
pub mod logged;
pub mod memory;
mod metadata;
pub mod recovery;
pub mod session;
pub mod sqlite;
#[cfg(test)]
mod testing;
pub mod view;

use std::path::PathBuf;

use self::memory::MemoryStore;
use self::recovery::backup::Snapshot;
use self::session::SessionStore;
use crate::context::change::{Change, Settings, Slot};
use crate::visible::visible_path;

/// How many changes of each manager can at least be undone, across restarts.
pub const UNDO_DEPTH: u64 = 100;
/// How many answered request keys are remembered at least.
pub const REMEMBERED_REQUESTS: i64 = 10_000;

/// The numbers that never repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// The number of the next item.
    pub next_item: u64,
    /// The number of the next version of an item.
    pub next_version: u64,
    /// The newest timestamp given to an item, Unix seconds.
    pub last_timestamp: i64,
    /// The number of the last burst of requests that changed something.
    pub burst: u64,
}

/// Tables whose ids never repeat.
const SEQUENCES: [&str; 6] =
    ["item_set", "session", "checkpoint", "usage", "managed_view", "memory"];

/// How far the tables and the files of a store are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The last id of each table whose ids never repeat.
    pub sequences: [u64; 6],
    /// The number of the last checkpoint.
    pub epoch: u64,
    /// The checksum of the checksums of that.
    pub digest: u64,
    /// The number of the write-ahead log.
    pub salt: u32,
}

/// A manager as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredManager {
    /// What was configured, `None` when nothing was.
    pub settings: Option<Settings>,
    /// Its slots in rank order.
    pub slots: Vec<Slot>,
}

/// A line of the list of managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerSummary {
    /// The manager's name.
    pub name: String,
    /// How many items it holds.
    pub count: u64,
    /// How many of them are pinned.
    pub pinned: u64,
    /// Their tokens together.
    pub tokens: u64,
    /// Their content's bytes together.
    pub bytes: u64,
    /// What was configured, `None` when nothing was.
    pub max_items: Option<usize>,
    /// The timestamp of its newest item, Unix seconds.
    pub newest: Option<i64>,
}

/// A line of the list of sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetSummary {
    /// The set's name.
    pub name: String,
    /// How many items it holds.
    pub count: u64,
    /// Their tokens together.
    pub tokens: u64,
    /// When it was saved, Unix seconds.
    pub created: i64,
}

/// What the state is kept in.
pub trait Store: SessionStore + MemoryStore + Send {
    /// The counters as last committed.
    fn counters(&mut self) -> Result<Counters, StoreError>;

    /// A manager, or `None` when nothing of it was ever stored.
    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError>;

    /// Makes a change durable at the next commit, as the newest step of the manager's journal.
    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError>;

    /// The newest step of the manager's journal.
    fn last_change(&mut self, manager: &str) -> Result<Option<Change>, StoreError>;

    /// Takes the newest step back and removes it from the journal; `inverse` is its inverse.
    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError>;

    /// Every manager ever stored, by name.
    fn managers(&mut self) -> Result<Vec<ManagerSummary>, StoreError>;

    /// The manager that holds an item.
    fn holder(&mut self, item: u64) -> Result<Option<String>, StoreError>;

    /// Stores the content of a set and gives its number; a change gives it a name.
    fn write_set(&mut self, created: i64, slots: &[Slot]) -> Result<u64, StoreError>;

    /// The number of the set with this name.
    fn set_named(&mut self, name: &str) -> Result<Option<u64>, StoreError>;

    /// The items of a set, their ids and versions being those at the time of saving.
    fn read_set(&mut self, set: u64) -> Result<Vec<Slot>, StoreError>;

    /// Every named set, by name.
    fn sets(&mut self) -> Result<Vec<SetSummary>, StoreError>;

    /// What was answered to the request with this key.
    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError>;

    /// Notes what was answered to the request with this key.
    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError>;

    /// Ends a request: its writes stay in the transaction.
    fn keep(&mut self) -> Result<(), StoreError>;

    /// Ends a request: its writes are taken back, earlier ones stay.
    fn abandon(&mut self) -> Result<(), StoreError>;

    /// Makes every kept write durable, with the counters; without writes it does nothing. Returns
    /// whether there were any.
    fn commit(&mut self, counters: Counters) -> Result<bool, StoreError>;

    /// Takes back everything since the last commit.
    fn roll_back(&mut self);

    /// Whether nothing is left for [`settle`](Self::settle) to do.
    fn is_settled(&self) -> bool {
        true
    }

    /// Does what commits left for a quiet moment.
    fn settle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether [`settle`](Self::settle) cannot wait for a quiet moment.
    fn must_settle(&mut self) -> bool {
        false
    }

    /// Returns how far tables and files are.
    fn extent(&mut self) -> Result<Extent, StoreError> {
        Ok(Extent::default())
    }

    /// Sees to it that no id below these is given again.
    fn raise(&mut self, _: &Extent) -> Result<(), StoreError> {
        Ok(())
    }

    /// Fails when what is written would be lost because the files were removed.
    fn refuse_removed(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether the requests since the last commit changed anything.
    fn has_changes(&self) -> bool {
        true
    }

    /// Returns why changes are refused or failed last, if so.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Returns what a backup is made of, after everything is settled; `None` when nothing is kept
    /// in files.
    fn snapshot(&mut self) -> Result<Option<Snapshot>, StoreError> {
        Ok(None)
    }
}

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database was written by a newer program.
    #[error(
        "{} has format {found} and this program knows up to {known}; use a newer contexture, or \
         another folder with --state",
        crate::visible::visible_path(path)
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// Its format's number.
        found: i64,
        /// The newest known here.
        known: i64,
    },
    /// The file could not be opened or created.
    #[error("cannot open {}: {cause}", crate::visible::visible_path(path))]
    Open {
        /// The database file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The disk is full, the file is read-only, or the like.
    #[error("the state could not be read or stored ({0}); nothing of this call was kept")]
    Write(#[source] rusqlite::Error),
    /// The database gave up the transaction of a burst of requests because one of them failed.
    #[error("another call of the same moment could not be stored, so this one was not kept either")]
    Lost,
    /// The log could not be read or written.
    #[error("cannot use the log {}: {cause}", crate::visible::visible_path(path))]
    Log {
        /// The log.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// A file of the state is a link.
    #[error(
        "{} is a link; the state is kept in plain files, so remove it, or use another folder with \
         --state",
        visible_path(path)
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A file was removed while the server runs.
    #[error(
        "{} was removed while the server runs, so nothing can be kept; stop the server, put the \
         state folder or a backup back, and start it again",
        visible_path(path)
    )]
    Removed {
        /// The file.
        path: PathBuf,
    },
    /// The state can only be read.
    #[error(
        "the state can only be read now ({why}), so nothing was changed; make room or make the \
         state folder writable, then repeat the call"
    )]
    ReadOnly {
        /// What the system said.
        why: String,
    },
    /// A file beside the database could not be written.
    #[error("cannot write beside the database: {cause}")]
    Beside {
        /// What the system said.
        cause: String,
    },
    /// A backup could not be written or used.
    #[error("cannot use the backup {}: {cause}", visible_path(path))]
    Backup {
        /// The backup.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// A session that is to be changed does not exist.
    #[error("there is no session {0}")]
    NoSuchSession(u64),
    /// Another live session has the name.
    #[error("there is a session named {0:?} already; give another name")]
    NameTaken(String),
    /// Something stored cannot be understood.
    #[error("the stored state is damaged: {0}")]
    Damaged(String),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Write(error)
    }
}

/// The name of a counter as items have it.
fn counter_name(name: &str) -> &'static str {
    ["o200k", "cl100k"].into_iter().find(|known| *known == name).unwrap_or("estimate")
}
