//! The context family: adding, changing, arranging, undoing and selecting items.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::clock::not_ahead;
use super::{Engine, EngineError};
use crate::context::change::{Change, Settings, Slot};
use crate::context::filter::{self, TypeName};
use crate::context::item::{Item, ItemId, Kind, Metadata};
use crate::context::manager::{Arrival, Manager, ManagerError, Place};
use crate::store::ManagerSummary;

/// What an item is made of; the engine gives the id and the time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    /// What the content is.
    pub kind: Kind,
    /// The text itself.
    pub content: Arc<str>,
    /// Where it came from.
    pub metadata: Metadata,
    /// When the content was taken, Unix milliseconds.
    pub taken_ms: i64,
    /// How many tokens the content has.
    pub tokens: u64,
    /// The counter's name.
    pub counted_by: &'static str,
    /// Whether the file is read again whenever the item is shown.
    pub live: bool,
    /// Whether it is exempt from eviction.
    pub pinned: bool,
}

/// What an update changes; `None` leaves the old.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Revision {
    /// The new content with its tokens, their counter and when it was taken.
    pub content: Option<(Arc<str>, u64, &'static str, i64)>,
    /// The new type.
    pub kind: Option<Kind>,
    /// The new metadata, whole.
    pub metadata: Option<Metadata>,
    /// Whether the item is live.
    pub live: Option<bool>,
}

/// The ids of items that came in, and of those that made room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// In the order of adding.
    pub ids: Vec<u64>,
    /// Oldest first.
    pub evicted: Vec<u64>,
}

/// How many items left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// The number.
    pub removed: u64,
}

/// What was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The method whose change was taken back.
    pub undone: String,
}

/// Which items a call is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// The managers, in the order of interest.
    pub managers: Vec<String>,
    /// Types and origins; all when empty.
    pub types: Vec<TypeName>,
    /// At most this many of the most recent.
    pub limit: Option<usize>,
}

/// An item as it stands in a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The item.
    pub item: Arc<Item>,
    /// Whether it is exempt from eviction.
    pub pinned: bool,
}

/// A manager in the list of managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What the store knows.
    pub summary: ManagerSummary,
    /// Its capacity, configured or by default.
    pub max_items: usize,
}

impl From<&Slot> for View {
    fn from(slot: &Slot) -> Self {
        Self { item: Arc::clone(&slot.item), pinned: slot.pinned }
    }
}

impl Engine {
    /// Adds items to a manager, in order; the oldest unpinned ones make room.
    ///
    /// # Errors
    /// [`ManagerError::CapacityFull`], [`EngineError::Store`].
    pub fn add(
        &mut self,
        method: &str,
        manager: &str,
        items: Vec<NewItem>,
    ) -> Result<Added, EngineError> {
        let arrivals = self.arrivals(items);
        let ids = arrivals.iter().map(|arrival| arrival.item.id.0).collect();
        let change = self.plan(manager, |m| m.plan_add(method, arrivals))?;
        let evicted = change.leaving().map(|id| id.0).collect();
        self.carry_out(manager, change)?;
        Ok(Added { ids, evicted })
    }

    /// Gives items another content, type or metadata.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`], [`EngineError::Store`].
    pub fn update(
        &mut self,
        method: &str,
        manager: &str,
        revisions: Vec<(ItemId, Revision)>,
    ) -> Result<(), EngineError> {
        let mut updates = Vec::with_capacity(revisions.len());
        for (id, revision) in revisions {
            let slot = self.slot(manager, id)?;
            let item = Arc::new(revision.apply(&slot.item));
            if *item != *slot.item {
                let version = self.next_version();
                updates.push(Arrival { item, version, pinned: slot.pinned });
            }
        }
        let change = self.plan(manager, |m| m.plan_update(method, updates))?;
        self.carry_out(manager, change)
    }

