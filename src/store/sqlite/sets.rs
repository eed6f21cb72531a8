//! Saved sets: copies of items under a name.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::{SetSummary, StoreError};
use super::rows::{ITEM_COLUMNS, slot_of, with_columns};
use crate::context::change::Slot;

/// Stores the items and returns the number of the new set.
pub(super) fn write(db: &Connection, created: i64, slots: &[Slot]) -> Result<u64, StoreError> {
    db.prepare_cached("INSERT INTO item_set (created) VALUES (?1)")?.execute([created])?;
    let set = db.last_insert_rowid();
    let mut insert = db.prepare_cached(&format!(
        "INSERT INTO set_item ({ITEM_COLUMNS}, item_set, position, pinned)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
    ))?;
    for (position, slot) in slots.iter().enumerate() {
        with_columns(&slot.item, |[a, b, c, d, e, f, g, h, i]| {
            insert.execute(params![a, b, c, d, e, f, g, h, i, set, position, slot.pinned])
        })?;
    }
    Ok(set.unsigned_abs())
}

/// Returns the number of the set with this name.
pub(super) fn named(db: &Connection, name: &str) -> Result<Option<u64>, StoreError> {
    let mut query = db.prepare_cached("SELECT item_set FROM set_name WHERE name = ?1")?;
    Ok(query.query_row([name], |row| row.get(0)).optional()?)
}

/// Returns the items in order. The rank is the position; the version is not stored, so it is 0.
pub(super) fn read(db: &Connection, set: u64) -> Result<Vec<Slot>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {ITEM_COLUMNS}, position, pinned, 0 FROM set_item
         WHERE item_set = ?1 ORDER BY position"
    ))?;
    query.query_and_then([set], slot_of)?.collect()
}

/// Returns every named set, sorted by name.
pub(super) fn list(db: &Connection) -> Result<Vec<SetSummary>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT set_name.name, count(set_item.item), coalesce(sum(set_item.tokens), 0),
                item_set.created
         FROM set_name JOIN item_set ON item_set.id = set_name.item_set
                       LEFT JOIN set_item ON set_item.item_set = item_set.id
         GROUP BY set_name.name ORDER BY set_name.name",
    )?;
    let rows = query.query_map([], |row| {
        Ok(SetSummary {
            name: row.get(0)?,
            count: row.get(1)?,
            tokens: row.get(2)?,
            created: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
