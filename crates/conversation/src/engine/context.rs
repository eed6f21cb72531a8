//! Operations on managers and their items: add, change, pin, move, remove, configure and list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::clock::not_ahead;
use super::select::View;
use super::{Engine, EngineError};
use crate::context::change::{Change, ContextSettings, Slot};
use crate::context::item::{Item, ItemId, Kind, Metadata};
use crate::context::manager::{Arrival, ItemPlace, Manager, ManagerError};
use crate::context::place;
use crate::store::ManagerSummary;

/// A new item. The engine assigns its id and time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewItem {
    /// Type of the content.
    pub kind: Kind,
    /// Content of the item.
    pub content: Arc<str>,
    /// Origin and other metadata.
    pub metadata: Metadata,
    /// Time when the content was taken from its source, in Unix milliseconds.
    pub taken_ms: i64,
    /// Number of tokens in the content.
    pub tokens: u64,
    /// Name of the counter that counted the tokens.
    pub counted_by: &'static str,
    /// True if the item follows its source, as [`Item::live`] says.
    pub live: bool,
    /// True if the item is exempt from eviction.
    pub pinned: bool,
}

/// Changes to an item; `None` keeps the old value.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemChanges {
    /// New content, its number of tokens, the name of the counter that counted them, and the time
    /// when the content was taken from its source, in Unix milliseconds.
    pub content: Option<(Arc<str>, u64, &'static str, i64)>,
    /// New type.
    pub kind: Option<Kind>,
    /// New metadata, which replaces all of the old.
    pub metadata: Option<Metadata>,
    /// New value of [`Item::live`].
    pub live: Option<bool>,
    /// True to exempt the item from eviction.
    pub pinned: Option<bool>,
}

/// Ids of the items that were added, and of the items that were evicted to make room.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Ids in the order in which the items were added.
    pub ids: Vec<u64>,
    /// Ids of the evicted items, oldest first.
    pub evicted: Vec<u64>,
}

/// Result of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "RemovedItems"))]
pub struct Removed {
    /// Number of items removed.
    pub removed: u64,
}

/// A manager in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedContext {
    /// Summary of the manager, as the store has it.
    pub summary: ManagerSummary,
    /// Capacity in items, configured or default.
    pub max_items: usize,
}

