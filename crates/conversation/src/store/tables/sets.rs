//! Saved sets: copies of items under a name.

use rusqlite::params;

use super::super::{SetSummary, StoreError};
use super::items::{ITEM_COLUMNS, slot_of, with_columns};
use super::sql::{Columns, Statements, columns};
use super::{TableReading, Writing};
use crate::context::change::Slot;

columns!(SetSummary { name, count, tokens, created });

impl TableReading<'_> {
    /// Returns the number of the set with this name.
    pub fn set_named(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.db.value("SELECT item_set FROM set_name WHERE name = ?1", [name])
    }

    /// Returns the items of a set, with the ids that the items had when the set was saved. The rank
    /// of a slot is its position in the set; the version is 0, because it is not stored.
    pub fn read_set(&self, set: u64) -> Result<Vec<Slot>, StoreError> {
        let sql = format!(
            "SELECT {ITEM_COLUMNS}, position, pinned, 0 FROM set_item
             WHERE item_set = ?1 AND sound ORDER BY position"
        );
        self.db.rows(&sql, [set], slot_of)
    }

    /// Returns every named set, sorted by name.
    pub fn sets(&self) -> Result<Vec<SetSummary>, StoreError> {
        self.db.rows(
            "SELECT set_name.name, count(set_item.item), coalesce(sum(set_item.tokens), 0),
                    item_set.created
             FROM set_name JOIN item_set ON item_set.id = set_name.item_set
                           LEFT JOIN set_item ON set_item.item_set = item_set.id
             GROUP BY set_name.name ORDER BY set_name.name",
            [],
            SetSummary::of,
        )
    }
}

impl Writing<'_> {
    /// Stores the items of a new set and returns the set's number. A
    /// [`Change`](crate::context::change::Change) with a `set` then gives the set a name.
    pub fn write_set(&self, created: i64, slots: &[Slot]) -> Result<u64, StoreError> {
        let set = self.db.insert("INSERT INTO item_set (created) VALUES (?1)", [created])?;
        let mut insert = self.db.prepare_cached(&format!(
            "INSERT INTO set_item ({ITEM_COLUMNS}, item_set, position, pinned)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        ))?;
        for (position, slot) in slots.iter().enumerate() {
            with_columns(&slot.item, |[a, b, c, d, e, f, g, h, i]| {
                insert.execute(params![a, b, c, d, e, f, g, h, i, set, position, slot.pinned])
            })?;
        }
        Ok(set)
    }
}