    /// Removes items by id.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`] for the first that is not there; then none is removed.
    pub fn remove(&mut self, manager: &str, ids: &[ItemId]) -> Result<Removed, EngineError> {
        self.check_items(manager, ids)?;
        let change = self.plan(manager, |m| m.plan_remove("remove-context", ids))?;
        self.carry_out_removal(manager, change)
    }

    /// Removes every item, pinned ones too.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn clear(&mut self, manager: &str) -> Result<Removed, EngineError> {
        let change = self.manager(manager)?.plan_clear("clear-context");
        self.carry_out_removal(manager, change)
    }

    /// Removes every item and the configuration.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn drop_manager(&mut self, manager: &str) -> Result<Removed, EngineError> {
        let defaults = self.defaults;
        let held = self.manager(manager)?;
        let mut change = held.plan_clear("drop-manager");
        let settings = held.settings();
        change.settings = (settings != defaults).then_some((settings, defaults));
        self.carry_out_removal(manager, change)
    }

    /// Makes items exempt from eviction, or no longer.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`].
    pub fn pin(&mut self, manager: &str, ids: &[ItemId], pinned: bool) -> Result<(), EngineError> {
        self.check_items(manager, ids)?;
        let change = self.plan(manager, |m| m.plan_pin("pin-context", ids, pinned))?;
        self.carry_out(manager, change)
    }

    /// Puts an item in another place.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`] for the item or its neighbour.
    pub fn move_item(
        &mut self,
        manager: &str,
        id: ItemId,
        place: Place,
    ) -> Result<(), EngineError> {
        let mut named = vec![id];
        if let Place::Before(neighbour) | Place::After(neighbour) = place {
            named.push(neighbour);
        }
        self.check_items(manager, &named)?;
        let change = self.plan(manager, |m| m.plan_move("move-context", id, place))?;
        self.carry_out(manager, change)
    }

    /// Changes a manager's settings and gives the items that had to leave.
    ///
    /// # Errors
    /// [`ManagerError::PinnedExceedCapacity`].
    pub fn configure(
        &mut self,
        manager: &str,
        settings: Settings,
    ) -> Result<Vec<u64>, EngineError> {
        let change = self.plan(manager, |m| m.plan_settings("configure-manager", settings))?;
        let evicted = change.leaving().map(|id| id.0).collect();
        self.carry_out(manager, change)?;
        Ok(evicted)
    }

    /// A manager's settings.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn settings(&mut self, manager: &str) -> Result<Settings, EngineError> {
        Ok(self.manager(manager)?.settings())
    }

    /// How many items a manager holds, and their tokens together.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn size(&mut self, manager: &str) -> Result<(usize, u64), EngineError> {
        let held = self.manager(manager)?;
        Ok((held.len(), held.tokens()))
    }

    /// The numbers of a manager's items, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn order(&mut self, manager: &str) -> Result<Vec<u64>, EngineError> {
        Ok(self.manager(manager)?.slots().map(|slot| slot.item.id.0).collect())
    }

    /// Takes the last change of a manager back. Undoing again goes further back.
    ///
    /// # Errors
    /// [`EngineError::NothingToUndo`].
    pub fn undo(&mut self, manager: &str) -> Result<Undone, EngineError> {
        let change = self
            .store
            .last_change(manager)?
            .ok_or_else(|| EngineError::NothingToUndo { manager: manager.to_owned() })?;
        if let Some(set) = &change.set
            && self.store.set_named(&set.name)? != set.after
        {
            return Err(EngineError::SetChanged { name: set.name.clone() });
        }
        let undone = change.method.clone();
        let inverse = change.inverse();
        self.touched.push(manager.to_owned());
        self.manager(manager)?;
        self.store.take_back(manager, &inverse)?;
        self.apply(manager, &inverse)?;
        Ok(Undone { undone })
    }

    /// The selected items, oldest first. Items of several managers are merged by time, each
    /// manager's own order kept.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn select(&mut self, selection: &Selection) -> Result<Vec<View>, EngineError> {
        let mut merged: Vec<(i64, View)> = Vec::new();
        for name in &selection.managers {
            let mut latest = i64::MIN;
            for slot in self.manager(name)?.slots() {
                latest = latest.max(slot.item.timestamp);
                merged.push((latest, View::from(slot)));
            }
        }
        merged.sort_by_key(|(time, _)| *time);
        let views = merged.into_iter().map(|(_, view)| view);
        Ok(filter::select(views, &selection.types, selection.limit, |view| &view.item))
    }

    /// One item of a manager.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`], which says which manager does hold it.
    pub fn view(&mut self, manager: &str, id: ItemId) -> Result<View, EngineError> {
        Ok(View::from(&self.slot(manager, id)?))
    }

    /// Every manager that holds items or was configured, by name.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_managers(&mut self) -> Result<Vec<Listed>, EngineError> {
        let default = self.defaults.max_items;
        let listed = self.store.managers()?.into_iter().map(|summary| {
            let max_items = summary.max_items.unwrap_or(default);
            Listed { summary, max_items }
        });
        Ok(listed.filter(|m| m.summary.count > 0 || m.max_items != default).collect())
    }

    /// Items with ids, versions and times of their own.
    pub(super) fn arrivals(&mut self, items: Vec<NewItem>) -> Vec<Arrival> {
        let now = (self.clock)().div_euclid(1000);
        let timestamp = now.max(not_ahead(self.counters.last_timestamp, now));
        self.counters.last_timestamp = timestamp;
        items
            .into_iter()
            .map(|new| {
                let id = ItemId(self.counters.next_item);
                self.counters.next_item += 1;
                let version = self.next_version();
                let pinned = new.pinned;
                Arrival { item: Arc::new(new.into_item(id, timestamp)), version, pinned }
            })
            .collect()
    }

    /// Plans a change, naming the manager in whatever refuses it.
    pub(super) fn plan(
        &mut self,
        manager: &str,
        plan: impl FnOnce(&Manager) -> Result<Change, ManagerError>,
    ) -> Result<Change, EngineError> {
        let named = |source| EngineError::Manager { manager: manager.to_owned(), source };
        plan(self.manager(manager)?).map_err(named)
    }

    pub(super) fn next_version(&mut self) -> u64 {
        let version = self.counters.next_version;
        self.counters.next_version += 1;
        version
    }

    fn slot(&mut self, manager: &str, id: ItemId) -> Result<Slot, EngineError> {
        if let Some(slot) = self.manager(manager)?.slot(id) {
            return Ok(slot.clone());
        }
        let held_by = self.store.holder(id.0)?;
        Err(EngineError::NoSuchItem { id, manager: manager.to_owned(), held_by })
    }

    fn check_items(&mut self, manager: &str, ids: &[ItemId]) -> Result<(), EngineError> {
        ids.iter().try_for_each(|&id| self.slot(manager, id).map(drop))
    }

    fn carry_out_removal(&mut self, manager: &str, change: Change) -> Result<Removed, EngineError> {
        let removed = change.slots.len() as u64;
        self.carry_out(manager, change)?;
        Ok(Removed { removed })
    }
}

impl NewItem {
    fn into_item(self, id: ItemId, timestamp: i64) -> Item {
        Item {
            id,
            kind: self.kind,
            content: self.content,
            metadata: self.metadata,
            timestamp,
            taken_ms: self.taken_ms,
            tokens: self.tokens,
            counted_by: self.counted_by,
            live: self.live,
        }
    }
}

impl Revision {
    fn apply(self, old: &Item) -> Item {
        let mut item = old.clone();
        if let Some((content, tokens, counted_by, taken_ms)) = self.content {
            item = Item { content, tokens, counted_by, taken_ms, ..item };
        }
        item.kind = self.kind.unwrap_or(item.kind);
        item.metadata = self.metadata.unwrap_or(item.metadata);
        item.live = self.live.unwrap_or(item.live);
        item
    }
}
