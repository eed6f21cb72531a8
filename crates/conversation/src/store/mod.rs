//! Storage of the state: one trait over plain data, and its implementation in SQLite.
//!
//! The engine is the only caller, from one thread at a time. It applies several requests and then
//! commits them together; the requests of one commit form a *burst*. Until the commit, the writes
//! of each request can be undone separately.

use std::sync::Arc;

mod error;
mod folder;
pub mod memory;
pub mod metadata;
pub mod notes;
pub mod opencode;
mod origin;
pub mod ownership;
pub mod recovery;
pub mod session;
pub mod sqlite;
pub mod sync;
mod tables;
#[cfg(test)]
pub mod testing;

pub use self::error::StoreError;
use self::folder::Finding;
pub use self::tables::{LONGEST_RUN, MOST_INDEXED, MOST_READ, MOST_WORDS, TableReading, Writing};
use crate::context::change::{Change, ContextSettings, Slot};
use crate::context::item::Item;

/// Minimum number of changes per manager that can be undone, across restarts. Changes in which
/// items only [follow](Change::FOLLOW) their sources do not count.
pub const UNDO_DEPTH: u64 = 100;
/// Minimum number of answered requests whose keys and outcomes are remembered.
pub const REMEMBERED_REQUESTS: i64 = 10_000;

/// Counters that never decrease, not even after a restart, except for a `last_timestamp` that is
/// more than a day ahead of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Number of the next item.
    pub next_item: u64,
    /// Number of the next version of an item, a manager or a session.
    pub next_version: u64,
    /// Newest timestamp given to an item, in Unix seconds.
    pub last_timestamp: i64,
    /// Number of requests that have changed something.
    pub changes: u64,
}

impl Counters {
    /// Returns the number of the next version, and counts it as given.
    pub fn give_version(&mut self) -> u64 {
        self.next_version += 1;
        self.next_version - 1
    }
}

/// Tables whose ids never repeat.
const SEQUENCES: [&str; 6] =
    ["item_set", "session", "checkpoint", "usage", "managed_view", "memory"];

/// Maximum number of items in the description of a change.
pub const ITEMS_TOLD: usize = 3;

/// The description of a stored change of a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct ToldChange {
    /// Number of the change; its place in the journal, or among the undone changes.
    pub number: u64,
    /// Step of which the change is a part; 0 if it is a step of its own.
    pub step: u64,
    /// Method that made the change.
    pub method: String,
    /// Number of items that the change adds, removes or alters.
    pub count: usize,
    /// The first of these items, at most [`ITEMS_TOLD`]: removed ones as they were before, and all
    /// others as they were after the change.
    pub items: Vec<Arc<Item>>,
    /// Name of the set that the change saved or dropped, if it did.
    pub set: Option<String>,
}

/// A direction through the changes of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Back: undoes the newest change.
    Undo,
    /// Forward: redoes the change that was undone last.
    Redo,
}

impl Way {
    /// Returns the name of the method that moves in this direction.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }
}

/// A stored manager.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredManager {
    /// Configured settings; `None` if never configured.
    pub settings: Option<ContextSettings>,
    /// Slots in rank order.
    pub slots: Vec<Slot>,
    /// Version after its last change.
    pub version: u64,
}

/// A row in the list of managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerSummary {
    /// Name of the manager.
    pub name: String,
    /// Number of items.
    pub count: u64,
    /// Number of pinned items.
    pub pinned: u64,
    /// Total tokens of the items.
    pub tokens: u64,
    /// Total size of the items' content in bytes.
    pub bytes: u64,
    /// Configured maximum number of items; `None` if never configured.
    pub max_items: Option<usize>,
    /// Timestamp of the newest item, in Unix seconds; `None` without items.
    pub newest: Option<i64>,
    /// Version after its last change.
    pub version: u64,
}

/// A row in the list of sets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Set"))]
pub struct SetSummary {
    /// Name of the set.
    pub name: String,
    /// Number of items.
    pub count: u64,
    /// Total tokens of the items.
    pub tokens: u64,
    /// Time at which the set was saved, in Unix seconds.
    pub created: i64,
}

/// Storage for the whole state.
pub trait Store: Send {
    /// Returns read access to the tables.
    fn read(&mut self) -> TableReading<'_>;

