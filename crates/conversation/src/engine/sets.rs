//! Named sets: saved copies of a manager's items.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Added, Engine, EngineError, NewItem};
use crate::context::change::{Change, SetChange, Slot};

/// Result of saving a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Number of items in the set.
    pub count: u64,
    /// True if a set with this name was replaced; `undo` restores that set.
    pub replaced: bool,
}

/// Result of loading a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// Ids of the new items, in the set's order.
    pub ids: Vec<u64>,
    /// Ids of the items that were replaced or evicted, oldest first.
    pub left: Vec<u64>,
}

impl Engine {
    /// Saves a manager's items as a named set, replacing a set with that name.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn save_set(&mut self, manager: &str, name: &str) -> Result<Saved, EngineError> {
        let slots: Vec<Slot> = self.manager(manager)?.slots().cloned().collect();
        let before = self.store.read().set_named(name)?;
        let created = self.now();
        let after = Some(self.store.change()?.write_set(created, &slots)?);
        self.name_set(manager, "save-set", SetChange { name: name.to_owned(), before, after })?;
        Ok(Saved { count: slots.len() as u64, replaced: before.is_some() })
    }

    /// Deletes a named set. `undo` in `manager` restores the set.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSet`].
    pub fn drop_set(&mut self, manager: &str, name: &str) -> Result<(), EngineError> {
        let before = Some(self.existing_set(name)?);
        self.name_set(manager, "drop-set", SetChange { name: name.to_owned(), before, after: None })
    }

    /// Replaces a manager's items with copies of a set's items.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSet`]; [`EngineError::Manager`] if the items do not fit.
    pub fn load_set(&mut self, manager: &str, name: &str) -> Result<Loaded, EngineError> {
        let items = self.set_items(name)?;
        let arrivals = self.arrivals(items);
        let ids = arrivals.iter().map(|arrival| arrival.item.id.0).collect();
        let change = self.plan(manager, |m| m.plan_replace("load-set", arrivals))?;
        let left = change.leaving().map(|id| id.0).collect();
        self.carry_out(manager, change)?;
        Ok(Loaded { ids, left })
    }

    /// Adds copies of a set's items after a manager's items.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSet`]; [`EngineError::Manager`] if the items do not fit.
    pub fn append_set(&mut self, manager: &str, name: &str) -> Result<Loaded, EngineError> {
        let items = self.set_items(name)?;
        let Added { ids, evicted } = self.add("load-set", manager, items)?;
        Ok(Loaded { ids, left: evicted })
    }

    fn name_set(&mut self, manager: &str, method: &str, set: SetChange) -> Result<(), EngineError> {
        let change = Change { set: Some(set), ..Change::by(method) };
        self.carry_out(manager, change)
    }

    fn set_items(&mut self, name: &str) -> Result<Vec<NewItem>, EngineError> {
        let set = self.existing_set(name)?;
        self.copies(set)
    }

    /// Copies a stored set's items as new items.
    pub(super) fn copies(&mut self, set: u64) -> Result<Vec<NewItem>, EngineError> {
        Ok(self.store.read().read_set(set)?.into_iter().map(copy).collect())
    }

    fn existing_set(&mut self, name: &str) -> Result<u64, EngineError> {
        if let Some(set) = self.store.read().set_named(name)? {
            return Ok(set);
        }
        let known = self.store.read().sets()?.into_iter().map(|set| set.name).collect();
        Err(EngineError::NoSuchSet { name: name.to_owned(), known })
    }
}

fn copy(slot: Slot) -> NewItem {
    let item = &slot.item;
    NewItem {
        kind: item.kind,
        content: Arc::clone(&item.content),
        metadata: item.metadata.clone(),
        taken_ms: item.taken_ms,
        tokens: item.tokens,
        counted_by: item.counted_by,
        live: item.live,
        pinned: slot.pinned,
    }
}
