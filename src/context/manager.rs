//! A manager: a bounded, ordered collection of items, the oldest unpinned leaving first.
//!
//! Operations are planned (`plan_…` gives a [`Change`] and touches nothing) and then applied, so
//! that the caller can make the change durable in between.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::change::{Change, Settings, Slot, SlotChange};
use super::item::{Item, ItemId};

/// The capacity of a manager that nobody configured.
pub const DEFAULT_CAPACITY: usize = 50;
/// The largest capacity that can be configured.
pub const MAX_CAPACITY: usize = 1000;
/// The distance between the ranks of items that follow each other, so that one can move between.
const RANK_STEP: i64 = 1 << 20;

/// Why an operation was refused; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagerError {
    /// Evicting every unpinned item would not make room.
    #[error(
        "{adding} more do not fit: the manager holds {capacity} items and {pinned} of them are \
         pinned; unpin or remove some, or raise :max-items with configure-manager"
    )]
    CapacityFull {
        /// How many items should have come in.
        adding: usize,
        /// The manager's capacity.
        capacity: usize,
        /// How many items are exempt from eviction.
        pinned: usize,
    },
    /// The capacity asked for is smaller than the number of pinned items.
    #[error("{pinned} items are pinned, so the capacity cannot be {capacity}; unpin some first")]
    PinnedExceedCapacity {
        /// The capacity asked for.
        capacity: usize,
        /// How many items are pinned.
        pinned: usize,
    },
    /// The manager has no item with this id.
    #[error("no item {0} here")]
    NoSuchItem(ItemId),
}

/// Where an item is moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// This many items stand before it; past the end means last.
    Index(usize),
    /// Just before that item.
    Before(ItemId),
    /// Just after that item.
    After(ItemId),
}

/// An item that is to come in, with the number of its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The item.
    pub item: Arc<Item>,
    /// The version's number, unique in a store.
    pub version: u64,
    /// Whether it comes in pinned.
    pub pinned: bool,
}

/// The items of one manager. Pinned and other items stand in two queues, each in rank order, so
/// that the oldest unpinned item is always at hand however many pinned ones are older.
#[derive(Debug, Clone)]
pub struct Manager {
    settings: Settings,
    pinned: VecDeque<Slot>,
    unpinned: VecDeque<Slot>,
    places: HashMap<ItemId, (bool, i64)>,
    tokens: u64,
    bytes: u64,
}

