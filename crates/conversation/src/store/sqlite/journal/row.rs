//! Changes as rows of the journal.

use std::collections::HashMap;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::super::super::tables::{ITEM_COLUMNS, Statements, item_of};
use super::super::super::{ITEMS_TOLD, StoreError, ToldChange};
use crate::context::change::{Change, ContextSettings, SetChange, Slot, SlotChange};

/// A [`Change`] as it is stored in the journal; item contents are in the table `version`.
#[derive(Serialize, Deserialize)]
pub(super) struct JournalRow {
    pub(super) method: String,
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

fn version(slot: Option<SlotRow>) -> Option<u64> {
    slot.map(|SlotRow(version, ..)| version)
}

pub(super) fn parse(text: &str) -> Result<JournalRow, StoreError> {
    serde_json::from_str(text)
        .map_err(|error| StoreError::Damaged(format!("cannot parse a journal entry: {error}")))
}

impl From<&Change> for JournalRow {
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

impl JournalRow {
    /// Returns whether the change names neither a set nor another manager, so that it can be one
    /// with others of its step.
    pub(super) fn is_plain(&self) -> bool {
        self.set.is_none() && self.partner.is_none()
    }

    /// Makes this change and a `later` one a single change. Returns the versions that were there
    /// only in between.
    pub(super) fn join(&mut self, later: Self) -> Vec<u64> {
        let now = |(at, (_, after)): (usize, &(_, Option<SlotRow>))| Some((version(*after)?, at));
        let known: HashMap<u64, usize> = self.slots.iter().enumerate().filter_map(now).collect();
        let mut replaced = Vec::new();
        for (before, after) in later.slots {
            match version(before).and_then(|before| known.get(&before)) {
                Some(at) => {
                    let between = std::mem::replace(&mut self.slots[*at].1, after);
                    replaced.extend(version(between));
                }
                None => self.slots.push((before, after)),
            }
        }
        self.slots.retain(|(before, after)| before.is_some() || after.is_some());
        self.max_items = match (self.max_items, later.max_items) {
            (Some((before, _)), Some((_, after))) => Some((before, after)),
            (one, other) => one.or(other),
        };
        replaced
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().flat_map(|(a, b)| [*a, *b]).flatten().map(|SlotRow(it, ..)| it)
    }

    /// Returns the versions that the change replaced.
    pub(super) fn superseded(&self) -> Vec<u64> {
        self.slots
            .iter()
            .filter(|(before, after)| version(*before) != version(*after))
            .filter_map(|(before, _)| version(*before))
            .collect()
    }

    /// Describes the change, which is number `number` of `step`.
    pub(super) fn told(
        mut self,
        db: &Connection,
        number: u64,
        step: u64,
    ) -> Result<ToldChange, StoreError> {
        let count = self.slots.len();
        self.slots.truncate(ITEMS_TOLD);
        let Change { method, slots, set, .. } = self.resolve(db)?;
        let item = |slot: SlotChange| slot.after.or(slot.before).map(|slot| slot.item);
        let items = slots.into_iter().filter_map(item).collect();
        Ok(ToldChange { number, step, method, count, items, set: set.map(|set| set.name) })
    }

    pub(super) fn resolve(self, db: &Connection) -> Result<Change, StoreError> {
        let slot = |row: Option<SlotRow>| row.map(|row| row.resolve(db)).transpose();
        let settings = |max_items| ContextSettings { max_items };
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
            step: 0,
        })
    }
}

impl SlotRow {
    fn resolve(self, db: &Connection) -> Result<Slot, StoreError> {
        let Self(version, rank, pinned) = self;
        let sql = format!("SELECT {ITEM_COLUMNS} FROM version WHERE version = ?1 AND sound");
        let item = db.row(&sql, [version], item_of)?.ok_or_else(|| {
            StoreError::Damaged(format!("version {version} of an item is missing"))
        })?;
        Ok(Slot { rank, pinned, version, item: item.into() })
    }
}