    /// Returns write access to everything but managers.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`].
    fn change(&mut self) -> Result<Writing<'_>, StoreError>;

    /// Returns write access for records that the state can do without, such as statistics; `None`
    /// while nothing can be written.
    fn note(&mut self) -> Result<Option<Writing<'_>>, StoreError>;

    /// Returns the counters as last committed.
    fn counters(&mut self) -> Result<Counters, StoreError>;

    /// Returns a manager, or `None` if no change of the manager was ever stored.
    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError>;

    /// Adds a change to the manager's journal; the next commit makes it durable. Changes that were
    /// undone before can then no longer be redone, unless this change only makes items
    /// [follow](Change::FOLLOW) their sources.
    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError>;

    /// Renames a manager, which keeps its journal. No stored manager may have the new name.
    fn rename(&mut self, manager: &str, to: &str) -> Result<(), StoreError>;

    /// Returns the newest change in the manager's journal for an undo, or the change that was
    /// undone last for a redo; `None` if there is none.
    fn last_change(&mut self, manager: &str, way: Way) -> Result<Option<Change>, StoreError>;

    /// Undoes the newest change of the manager by applying `inverse`, and moves the change from the
    /// journal to the changes that can be redone.
    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError>;

    /// Redoes the change that was undone last: applies `change`, which is that change adapted to
    /// the current items, and moves it back to the journal. If `change` is empty, nothing is
    /// applied: the undone change is only forgotten.
    fn redo(&mut self, manager: &str, change: &Change) -> Result<(), StoreError>;

    /// Returns at most `most` of the changes that undo takes back, or that redo makes again, the
    /// next one first. Skips changes in which items only [follow](Change::FOLLOW) their sources.
    fn changes(
        &mut self,
        manager: &str,
        way: Way,
        most: u64,
    ) -> Result<Vec<ToldChange>, StoreError>;

    /// Returns the managers that have changes of this step, which is not 0, to undo or to redo.
    fn managers_of_step(&mut self, step: u64, way: Way) -> Result<Vec<String>, StoreError>;

    /// Returns a mark of the change that the next undo takes back. Two changes of the manager have
    /// the same mark only if they do the same at the same place in its journal. Returns 0 if there
    /// is nothing to undo.
    fn step_mark(&mut self, manager: &str) -> Result<u64, StoreError>;

    /// Returns the recorded outcome of the request with this key, if there is one.
    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError>;

    /// Returns the keys of all recorded requests.
    fn requests(&mut self) -> Result<Vec<String>, StoreError>;

    /// Records the outcome of the request with this key.
    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError>;

    /// Ends a request and keeps its writes for the next commit.
    fn keep(&mut self) -> Result<(), StoreError>;

    /// Ends a request and undoes its writes; those of earlier requests stay.
    fn abandon(&mut self) -> Result<(), StoreError>;

    /// Makes every kept write durable, together with the counters. Returns whether there were any
    /// writes; does nothing without writes.
    fn commit(&mut self, counters: Counters) -> Result<bool, StoreError>;

    /// Undoes everything since the last commit.
    fn roll_back(&mut self);

    /// Returns whether [`settle`](Self::settle) has nothing to do.
    fn is_settled(&self) -> bool;

    /// Does the work that commits left for a quiet moment.
    fn settle(&mut self) -> Result<(), StoreError>;

    /// Returns the damage that was found while the state was read, if any was.
    fn damage(&self) -> Option<String>;

    /// Replaces a damaged database with the newest good backup, and returns what was done. Does
    /// nothing if nothing is kept in files.
    fn renew(&mut self) -> Result<Vec<Finding>, StoreError>;

    /// Returns whether the requests since the last commit changed anything.
    fn has_changes(&self) -> bool;

    /// Returns the reason why changes are refused or why the last commit failed; `None` when
    /// changes are accepted and the last commit succeeded.
    fn refusal(&self) -> Option<String>;
}

/// Returns the name of a token counter as a static string; `estimate` for unknown names.
pub fn counter_name(name: &str) -> &'static str {
    ["o200k", "cl100k"].into_iter().find(|known| *known == name).unwrap_or("estimate")
}
