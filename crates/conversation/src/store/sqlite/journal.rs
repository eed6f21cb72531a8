//! Rows for changes: the resulting slots, and the journal, which undo reads backwards.

mod row;

use std::collections::HashSet;

use rusqlite::{Connection, params};

use self::row::{JournalRow, parse};
use super::super::tables::{ITEM_COLUMNS, Statements, limit, with_columns};
use super::super::{StoreError, ToldChange, UNDO_DEPTH, Way};
use crate::context::change::{Change, SetChange, Slot, SlotChange};

/// Number of changes between two removals of old changes from a journal.
const JOURNAL_SWEEP: u64 = 32;
/// Minimum number of changes to keep in a journal. At most every second of them only
/// [follows](Change::FOLLOW), so that at least half of them are steps of an undo.
const JOURNAL_LENGTH: u64 = 2 * UNDO_DEPTH;

/// Inserts the item versions that the change introduces.
pub(super) fn store_arrivals(db: &Connection, change: &Change) -> Result<(), StoreError> {
    for slot in arrivals(change) {
        let mut insert = db.prepare_cached(&format!(
            "INSERT INTO version ({ITEM_COLUMNS}, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        ))?;
        with_columns(&slot.item, |[a, b, c, d, e, f, g, h, i]| {
            insert.execute(params![a, b, c, d, e, f, g, h, i, slot.version])
        })?;
    }
    Ok(())
}

/// Applies the change to the slots, the settings, the name of a set, and the manager's version.
pub(super) fn set_slots(db: &Connection, manager: i64, change: &Change) -> Result<(), StoreError> {
    let mut put = db.prepare_cached(
        "INSERT OR REPLACE INTO slot (manager, item, version, rank, pinned)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut remove = db.prepare_cached("DELETE FROM slot WHERE manager = ?1 AND item = ?2")?;
    for SlotChange { before, after } in &change.slots {
        match (before, after) {
            (_, Some(slot)) => {
                let Slot { rank, pinned, version, item } = slot;
                put.execute(params![manager, item.id.0, version, rank, pinned])?
            }
            (Some(slot), None) => remove.execute(params![manager, slot.item.id.0])?,
            (None, None) => 0,
        };
    }
    if let Some((_, after)) = change.settings {
        let sql = "UPDATE manager SET max_items = ?2 WHERE id = ?1";
        db.change(sql, params![manager, after.max_items])?;
    }
    let sql = "UPDATE manager SET version = ?2 WHERE id = ?1";
    db.change(sql, params![manager, change.version])?;
    match &change.set {
        Some(SetChange { name, after: Some(set), .. }) => {
            db.change("INSERT OR REPLACE INTO set_name VALUES (?1, ?2)", params![name, set])?
        }
        Some(SetChange { name, after: None, .. }) => {
            db.change("DELETE FROM set_name WHERE name = ?1", [name])?
        }
        None => 0,
    };
    Ok(())
}

/// Returns the number of the manager's newest change; 0 when it has none.
pub(super) fn last_number(db: &Connection, manager: i64) -> Result<u64, StoreError> {
    let sql = "SELECT coalesce(max(seq), 0) FROM journal WHERE manager = ?1";
    Ok(db.value(sql, [manager])?.unwrap_or(0))
}

/// Returns the step of the manager's change number `seq`; 0 when there is no such change.
pub(super) fn step_of(db: &Connection, manager: i64, seq: u64) -> Result<u64, StoreError> {
    let sql = "SELECT step FROM journal WHERE manager = ?1 AND seq = ?2";
    Ok(db.value(sql, params![manager, seq])?.unwrap_or(0))
}

/// Returns whether the manager has changes that can be redone.
pub(super) fn has_undone(db: &Connection, manager: i64) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM undone WHERE manager = ?1)";
    Ok(db.value(sql, [manager])?.unwrap_or(false))
}

/// Merges `change` into the newest change, number `seq` of `step`, if in both of them items only
/// [follow](Change::FOLLOW) their sources, or if both are of one step. Returns whether they were
/// merged.
pub(super) fn extend(
    db: &Connection,
    manager: i64,
    seq: u64,
    step: u64,
    has_undone: bool,
    change: &Change,
) -> Result<bool, StoreError> {
    if step != change.step || (step == 0 && !change.is_following()) {
        return Ok(false);
    }
    let sql = "SELECT change FROM journal WHERE manager = ?1 AND seq = ?2 AND sound";
    let newest: Option<String> = db.value(sql, params![manager, seq])?;
    let Some(mut whole) = newest.map(|text| parse(&text)).transpose()? else { return Ok(false) };
    let later = JournalRow::from(change);
    let are_joined = match change.is_following() {
        true => whole.method == Change::FOLLOW,
        false => whole.is_plain() && later.is_plain(),
    };
    if !are_joined {
        return Ok(false);
    }
    let replaced = whole.join(later);
    let sql = "UPDATE journal SET change = ?3 WHERE manager = ?1 AND seq = ?2";
    db.change(sql, params![manager, seq, serde_json::to_string(&whole)?])?;
    let mut unused: HashSet<u64> = replaced.into_iter().collect();
    for version in whole.versions() {
        unused.remove(&version);
    }
    if has_undone {
        // Changes that can be redone may need a version that is in no other change.
        let sql = "SELECT change FROM undone WHERE manager = ?1";
        let needed = versions_in(&db.rows::<String>(sql, [manager], |row| row.get(0))?)?;
        unused.retain(|version| !needed.contains(version));
    }
    delete_versions(db, unused)?;
    Ok(true)
}

/// Appends the change to the manager's journal as number `seq`. Once every [`JOURNAL_SWEEP`]
/// changes, removes the changes that are too old to undo.
pub(super) fn append(
    db: &Connection,
    manager: i64,
    seq: u64,
    change: &Change,
) -> Result<(), StoreError> {
    let text = serde_json::to_string(&JournalRow::from(change))?;
    let sql = "INSERT INTO journal (manager, seq, step, change) VALUES (?1, ?2, ?3, ?4)";
    db.change(sql, params![manager, seq, change.step, text])?;
    if seq > JOURNAL_LENGTH && seq.is_multiple_of(JOURNAL_SWEEP) {
        thin(db, manager, seq - JOURNAL_LENGTH)?;
    }
    Ok(())
}

/// For an undo, returns the newest change, which is number `seq`; for a redo, the change that was
/// undone last. Item contents are included.
pub(super) fn last(
    db: &Connection,
    manager: i64,
    seq: u64,
    way: Way,
) -> Result<Option<Change>, StoreError> {
    let journal = "SELECT step, change FROM journal WHERE manager = ?1 AND seq = ?2 AND sound";
    let undone = "SELECT step, change FROM undone WHERE manager = ?1 AND sound
                  ORDER BY seq DESC LIMIT 1";
    let row = |row: &rusqlite::Row<'_>| <(u64, String)>::try_from(row);
    let found = match way {
        Way::Undo => db.row(journal, params![manager, seq], row)?,
        Way::Redo => db.row(undone, [manager], row)?,
    };
    resolved(db, found)
}

/// Returns at most `most` of the changes that undo takes back, or that redo makes again, the next
/// one first. Skips changes in which items only [follow](Change::FOLLOW) their sources.
pub(super) fn changes(
    db: &Connection,
    manager: i64,
    way: Way,
    most: u64,
) -> Result<Vec<ToldChange>, StoreError> {
    let sql = format!(
        "SELECT seq, step, change FROM {}
         WHERE manager = ?1 AND sound AND json_extract(change, '$.method') <> ?2
         ORDER BY seq DESC LIMIT ?3",
        table_of(way)
    );
    let row = |row: &rusqlite::Row<'_>| <(u64, u64, String)>::try_from(row);
    let found = db.rows(&sql, params![manager, Change::FOLLOW, limit(most)], row)?;
    let told = |(number, step, text): (u64, u64, String)| parse(&text)?.told(db, number, step);
    found.into_iter().map(told).collect()
}

/// Returns the names of the managers that have changes of a step to undo or to redo.
pub(super) fn managers_of_step(
    db: &Connection,
    step: u64,
    way: Way,
) -> Result<Vec<String>, StoreError> {
    let sql = format!(
        "SELECT DISTINCT name FROM manager JOIN {} AS change ON change.manager = manager.id
         WHERE step = ?1 ORDER BY name",
        table_of(way)
    );
    db.rows(&sql, [step], |row| row.get(0))
}

fn table_of(way: Way) -> &'static str {
    match way {
        Way::Undo => "journal",
        Way::Redo => "undone",
    }
}

