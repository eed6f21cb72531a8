//! Rows for items: their versions, and their places in managers.

use std::sync::Arc;

use rusqlite::Row;
use rusqlite::types::{FromSqlError, ToSql};

use super::super::{ManagerSummary, StoreError, counter_name, metadata};
use super::TableReading;
use super::sql::{Column, Columns, Statements, columns};
use crate::context::change::Slot;
use crate::context::item::{Item, ItemId};

/// Columns that [`item_of`] reads, in its order.
pub(in crate::store) const ITEM_COLUMNS: &str =
    "item, kind, content, metadata, timestamp, taken_ms, tokens, counted_by, live";

columns!(ManagerSummary { name, max_items, count, pinned, tokens, bytes, newest, version });

impl TableReading<'_> {
    /// Returns every manager ever stored, sorted by name.
    pub fn managers(&self) -> Result<Vec<ManagerSummary>, StoreError> {
        self.db.rows(
            "SELECT manager.name, manager.max_items, count(version.version),
                    coalesce(sum(slot.pinned), 0), coalesce(sum(version.tokens), 0),
                    coalesce(sum(octet_length(version.content)), 0), max(version.timestamp),
                    manager.version
             FROM manager LEFT JOIN slot ON slot.manager = manager.id
                          LEFT JOIN version ON version.version = slot.version
             GROUP BY manager.id ORDER BY manager.name",
            [],
            ManagerSummary::of,
        )
    }

    /// Returns the managers that have items and a name that begins with `beginning`, each with its
    /// number of items, sorted by name.
    pub fn managers_beginning(&self, beginning: &str) -> Result<Vec<(String, u64)>, StoreError> {
        self.db.rows(
            "SELECT manager.name, count(*) FROM manager JOIN slot ON slot.manager = manager.id
             WHERE substr(manager.name, 1, length(?1)) = ?1
             GROUP BY manager.id ORDER BY manager.name",
            [beginning],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Returns the managers that hold live items, sorted by name.
    pub fn managers_with_live(&self) -> Result<Vec<String>, StoreError> {
        self.db.rows(
            "SELECT DISTINCT manager.name
             FROM manager JOIN slot ON slot.manager = manager.id
                          JOIN version ON version.version = slot.version
             WHERE version.live ORDER BY manager.name",
            [],
            |row| row.get(0),
        )
    }

    /// Returns the name of the manager that holds an item, if any does.
    pub fn holder(&self, item: u64) -> Result<Option<String>, StoreError> {
        let sql = "SELECT manager.name FROM slot JOIN manager ON manager.id = slot.manager
                   WHERE slot.item = ?1";
        self.db.value(sql, [item])
    }
}

/// Calls `store` with the values of an item's [`ITEM_COLUMNS`].
pub(in crate::store) fn with_columns<T>(
    item: &Item,
    store: impl FnOnce([&dyn ToSql; 9]) -> T,
) -> T {
    store([
        &item.id.0,
        &Column(&item.kind),
        &&*item.content,
        &metadata::print(&item.metadata),
        &item.timestamp,
        &item.taken_ms,
        &item.tokens,
        &item.counted_by,
        &item.live,
    ])
}

/// Reads a slot from [`ITEM_COLUMNS`] followed by rank, pinned and version.
pub(in crate::store) fn slot_of(row: &Row<'_>) -> rusqlite::Result<Slot> {
    Ok(Slot {
        item: Arc::new(item_of(row)?),
        rank: row.get(9)?,
        pinned: row.get(10)?,
        version: row.get(11)?,
    })
}

/// Reads an item from [`ITEM_COLUMNS`].
pub(in crate::store) fn item_of(row: &Row<'_>) -> rusqlite::Result<Item> {
    let read = |text: &str| metadata::read(text).map_err(FromSqlError::other);
    Ok(Item {
        id: ItemId(row.get(0)?),
        kind: row.get::<_, Column<_>>(1)?.0,
        content: row.get::<_, Arc<str>>(2)?,
        metadata: read(row.get_ref(3)?.as_str()?)?,
        timestamp: row.get(4)?,
        taken_ms: row.get(5)?,
        tokens: row.get(6)?,
        counted_by: counter_name(row.get_ref(7)?.as_str()?),
        live: row.get(8)?,
    })
}
