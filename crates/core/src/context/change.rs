//! A change to one manager, as data: the items, settings and sets that differ, before and after.
//!
//! Every operation is planned as a [`Change`], stored, and then applied. Undoing a change applies
//! its [`inverse`](Change::inverse), so one mechanism undoes every operation.

use std::sync::Arc;

use super::item::{Item, ItemId};

/// An item in its place in a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Position of the item. Items with smaller ranks come first and count as older. Unique within
    /// a manager.
    pub rank: i64,
    /// True if the item is exempt from eviction.
    pub pinned: bool,
    /// Number of this version of the item. Unique in a store.
    pub version: u64,
    /// The item itself.
    pub item: Arc<Item>,
}

/// The change to one item.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotChange {
    /// Slot before the change; `None` if the item was not there.
    pub before: Option<Slot>,
    /// Slot after the change; `None` if the item is removed.
    pub after: Option<Slot>,
}

/// The settings of a manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextSettings {
    /// Capacity, in items. Clients can set it from 1 to
    /// [`MAX_CAPACITY`](super::manager::MAX_CAPACITY).
    pub max_items: usize,
}

/// A change to a named set of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetChange {
    /// Name of the set.
    pub name: String,
    /// Number of the stored set under this name before the change; `None` if there was none.
    pub before: Option<u64>,
    /// Number of the stored set under this name after the change; `None` if there is none.
    pub after: Option<u64>,
}

/// One undoable step of a manager.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Method that made the change, as `undo` reports it.
    pub method: String,
    /// Items that differ, with their slots before and after.
    pub slots: Vec<SlotChange>,
    /// Settings before and after, if they differ.
    pub settings: Option<(ContextSettings, ContextSettings)>,
    /// The named set that was saved, replaced or dropped, if any.
    pub set: Option<SetChange>,
    /// Version that the change gives the manager; 0 while it is only planned.
    pub version: u64,
    /// Name of the other manager, if items were moved to or from another manager.
    pub partner: Option<String>,
    /// Number that all changes of one request share, in all managers; `undo` takes them back
    /// together. 0 for a change that belongs to no step, such as one that only follows sources.
    pub step: u64,
}

impl Change {
    /// Method recorded for changes in which items only follow their sources. `undo` does not count
    /// such a change as a step.
    pub const FOLLOW: &str = "refresh";

    /// Creates an empty change, made by `method`.
    pub fn by(method: &str) -> Self {
        Self { method: method.to_owned(), ..Self::default() }
    }

    /// Returns whether the change is empty.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.settings.is_none() && self.set.is_none()
    }

    /// Returns whether items only follow their sources in this change.
    pub fn is_following(&self) -> bool {
        self.method == Self::FOLLOW
    }

    /// Returns the change that undoes this one.
    #[must_use]
    pub fn inverse(self) -> Self {
        let inverse = |slot: SlotChange| SlotChange { before: slot.after, after: slot.before };
        Self {
            slots: self.slots.into_iter().rev().map(inverse).collect(),
            settings: self.settings.map(|(before, after)| (after, before)),
            set: self.set.map(|set| SetChange { before: set.after, after: set.before, ..set }),
            version: 0,
            ..self
        }
    }

    /// Iterates over the slots that this change adds.
    pub fn entering(&self) -> impl Iterator<Item = &Slot> {
        let added = self.slots.iter().filter(|change| change.before.is_none());
        added.filter_map(|change| change.after.as_ref())
    }

    /// Iterates over the ids of the items that this change removes.
    pub fn leaving(&self) -> impl Iterator<Item = ItemId> {
        self.slots
            .iter()
            .filter(|change| change.after.is_none())
            .filter_map(|change| change.before.as_ref().map(|slot| slot.item.id))
    }

    /// Records that `slot` is added.
    pub fn enter(&mut self, slot: Slot) {
        self.slots.push(SlotChange { before: None, after: Some(slot) });
    }

    /// Records that `slot` is removed.
    pub fn leave(&mut self, slot: &Slot) {
        self.slots.push(SlotChange { before: Some(slot.clone()), after: None });
    }

    /// Records that `before` becomes `after`. Records nothing if they are equal.
    pub fn turn(&mut self, before: &Slot, after: Slot) {
        if *before != after {
            self.slots.push(SlotChange { before: Some(before.clone()), after: Some(after) });
        }
    }
}