impl Manager {
    /// An empty manager.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            pinned: VecDeque::new(),
            unpinned: VecDeque::new(),
            places: HashMap::new(),
            tokens: 0,
            bytes: 0,
        }
    }

    /// What is configured.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The tokens of all items together.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The bytes of all items' content together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Every slot, oldest first.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        let mut pinned = self.pinned.iter().peekable();
        let mut unpinned = self.unpinned.iter().peekable();
        std::iter::from_fn(move || match (pinned.peek(), unpinned.peek()) {
            (Some(a), Some(b)) if a.rank < b.rank => pinned.next(),
            (Some(_), None) => pinned.next(),
            _ => unpinned.next(),
        })
    }

    /// The slot of one item.
    pub fn slot(&self, id: ItemId) -> Option<&Slot> {
        let (pinned, rank) = *self.places.get(&id)?;
        let queue = self.queue(pinned);
        queue.get(position(queue, rank).ok()?)
    }

    /// The items come in last, in order; the oldest unpinned items make room.
    ///
    /// # Errors
    /// [`ManagerError::CapacityFull`] when that would evict one of the arrivals themselves.
    pub fn plan_add(&self, method: &str, arrivals: Vec<Arrival>) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        let excess = (self.len() + arrivals.len()).saturating_sub(self.settings.max_items);
        if excess > self.unpinned.len() {
            return Err(self.full(arrivals.len()));
        }
        self.unpinned.iter().take(excess).for_each(|slot| change.leave(slot));
        self.enter_last(&mut change, arrivals, self.last_rank());
        Ok(change)
    }

    /// The items take the place of every other item.
    ///
    /// # Errors
    /// [`ManagerError::CapacityFull`] when there are more than the capacity.
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
        self.enter_last(&mut change, arrivals, self.last_rank());
        Ok(change)
    }

    /// The items go.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`] for the first id that is not here.
    pub fn plan_remove(&self, method: &str, ids: &[ItemId]) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        for (index, &id) in ids.iter().enumerate() {
            let slot = self.existing(id)?;
            if !ids[..index].contains(&id) {
                change.leave(slot);
            }
        }
        Ok(change)
    }

    /// Every item goes, pinned ones too.
    pub fn plan_clear(&self, method: &str) -> Change {
        let mut change = Change::by(method);
        self.slots().for_each(|slot| change.leave(slot));
        change
    }

    /// An item takes another content; its place and pin stay.
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

    /// Items become exempt from eviction, or no longer are.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`].
    pub fn plan_pin(
        &self,
        method: &str,
        ids: &[ItemId],
        pinned: bool,
    ) -> Result<Change, ManagerError> {
        let mut change = Change::by(method);
        for (index, &id) in ids.iter().enumerate() {
            let slot = self.existing(id)?;
            if !ids[..index].contains(&id) {
                change.turn(slot, Slot { pinned, ..slot.clone() });
            }
        }
        Ok(change)
    }

    /// An item takes another place. When there is no rank left between its new neighbours, all
    /// items are numbered anew.
    ///
    /// # Errors
    /// [`ManagerError::NoSuchItem`] for the item or its new neighbour.
    pub fn plan_move(
        &self,
        method: &str,
        id: ItemId,
        place: Place,
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

    /// The manager takes other settings; when the capacity shrinks, the oldest unpinned items go.
    ///
    /// # Errors
    /// [`ManagerError::PinnedExceedCapacity`].
    pub fn plan_settings(&self, method: &str, settings: Settings) -> Result<Change, ManagerError> {
        let (capacity, pinned) = (settings.max_items, self.pinned.len());
        if pinned > capacity {
            return Err(ManagerError::PinnedExceedCapacity { capacity, pinned });
        }
        let mut change = Change::by(method);
        let excess = self.len().saturating_sub(capacity);
        self.unpinned.iter().take(excess).for_each(|slot| change.leave(slot));
        change.settings = (settings != self.settings).then_some((self.settings, settings));
        Ok(change)
    }

    /// Makes a planned change so. Its `before` sides must be what the manager holds now.
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
    }

    fn queue(&self, pinned: bool) -> &VecDeque<Slot> {
        if pinned { &self.pinned } else { &self.unpinned }
    }

    fn queue_mut(&mut self, pinned: bool) -> &mut VecDeque<Slot> {
        if pinned { &mut self.pinned } else { &mut self.unpinned }
    }

    fn existing(&self, id: ItemId) -> Result<&Slot, ManagerError> {
        self.slot(id).ok_or(ManagerError::NoSuchItem(id))
    }

    fn full(&self, adding: usize) -> ManagerError {
        let (capacity, pinned) = (self.settings.max_items, self.pinned.len());
        ManagerError::CapacityFull { adding, capacity, pinned }
    }

    fn last_rank(&self) -> i64 {
        let last = |queue: &VecDeque<Slot>| queue.back().map_or(0, |slot| slot.rank);
        last(&self.pinned).max(last(&self.unpinned))
    }

    fn enter_last(&self, change: &mut Change, arrivals: Vec<Arrival>, last: i64) {
        for (Arrival { item, version, pinned }, number) in arrivals.into_iter().zip(1..) {
            change.enter(Slot { rank: last + number * RANK_STEP, pinned, version, item });
        }
    }

    fn index_among(
        &self,
        others: &[&Slot],
        id: ItemId,
        place: Place,
    ) -> Result<usize, ManagerError> {
        let find = |neighbour| {
            others
                .iter()
                .position(|slot| slot.item.id == neighbour)
                .ok_or(ManagerError::NoSuchItem(neighbour))
        };
        match place {
            Place::Index(index) => Ok(index.min(others.len())),
            Place::Before(neighbour) | Place::After(neighbour) if neighbour == id => {
                Ok(self.slots().take_while(|slot| slot.item.id != id).count())
            }
            Place::Before(neighbour) => find(neighbour),
            Place::After(neighbour) => Ok(find(neighbour)? + 1),
        }
    }

    fn take_out(&mut self, slot: &Slot) {
        let queue = self.queue_mut(slot.pinned);
        if queue.front().is_some_and(|front| front.rank == slot.rank) {
            queue.pop_front();
        } else if let Ok(index) = position(queue, slot.rank) {
            queue.remove(index);
        }
        self.places.remove(&slot.item.id);
        self.tokens -= slot.item.tokens;
        self.bytes -= slot.item.content.len() as u64;
    }

    fn put_in(&mut self, slot: Slot) {
        self.places.insert(slot.item.id, (slot.pinned, slot.rank));
        self.tokens += slot.item.tokens;
        self.bytes += slot.item.content.len() as u64;
        let queue = self.queue_mut(slot.pinned);
        if queue.back().is_none_or(|last| last.rank < slot.rank) {
            queue.push_back(slot);
        } else {
            let index = position(queue, slot.rank).unwrap_or_else(|index| index);
            queue.insert(index, slot);
        }
    }
}

fn position(queue: &VecDeque<Slot>, rank: i64) -> Result<usize, usize> {
    queue.binary_search_by_key(&rank, |slot| slot.rank)
}

/// A rank strictly between two neighbours, or beyond the only one.
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