/// Returns a mark of the change that the next undo takes back. The mark is a hash of the change's
/// number and content, since the number alone is used again after an undo.
pub(super) fn step_mark(db: &Connection, manager: i64) -> Result<u64, StoreError> {
    let sql = "SELECT seq || change FROM journal
               WHERE manager = ?1 AND json_extract(change, '$.method') <> ?2
               ORDER BY seq DESC LIMIT 1";
    let text: Option<String> = db.value(sql, params![manager, Change::FOLLOW])?;
    let hash = text.map_or([0; 32], |text| *blake3::hash(text.as_bytes()).as_bytes());
    // SQLite's integers are signed.
    Ok(u64::from_le_bytes(hash.first_chunk().copied().unwrap_or_default()) >> 1)
}

fn resolved(db: &Connection, row: Option<(u64, String)>) -> Result<Option<Change>, StoreError> {
    row.map(|(step, text)| Ok(Change { step, ..parse(&text)?.resolve(db)? })).transpose()
}

/// Renames a manager in the journals of other managers that name it as the partner of a move.
pub(super) fn rename_partner(db: &Connection, manager: &str, to: &str) -> Result<(), StoreError> {
    ["journal", "undone"].into_iter().try_for_each(|table| {
        let sql = format!(
            "UPDATE {table} SET change = json_set(change, '$.partner', ?2)
             WHERE json_extract(change, '$.partner') = ?1"
        );
        db.change(&sql, params![manager, to]).map(drop)
    })
}

