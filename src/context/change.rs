//! A change of one manager, as data: what each slot was and what it becomes.
//!
//! Every operation is planned as a [`Change`], stored, and then applied; undoing it applies its
//! [`inverse`](Change::inverse). So whatever can be done can be undone, by one mechanism.

use std::sync::Arc;

use super::item::{Item, ItemId};

/// An item in its place in a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Where the item stands: smaller is older. Unique within a manager.
    pub rank: i64,
    /// Whether the item is exempt from eviction.
    pub pinned: bool,
    /// The number of this version of the item, unique in a store.
    pub version: u64,
    /// The item itself.
    pub item: Arc<Item>,
}

/// What becomes of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotChange {
    /// The slot before; `None` when the item was not there.
    pub before: Option<Slot>,
    /// The slot after; `None` when the item leaves.
    pub after: Option<Slot>,
}

/// What can be configured for a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The capacity: from 1 to [`MAX_CAPACITY`](super::manager::MAX_CAPACITY) items.
    pub max_items: usize,
}

/// A named set taking another content: numbers of stored sets, `None` for no such set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetChange {
    /// The set's name.
    pub name: String,
    /// What the name stood for.
    pub before: Option<u64>,
    /// What it stands for now.
    pub after: Option<u64>,
}

/// One undoable step of a manager.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// The method that made it, as `undo` reports it.
    pub method: String,
    /// The slots that differ.
    pub slots: Vec<SlotChange>,
    /// The settings before and after, when they differ.
    pub settings: Option<(Settings, Settings)>,
    /// The named set that was saved, replaced or dropped.
    pub set: Option<SetChange>,
}

impl Change {
    /// A change of nothing yet, made by `method`.
    pub fn by(method: &str) -> Self {
        Self { method: method.to_owned(), ..Self::default() }
    }

    /// Whether applying it would make no difference.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.settings.is_none() && self.set.is_none()
    }

    /// The change that takes this one back.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self {
            method: self.method,
            slots: self
                .slots
                .into_iter()
                .rev()
                .map(|slot| SlotChange { before: slot.after, after: slot.before })
                .collect(),
            settings: self.settings.map(|(before, after)| (after, before)),
            set: self.set.map(|set| SetChange { before: set.after, after: set.before, ..set }),
        }
    }

    /// The items that leave the manager by it.
    pub fn leaving(&self) -> impl Iterator<Item = ItemId> {
        self.slots
            .iter()
            .filter(|change| change.after.is_none())
            .filter_map(|change| change.before.as_ref().map(|slot| slot.item.id))
    }

    /// Notes that `slot` comes in.
    pub fn enter(&mut self, slot: Slot) {
        self.slots.push(SlotChange { before: None, after: Some(slot) });
    }

    /// Notes that `slot` goes.
    pub fn leave(&mut self, slot: &Slot) {
        self.slots.push(SlotChange { before: Some(slot.clone()), after: None });
    }

    /// Notes that `before` becomes `after`.
    pub fn turn(&mut self, before: &Slot, after: Slot) {
        if *before != after {
            self.slots.push(SlotChange { before: Some(before.clone()), after: Some(after) });
        }
    }
}
