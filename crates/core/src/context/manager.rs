//! A manager: a bounded, ordered collection of items. When it is full, the oldest unpinned item is
//! evicted first.
//!
//! Operations are first planned (`plan_…` returns a [`Change`] and modifies nothing) and then
//! applied, so that the caller can store the change in between.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::change::{Change, ContextSettings, Slot, SlotChange};
use super::item::{Item, ItemId};
use crate::wording::counted;

/// Default capacity of a manager that belongs to no place or session.
pub const DEFAULT_CAPACITY: usize = 50;
/// Largest capacity that the configuration and clients can set. A program that uses the library can
/// set a larger one.
pub const MAX_CAPACITY: usize = 1000;
/// Distance between the ranks of neighbours, which leaves room to move an item between them.
const RANK_STEP: i64 = 1 << 20;

/// The reason why an operation was refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagerError {
    /// The items do not fit, even if every unpinned item is evicted.
    #[error("{}", no_room(*.adding, *.capacity, *.pinned))]
    CapacityFull {
        /// Number of items to add.
        adding: usize,
        /// Capacity of the manager.
        capacity: usize,
        /// Number of items exempt from eviction.
        pinned: usize,
    },
    /// The requested capacity is smaller than the number of pinned items.
    #[error("{pinned} items are pinned, so the capacity cannot be {capacity}; unpin some first")]
    PinnedExceedCapacity {
        /// Requested capacity.
        capacity: usize,
        /// Number of pinned items.
        pinned: usize,
    },
    /// The manager has no item with this id.
    #[error("there is no item {0} in the manager")]
    NoSuchItem(ItemId),
}

/// Says why items do not fit, and what can be done about it.
fn no_room(adding: usize, capacity: usize, pinned: usize) -> String {
    let more = if adding > capacity { "" } else { " more" };
    let (item, does) = if adding == 1 { ("item", "does") } else { ("items", "do") };
    let most = counted(capacity as u64, "item");
    let (are_pinned, way_out) = match pinned {
        0 if adding > capacity => (String::new(), ""),
        0 => (String::new(), "remove some, or "),
        1 => (", and 1 is pinned".to_owned(), "unpin or remove some, or "),
        _ => (format!(", and {pinned} are pinned"), "unpin or remove some, or "),
    };
    format!(
        "{adding}{more} {item} {does} not fit: the manager holds at most {most}{are_pinned}; \
         {way_out}raise :max-items with configure-manager"
    )
}

/// The new place of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemPlace {
    /// After this many items; a number past the end means last.
    Index(usize),
    /// Right before that item.
    Before(ItemId),
    /// Right after that item.
    After(ItemId),
}

/// An item to add, or a new version of an item, with the number of the version.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The item.
    pub item: Arc<Item>,
    /// Number of the version. Unique in a store.
    pub version: u64,
    /// True if the item is to be pinned.
    pub pinned: bool,
}

/// The items of one manager, by rank.
#[derive(Debug, Clone)]
pub struct Manager {
    settings: ContextSettings,
    slots: BTreeMap<i64, Slot>,
    ranks: HashMap<ItemId, i64>,
    pinned: usize,
    tokens: u64,
    version: u64,
}

impl Manager {
    /// Creates an empty manager.
    pub fn new(settings: ContextSettings) -> Self {
        let (slots, ranks) = (BTreeMap::new(), HashMap::new());
        Self { settings, slots, ranks, pinned: 0, tokens: 0, version: 0 }
    }

    /// Returns the settings.
    pub fn settings(&self) -> ContextSettings {
        self.settings
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns whether the manager has no items.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the total number of tokens in all items.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the version after the last change; 0 before the first.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Iterates over the slots, oldest first.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values()
    }

    /// Returns the slot of one item, if the manager has the item.
    pub fn slot(&self, id: ItemId) -> Option<&Slot> {
        self.slots.get(self.ranks.get(&id)?)
    }

