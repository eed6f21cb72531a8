//! Moves items from one manager to another, and undoes changes, those moves included.
//!
//! A move is two changes, one in the journal of each manager. Each names the other manager as its
//! partner. Undoing one change takes the other back too, so that an item is never in both managers
//! or in neither.

use serde::{Deserialize, Serialize};

use super::held::FOLLOW;
use super::{Added, Engine, EngineError};
use crate::context::change::{Change, Slot};
use crate::context::manager::{Arrival, ManagerError};
use crate::ids::ItemId;

/// Result of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Method whose change was undone.
    pub undone: String,
}

impl Engine {
    /// Moves items to another manager, where they become the newest. They keep their ids.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`]; [`ManagerError::CapacityFull`] if they do not fit there.
    pub fn transfer(
        &mut self,
        method: &str,
        from: &str,
        ids: &[ItemId],
        to: &str,
    ) -> Result<Added, EngineError> {
        self.check_items(from, ids)?;
        let mut leaving = self.plan(from, |manager| manager.plan_remove(method, ids))?;
        leaving.slots.sort_by_key(|change| change.before.as_ref().map(|slot| slot.rank));
        let moved: Vec<Slot> =
            leaving.slots.iter().filter_map(|change| change.before.clone()).collect();
        let arrivals = moved.iter().map(|slot| self.arrival(slot)).collect();
        let mut entering = self.plan(to, |manager| manager.plan_add(method, arrivals))?;
        let evicted = entering.leaving().map(|id| id.0).collect();
        leaving.partner = Some(to.to_owned());
        entering.partner = Some(from.to_owned());
        self.carry_out(from, leaving)?;
        self.carry_out(to, entering)?;
        Ok(Added { ids: moved.iter().map(|slot| slot.item.id.0).collect(), evicted })
    }

    /// Undoes the last change of a manager. Further calls go further back. That items followed their
    /// sources is no step of its own, since they would follow them again.
    ///
    /// # Errors
    /// [`EngineError::NothingToUndo`].
    pub fn undo(&mut self, manager: &str) -> Result<Undone, EngineError> {
        loop {
            let step = self.undo_newest(manager)?;
            if step.undone != FOLLOW {
                return Ok(step);
            }
        }
    }

    /// Undoes the newest change of a manager.
    fn undo_newest(&mut self, manager: &str) -> Result<Undone, EngineError> {
        let change = self
            .store
            .last_change(manager)?
            .ok_or_else(|| EngineError::NothingToUndo { manager: manager.to_owned() })?;
        if let Some(set) = &change.set
            && self.store.read().set_named(&set.name)? != set.after
        {
            return Err(EngineError::SetChanged { name: set.name.clone() });
        }
        let undone = change.method.clone();
        self.take_back(manager, change.clone())?;
        if let Some(partner) = change.partner.clone() {
            self.undo_there(&partner, &change, manager)?;
        }
        Ok(Undone { undone })
    }

    /// Takes the newest change of a manager back.
    fn take_back(&mut self, manager: &str, change: Change) -> Result<(), EngineError> {
        let undone = change.method.clone();
        let version = self.counters.give_version();
        let inverse = Change { version, ..change.inverse() };
        self.touched.push(manager.to_owned());
        self.manager(manager)?;
        self.store.take_back(manager, &inverse)?;
        self.apply(manager, &inverse, Some(&undone))
    }

    /// Undoes the part of a move in the manager `there`, after the part in the manager `here` was
    /// taken back: takes the change there back if it is the newest, else moves the items back with
    /// new changes.
    fn undo_there(&mut self, there: &str, taken: &Change, here: &str) -> Result<(), EngineError> {
        if let Some(last) = self.store.last_change(there)?
            && is_counterpart(&last, taken)
            && last.partner.as_deref() == Some(here)
        {
            return self.take_back(there, last);
        }
        let held = self.manager(there)?;
        let gone: Vec<ItemId> = taken.leaving().filter(|id| held.slot(*id).is_some()).collect();
        let returning: Vec<Slot> = taken.entering().cloned().collect();
        let room = held.settings().max_items.saturating_sub(held.len() - gone.len());
        if returning.len() > room {
            let pinned = held.slots().filter(|slot| slot.pinned).count();
            let capacity = held.settings().max_items;
            let source = ManagerError::CapacityFull { adding: returning.len(), capacity, pinned };
            return Err(EngineError::Manager { manager: there.to_owned(), source });
        }
        let partner = Some(here.to_owned());
        let change = self.plan(there, |manager| manager.plan_remove("undo", &gone))?;
        self.carry_out(there, Change { partner: partner.clone(), ..change })?;
        let arrivals = returning.iter().map(|slot| self.arrival(slot)).collect();
        let change = self.plan(there, |manager| manager.plan_add("undo", arrivals))?;
        self.carry_out(there, Change { partner, ..change })
    }

    /// Returns an item as it enters another manager, with a new version. No two managers share a
    /// version of an item, since each forgets the versions that its journal no longer needs.
    fn arrival(&mut self, slot: &Slot) -> Arrival {
        let (item, version) = (slot.item.clone(), self.counters.give_version());
        Arrival { item, version, pinned: slot.pinned }
    }
}

/// Returns whether the items that one change removes are those that the other one adds.
fn is_counterpart(one: &Change, other: &Change) -> bool {
    let meets = |source: &Change, target: &Change| {
        target.entering().next().is_some()
            && source.leaving().eq(target.entering().map(|slot| slot.item.id))
    };
    meets(one, other) || meets(other, one)
}
