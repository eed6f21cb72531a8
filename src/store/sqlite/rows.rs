//! Converts items to rows and back, for item versions and for the items of sets.

use std::sync::Arc;

use rusqlite::Row;
use rusqlite::types::ToSql;

use super::super::{StoreError, counter_name, metadata};
use crate::context::change::Slot;
use crate::context::item::{Item, ItemId, Kind};

/// Columns that [`item_of`] reads, in its order.
pub(super) const ITEM_COLUMNS: &str =
    "item, kind, content, metadata, timestamp, taken_ms, tokens, counted_by, live";

/// Calls `store` with the values of [`ITEM_COLUMNS`].
pub(super) fn with_columns<T>(item: &Item, store: impl FnOnce([&dyn ToSql; 9]) -> T) -> T {
    store([
        &item.id.0,
        &item.kind.name(),
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
pub(super) fn slot_of(row: &Row<'_>) -> Result<Slot, StoreError> {
    Ok(Slot {
        item: Arc::new(item_of(row)?),
        rank: row.get(9)?,
        pinned: row.get(10)?,
        version: row.get(11)?,
    })
}

/// Reads an item from [`ITEM_COLUMNS`].
pub(super) fn item_of(row: &Row<'_>) -> Result<Item, StoreError> {
    let kind: String = row.get(1)?;
    let metadata_text: String = row.get(3)?;
    let counted_by: String = row.get(7)?;
    Ok(Item {
        id: ItemId(row.get(0)?),
        kind: Kind::from_name(&kind)
            .ok_or_else(|| StoreError::Damaged(format!("an item has the unknown type {kind:?}")))?,
        content: row.get::<_, String>(2)?.into(),
        metadata: metadata::read(&metadata_text)?,
        timestamp: row.get(4)?,
        taken_ms: row.get(5)?,
        tokens: row.get(6)?,
        counted_by: counter_name(&counted_by),
        live: row.get(8)?,
    })
}