    /// Plans to append the items in order, and to evict the oldest unpinned items if there is no
    /// room.
    ///
    /// # Errors
    /// [`ManagerError::CapacityFull`] if there is no room even after evicting every unpinned item.
    pub fn plan_add(&self, method: &str, arrivals: Vec<Arrival>) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        let excess = (self.len() + arrivals.len()).saturating_sub(self.settings.max_items);
        if excess > self.len() - self.pinned {
            let (adding, capacity) = (arrivals.len(), self.settings.max_items);
            return Err(ManagerError::CapacityFull { adding, capacity, pinned: self.pinned });
        }
        self.unpinned().take(excess).for_each(|slot| change.leave(slot));
        self.enter_last(&mut change, arrivals);
        Ok(change)
    }

    /// Plans to replace the content of an item, to make it the newest, and to remove the `absorbed`
    /// items, which became part of it.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`].
    pub fn plan_renew(
        &self,
        method: &str,
        Arrival { item, version, pinned }: Arrival,
        absorbed: &[ItemId],
    ) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        let slot = self.existing(item.id)?;
        let last = self.slots.last_key_value().map_or(0, |(rank, _)| *rank);
        let rank = if slot.rank == last { last } else { last + RANK_STEP };
        change.turn(slot, Slot { rank, item, version, pinned });
        self.each(absorbed)?.into_iter().for_each(|slot| change.leave(slot));
        Ok(change)
    }

    /// Plans to replace all items with the given ones.
    ///
    /// # Errors
    /// [`ManagerError::CapacityFull`] if there are more items than the capacity allows.
    pub fn plan_replace(
        &self,
        method: &str,
        arrivals: Vec<Arrival>,
    ) -> Result<Change, ManagerError> {
        if arrivals.len() > self.settings.max_items {
            let (adding, capacity) = (arrivals.len(), self.settings.max_items);
            return Err(ManagerError::CapacityFull { adding, capacity, pinned: 0 });
        }
        let mut change = self.plan_clear(method);
        self.enter_last(&mut change, arrivals);
        Ok(change)
    }

    /// Plans to remove the items.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`] for the first id that the manager does not have.
    pub fn plan_remove(&self, method: &str, ids: &[ItemId]) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        self.each(ids)?.into_iter().for_each(|slot| change.leave(slot));
        Ok(change)
    }

    /// Plans to remove every item, including pinned ones.
    pub fn plan_clear(&self, method: &str) -> Change {
        let mut change = Change::by(method);
        self.slots().for_each(|slot| change.leave(slot));
        change
    }

    /// Plans to replace the content of items. Each item keeps its place, and is pinned if its
    /// update is.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`].
    pub fn plan_update(&self, method: &str, updates: Vec<Arrival>) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        for Arrival { item, version, pinned } in updates {
            let slot = self.existing(item.id)?;
            change.turn(slot, Slot { item, version, pinned, ..slot.clone() });
        }
        Ok(change)
    }

    /// Plans to move an item. If no rank is left between its new neighbours, all items get new
    /// ranks.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`] for the item or its new neighbour.
    pub fn plan_move(
        &self,
        method: &str,
        id: ItemId,
        place: ItemPlace,
    ) -> Result<Change, ManagerError> {
        let moving = self.existing(id)?;
        let others: Vec<&Slot> = self.slots().filter(|slot| slot.item.id != id).collect();
        let index = self.index_among(&others, id, place)?;
        let mut change = Change::by(method);
        let before = index.checked_sub(1).map(|i| others[i].rank);
        let after = others.get(index).map(|slot| slot.rank);
        if before < Some(moving.rank) && after.is_none_or(|rank| moving.rank < rank) {
            return Ok(change);
        }
        match rank_between(before, after) {
            Some(rank) => change.turn(moving, Slot { rank, ..moving.clone() }),
            None => {
                let mut order = others;
                order.insert(index, moving);
                for (slot, number) in order.into_iter().zip(1..) {
                    change.turn(slot, Slot { rank: number * RANK_STEP, ..slot.clone() });
                }
            }
        }
        Ok(change)
    }

    /// Plans to change the settings. If the capacity shrinks, the oldest unpinned items are
    /// evicted.
    ///
    /// # Errors
    /// [`ManagerError::PinnedExceedCapacity`].
    pub fn plan_settings(
        &self,
        method: &str,
        settings: ContextSettings,
    ) -> Result<Change, ManagerError> {
        let (capacity, pinned) = (settings.max_items, self.pinned);
        if pinned > capacity {
            return Err(ManagerError::PinnedExceedCapacity { capacity, pinned });
        }
        let mut change = Change::by(method);
        let excess = self.len().saturating_sub(capacity);
        self.unpinned().take(excess).for_each(|slot| change.leave(slot));
        change.settings = (settings != self.settings).then_some((self.settings, settings));
        Ok(change)
    }

    /// Applies a planned change. What the change has as `before` must match the manager's current
    /// content.
    pub fn apply(&mut self, change: &Change) {
        for SlotChange { before, .. } in &change.slots {
            if let Some(slot) = before {
                self.take_out(slot);
            }
        }
        for SlotChange { after, .. } in &change.slots {
            if let Some(slot) = after {
                self.put_in(slot.clone());
            }
        }
        if let Some((_, after)) = change.settings {
            self.settings = after;
        }
        self.version = self.version.max(change.version);
    }

    fn unpinned(&self) -> impl Iterator<Item = &Slot> {
        self.slots().filter(|slot| !slot.pinned)
    }

    fn existing(&self, id: ItemId) -> Result<&Slot, ManagerError> {
        self.slot(id).ok_or(ManagerError::NoSuchItem(id))
    }

    /// Returns the slots of these items, each once.
    fn each(&self, ids: &[ItemId]) -> Result<Vec<&Slot>, ManagerError> {
        let mut seen = HashSet::new();
        let ids = ids.iter().filter(|id| seen.insert(**id));
        ids.map(|id| self.existing(*id)).collect()
    }

    fn enter_last(&self, change: &mut Change, arrivals: Vec<Arrival>) {
        let last = self.slots.last_key_value().map_or(0, |(rank, _)| *rank).max(0);
        for (Arrival { item, version, pinned }, number) in arrivals.into_iter().zip(1..) {
            change.enter(Slot { rank: last + number * RANK_STEP, pinned, version, item });
        }
    }

    fn index_among(
        &self,
        others: &[&Slot],
        id: ItemId,
        place: ItemPlace,
    ) -> Result<usize, ManagerError> {
        let find = |neighbour| {
            others
                .iter()
                .position(|slot| slot.item.id == neighbour)
                .ok_or(ManagerError::NoSuchItem(neighbour))
        };
        match place {
            ItemPlace::Index(index) => Ok(index.min(others.len())),
            ItemPlace::Before(neighbour) | ItemPlace::After(neighbour) if neighbour == id => {
                Ok(self.slots().take_while(|slot| slot.item.id != id).count())
            }
            ItemPlace::Before(neighbour) => find(neighbour),
            ItemPlace::After(neighbour) => Ok(find(neighbour)? + 1),
        }
    }

    fn take_out(&mut self, slot: &Slot) {
        self.ranks.remove(&slot.item.id);
        self.slots.remove(&slot.rank);
        self.pinned -= usize::from(slot.pinned);
        self.tokens -= slot.item.tokens;
    }

    fn put_in(&mut self, slot: Slot) {
        self.ranks.insert(slot.item.id, slot.rank);
        self.pinned += usize::from(slot.pinned);
        self.tokens += slot.item.tokens;
        self.slots.insert(slot.rank, slot);
    }
}

/// Returns a rank strictly between two neighbours, or beyond one neighbour if there is no other;
/// `None` if no rank is left.
fn rank_between(before: Option<i64>, after: Option<i64>) -> Option<i64> {
    match (before, after) {
        (None, None) => Some(RANK_STEP),
        (Some(before), None) => before.checked_add(RANK_STEP),
        (None, Some(after)) => after.checked_sub(RANK_STEP),
        (Some(before), Some(after)) => (after - before > 1).then(|| before + (after - before) / 2),
    }
}

#[cfg(test)]
mod tests;
