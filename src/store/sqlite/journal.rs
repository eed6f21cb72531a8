//! Rows for changes: the resulting slots, and the journal, which undo reads backwards.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::super::tables::{ITEM_COLUMNS, Statements, item_of, with_columns};
use super::super::{StoreError, UNDO_DEPTH, Way};
use crate::context::change::{Change, SetChange, Settings, Slot, SlotChange};

/// Number of changes between two removals of old changes from a journal.
const JOURNAL_SWEEP: u64 = 32;
/// Minimum number of changes to keep in a journal. At most every second of them only
/// [follows](Change::FOLLOW), unless an earlier release made it, so that at least half of them are
/// steps of an undo.
const JOURNAL_LENGTH: u64 = 2 * UNDO_DEPTH;

/// A [`Change`] as it is stored in the journal; item contents are in the table `version`.
#[derive(Serialize, Deserialize)]
struct ChangeRow {
    method: String,
    slots: Vec<(Option<SlotRow>, Option<SlotRow>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_items: Option<(usize, usize)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set: Option<(String, Option<u64>, Option<u64>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partner: Option<String>,
}

/// A slot in the journal: version, rank, pinned.
#[derive(Serialize, Deserialize, Clone, Copy)]
struct SlotRow(u64, i64, bool);

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
    // A change in the log of an earlier release has no version. Versions did not exist then, so
    // nobody has seen one.
    if change.version > 0 {
        let sql = "UPDATE manager SET version = ?2 WHERE id = ?1";
        db.change(sql, params![manager, change.version])?;
    }
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

/// Returns whether the manager has changes that can be redone.
pub(super) fn has_undone(db: &Connection, manager: i64) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM undone WHERE manager = ?1)";
    Ok(db.value(sql, [manager])?.unwrap_or(false))
}

/// Merges `change` into the newest change, number `seq`, if in both of them items only
/// [follow](Change::FOLLOW) their sources. Returns whether they were merged.
pub(super) fn extend(
    db: &Connection,
    manager: i64,
    seq: u64,
    has_undone: bool,
    change: &Change,
) -> Result<bool, StoreError> {
    if !change.is_following() {
        return Ok(false);
    }
    let sql = "SELECT change FROM journal
               WHERE manager = ?1 AND seq = ?2 AND json_extract(change, '$.method') = ?3";
    let newest: Option<String> = db.value(sql, params![manager, seq, Change::FOLLOW])?;
    let Some(text) = newest else { return Ok(false) };
    let mut whole = parse(&text)?;
    let now = |(at, (_, after)): (usize, &(_, Option<SlotRow>))| Some((version(*after)?, at));
    let known: HashMap<u64, usize> = whole.slots.iter().enumerate().filter_map(now).collect();
    let mut replaced = Vec::new();
    for (before, after) in ChangeRow::from(change).slots {
        match version(before).and_then(|before| known.get(&before)) {
            Some(at) => replaced.extend(version(std::mem::replace(&mut whole.slots[*at].1, after))),
            None => whole.slots.push((before, after)),
        }
    }
    let sql = "UPDATE journal SET change = ?3 WHERE manager = ?1 AND seq = ?2";
    db.change(sql, params![manager, seq, serde_json::to_string(&whole)?])?;
    if has_undone {
        // Changes that can be redone may need a version that is in no other change.
        let sql = "SELECT change FROM undone WHERE manager = ?1";
        let needed = versions_in(&db.rows::<String>(sql, [manager], |row| row.get(0))?)?;
        replaced.retain(|version| !needed.contains(version));
    }
    delete_versions(db, replaced)?;
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
    let text = serde_json::to_string(&ChangeRow::from(change))?;
    let sql = "INSERT INTO journal (manager, seq, change) VALUES (?1, ?2, ?3)";
    db.change(sql, params![manager, seq, text])?;
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
    let journal = "SELECT change FROM journal WHERE manager = ?1 AND seq = ?2";
    let undone = "SELECT change FROM undone WHERE manager = ?1 ORDER BY seq DESC LIMIT 1";
    let text = match way {
        Way::Undo => db.value(journal, params![manager, seq])?,
        Way::Redo => db.value(undone, [manager])?,
    };
    resolved(db, text)
}