/// Moves the change with this number from the journal to the changes that can be redone.
pub(super) fn set_aside(db: &Connection, manager: i64, seq: u64) -> Result<(), StoreError> {
    let sql = "INSERT INTO undone (manager, seq, step, change)
               SELECT manager, (SELECT coalesce(max(seq), 0) + 1 FROM undone WHERE manager = ?1),
                      step, change
               FROM journal WHERE manager = ?1 AND seq = ?2";
    db.change(sql, params![manager, seq])?;
    let sql = "DELETE FROM journal WHERE manager = ?1 AND seq = ?2";
    db.change(sql, params![manager, seq]).map(drop)
}

/// Removes the change that was undone last from the changes that can be redone.
pub(super) fn drop_undone(db: &Connection, manager: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM undone WHERE manager = ?1
               AND seq = (SELECT max(seq) FROM undone WHERE manager = ?1) RETURNING change";
    let dropped = db.rows(sql, [manager], |row| row.get(0))?;
    forget_unused(db, manager, &dropped)
}

/// Forgets all changes that can be redone.
pub(super) fn forget_undone(db: &Connection, manager: i64) -> Result<(), StoreError> {
    let sql = "DELETE FROM undone WHERE manager = ?1 RETURNING change";
    let dropped = db.rows(sql, [manager], |row| row.get(0))?;
    forget_unused(db, manager, &dropped)
}

/// Deletes the item versions that only the changes in `forgotten` needed.
fn forget_unused(db: &Connection, manager: i64, forgotten: &[String]) -> Result<(), StoreError> {
    if forgotten.is_empty() {
        return Ok(());
    }
    let mut unused = versions_in(forgotten)?;
    let sql = "SELECT change FROM journal WHERE manager = ?1
               UNION ALL SELECT change FROM undone WHERE manager = ?1";
    let kept: Vec<String> = db.rows(sql, [manager], |row| row.get(0))?;
    let shown = "SELECT version FROM slot WHERE manager = ?1";
    let shown: Vec<u64> = db.rows(shown, [manager], |row| row.get(0))?;
    for version in versions_in(&kept)?.into_iter().chain(shown) {
        unused.remove(&version);
    }
    delete_versions(db, unused)
}

fn delete_versions(
    db: &Connection,
    versions: impl IntoIterator<Item = u64>,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM version WHERE version = ?1";
    versions.into_iter().try_for_each(|version| db.change(sql, [version]).map(drop))
}

/// Returns the item versions that the changes name.
fn versions_in(changes: &[String]) -> Result<HashSet<u64>, StoreError> {
    let mut versions = HashSet::new();
    for text in changes {
        versions.extend(parse(text)?.versions());
    }
    Ok(versions)
}

fn arrivals(change: &Change) -> impl Iterator<Item = &Slot> {
    change.slots.iter().filter_map(|SlotChange { before, after }| {
        let known = before.as_ref().map(|slot| slot.version);
        after.as_ref().filter(|slot| known != Some(slot.version))
    })
}

fn thin(db: &Connection, manager: i64, up_to: u64) -> Result<(), StoreError> {
    // A step is kept as a whole or not at all.
    let sql = "DELETE FROM journal WHERE manager = ?1 AND seq <= ?2
               AND (step = 0 OR step NOT IN (SELECT step FROM journal
                                             WHERE manager = ?1 AND seq > ?2))
               RETURNING change";
    let old: Vec<String> = db.rows(sql, params![manager, up_to], |row| row.get(0))?;
    if has_undone(db, manager)? {
        return forget_unused(db, manager, &old);
    }
    // Without redo, a version is no longer needed once the change that replaced it is forgotten.
    let versions = old.iter().map(|text| Ok(parse(text)?.superseded()));
    delete_versions(db, versions.collect::<Result<Vec<_>, StoreError>>()?.concat())
}