impl Engine {
    /// Keeps the content of a picture by its hash.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn keep_picture(&mut self, name: &str, content: &[u8]) -> Result<(), EngineError> {
        Ok(self.store.change()?.keep_picture(name, content)?)
    }

    /// Adds items to a manager, in order. The oldest unpinned items are evicted to make room.
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
        for arrival in &arrivals {
            self.held.note(&arrival.item, self.sessions.caller);
        }
        let ids = arrivals.iter().map(|arrival| arrival.item.id.0).collect();
        let change = self.plan(manager, |m| m.plan_add(method, arrivals))?;
        let evicted = change.leaving().map(|id| id.0).collect();
        self.carry_out(manager, change)?;
        Ok(Added { ids, evicted })
    }

    /// Changes the content, type or metadata of items, or whether they are live or pinned. `method`
    /// is the name of the change.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`], [`EngineError::Store`].
    pub fn update(
        &mut self,
        method: &str,
        manager: &str,
        revisions: Vec<(ItemId, ItemChanges)>,
    ) -> Result<(), EngineError> {
        let mut updates = Vec::with_capacity(revisions.len());
        for (id, revision) in revisions {
            let slot = self.slot(manager, id)?;
            let pinned = revision.pinned.unwrap_or(slot.pinned);
            let is_of_item = !revision.is_only_pin();
            let item = Arc::new(revision.apply(&slot.item));
            if is_of_item {
                self.held.note_change(&slot.item, &item, self.sessions.caller);
            }
            if *item != *slot.item {
                let version = self.counters.give_version();
                updates.push(Arrival { item, version, pinned });
            } else if pinned != slot.pinned {
                updates.push(Arrival { item: slot.item, version: slot.version, pinned });
            }
        }
        let change = self.plan(manager, |m| m.plan_update(method, updates))?;
        self.carry_out(manager, change)
    }

    /// Removes items by id.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`] for the first unknown id; nothing is removed then.
    pub fn remove(&mut self, manager: &str, ids: &[ItemId]) -> Result<Removed, EngineError> {
        self.check_items(manager, ids)?;
        let change = self.plan(manager, |m| m.plan_remove("remove-items", ids))?;
        self.carry_out_removal(manager, change)
    }

    /// Removes every item, even pinned ones.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn clear(&mut self, manager: &str) -> Result<Removed, EngineError> {
        let change = self.manager(manager)?.plan_clear("clear-manager");
        self.carry_out_removal(manager, change)
    }

    /// Removes every item and the manager's configuration.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn drop_manager(&mut self, manager: &str) -> Result<Removed, EngineError> {
        let defaults = self.default_settings(manager);
        let held = self.manager(manager)?;
        let mut change = held.plan_clear("drop-manager");
        let settings = held.settings();
        change.settings = (settings != defaults).then_some((settings, defaults));
        self.carry_out_removal(manager, change)
    }

    /// Moves an item to another place.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`] for the item or its neighbour.
    pub fn move_item(
        &mut self,
        manager: &str,
        id: ItemId,
        place: ItemPlace,
    ) -> Result<(), EngineError> {
        let mut named = vec![id];
        if let ItemPlace::Before(neighbour) | ItemPlace::After(neighbour) = place {
            named.push(neighbour);
        }
        self.check_items(manager, &named)?;
        let change = self.plan(manager, |m| m.plan_move("move-items", id, place))?;
        self.carry_out(manager, change)
    }

    /// Changes a manager's settings. Returns the ids of the items evicted to fit the new capacity.
    ///
    /// # Errors
    /// [`ManagerError::PinnedExceedCapacity`].
    pub fn configure(
        &mut self,
        manager: &str,
        settings: ContextSettings,
    ) -> Result<Vec<u64>, EngineError> {
        let change = self.plan(manager, |m| m.plan_settings("configure-manager", settings))?;
        let evicted = change.leaving().map(|id| id.0).collect();
        self.carry_out(manager, change)?;
        Ok(evicted)
    }

    /// Returns a manager's settings.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn settings(&mut self, manager: &str) -> Result<ContextSettings, EngineError> {
        Ok(self.manager(manager)?.settings())
    }

    /// Returns the number of items in a manager, and their total tokens.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn size(&mut self, manager: &str) -> Result<(usize, u64), EngineError> {
        let held = self.manager(manager)?;
        Ok((held.len(), held.tokens()))
    }

    /// Returns the ids of a manager's items in their order: oldest first, unless items were moved.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn order(&mut self, manager: &str) -> Result<Vec<u64>, EngineError> {
        Ok(self.manager(manager)?.slots().map(|slot| slot.item.id.0).collect())
    }

    /// Returns one item of a manager.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`], which names the manager that holds the item, if any.
    pub fn view(&mut self, manager: &str, id: ItemId) -> Result<View, EngineError> {
        let slot = self.slot(manager, id)?;
        Ok(self.view_of(&manager.into(), &slot))
    }

    /// Returns an item like [`view`](Self::view), as the caller has it in an unsaved buffer. Marks it
    /// as stale if another editor has another text.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`].
    pub fn view_as_caller(&mut self, manager: &str, id: ItemId) -> Result<View, EngineError> {
        let (mut view, caller) = (self.view(manager, id)?, self.sessions.caller);
        let item = self.as_known(&view.item);
        view.show(Some(caller), item);
        Ok(view)
    }

    /// Lists every manager that holds items or has a capacity other than the default, sorted by
    /// name.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_managers(&mut self) -> Result<Vec<ListedContext>, EngineError> {
        let others = self.defaults.max_items;
        let default = |name: &str| place::capacity(name, others);
        let listed = self.store.read().managers()?.into_iter().map(|summary| {
            let max_items = summary.max_items.unwrap_or_else(|| default(&summary.name));
            ListedContext { summary, max_items }
        });
        let is_listed =
            |m: &ListedContext| m.summary.count > 0 || m.max_items != default(&m.summary.name);
        Ok(listed.filter(is_listed).collect())
    }

    /// Assigns ids, versions and times to new items.
    pub(super) fn arrivals(&mut self, items: Vec<NewItem>) -> Vec<Arrival> {
        let now = (self.clock)().div_euclid(1000);
        let timestamp = now.max(not_ahead(self.counters.last_timestamp, now));
        self.counters.last_timestamp = timestamp;
        items
            .into_iter()
            .map(|new| {
                let id = ItemId(self.counters.next_item);
                self.counters.next_item += 1;
                let version = self.counters.give_version();
                let pinned = new.pinned;
                Arrival { item: Arc::new(new.into_item(id, timestamp)), version, pinned }
            })
            .collect()
    }

    /// Plans a change. Errors name the manager.
    pub(super) fn plan(
        &mut self,
        manager: &str,
        plan: impl FnOnce(&Manager) -> Result<Change, ManagerError>,
    ) -> Result<Change, EngineError> {
        let named = |source| EngineError::Manager { manager: manager.to_owned(), source };
        plan(self.manager(manager)?).map_err(named)
    }

    pub(super) fn slot(&mut self, manager: &str, id: ItemId) -> Result<Slot, EngineError> {
        if let Some(slot) = self.manager(manager)?.slot(id) {
            return Ok(slot.clone());
        }
        let held_by = self.store.read().holder(id.0)?;
        Err(EngineError::NoSuchItem { id, manager: manager.to_owned(), held_by })
    }

    pub(super) fn check_items(&mut self, manager: &str, ids: &[ItemId]) -> Result<(), EngineError> {
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

impl ItemChanges {
    /// Returns whether the revision pins or unpins the item, and changes nothing else.
    pub fn is_only_pin(&self) -> bool {
        self.pinned.is_some() && *self == Self { pinned: self.pinned, ..Self::default() }
    }

    /// Returns whether the revision makes the item live or a copy, or changes nothing at all.
    pub fn is_only_live(&self) -> bool {
        *self == Self { live: self.live, ..Self::default() }
    }

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