/// Returns the change that the next undo takes back, or that the next redo applies again. Skips
/// changes in which items only [follow](Change::FOLLOW) their sources.
pub(super) fn next_step(
    db: &Connection,
    manager: i64,
    way: Way,
) -> Result<Option<Change>, StoreError> {
    let table = match way {
        Way::Undo => "journal",
        Way::Redo => "undone",
    };
    let sql = format!(
        "SELECT change FROM {table} WHERE manager = ?1 AND json_extract(change, '$.method') <> ?2
         ORDER BY seq DESC LIMIT 1"
    );
    resolved(db, db.value(&sql, params![manager, Change::FOLLOW])?)
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

fn resolved(db: &Connection, text: Option<String>) -> Result<Option<Change>, StoreError> {
    text.map(|text| parse(&text)?.resolve(db)).transpose()
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
    let sql = "INSERT INTO undone (manager, seq, change)
               SELECT manager, (SELECT coalesce(max(seq), 0) + 1 FROM undone WHERE manager = ?1),
                      change
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
        let slots = parse(text)?.slots.into_iter();
        versions.extend(slots.flat_map(|(a, b)| [a, b]).flatten().map(|SlotRow(it, ..)| it));
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
    let sql = "DELETE FROM journal WHERE manager = ?1 AND seq <= ?2 RETURNING change";
    let old: Vec<String> = db.rows(sql, params![manager, up_to], |row| row.get(0))?;
    if has_undone(db, manager)? {
        return forget_unused(db, manager, &old);
    }
    // Without redo, a version is no longer needed once the change that replaced it is forgotten.
    let versions = old.iter().map(|text| Ok(parse(text)?.superseded()));
    delete_versions(db, versions.collect::<Result<Vec<_>, StoreError>>()?.concat())
}

fn version(slot: Option<SlotRow>) -> Option<u64> {
    slot.map(|SlotRow(version, ..)| version)
}

fn parse(text: &str) -> Result<ChangeRow, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged(format!("cannot parse a journal entry: {error}")))
}

impl From<&Change> for ChangeRow {
    fn from(change: &Change) -> Self {
        let row = |slot: &Option<Slot>| {
            slot.as_ref().map(|slot| SlotRow(slot.version, slot.rank, slot.pinned))
        };
        Self {
            method: change.method.clone(),
            slots: change.slots.iter().map(|c| (row(&c.before), row(&c.after))).collect(),
            max_items: change.settings.map(|(before, after)| (before.max_items, after.max_items)),
            set: change.set.clone().map(|set| (set.name, set.before, set.after)),
            partner: change.partner.clone(),
        }
    }
}

impl ChangeRow {
    /// Returns the versions that the change replaced.
    fn superseded(&self) -> Vec<u64> {
        self.slots
            .iter()
            .filter(|(before, after)| version(*before) != version(*after))
            .filter_map(|(before, _)| version(*before))
            .collect()
    }

    fn resolve(self, db: &Connection) -> Result<Change, StoreError> {
        let slot = |row: Option<SlotRow>| row.map(|row| row.resolve(db)).transpose();
        let settings = |max_items| Settings { max_items };
        let slots = self
            .slots
            .into_iter()
            .map(|(before, after)| Ok(SlotChange { before: slot(before)?, after: slot(after)? }))
            .collect::<Result<_, StoreError>>()?;
        Ok(Change {
            method: self.method,
            slots,
            settings: self.max_items.map(|(before, after)| (settings(before), settings(after))),
            set: self.set.map(|(name, before, after)| SetChange { name, before, after }),
            version: 0,
            partner: self.partner,
        })
    }
}

impl SlotRow {
    fn resolve(self, db: &Connection) -> Result<Slot, StoreError> {
        let Self(version, rank, pinned) = self;
        let sql = format!("SELECT {ITEM_COLUMNS} FROM version WHERE version = ?1");
        let item = db.row(&sql, [version], item_of)?.ok_or_else(|| {
            StoreError::Damaged(format!("version {version} of an item is missing"))
        })?;
        Ok(Slot { rank, pinned, version, item: item.into() })
    }
}
