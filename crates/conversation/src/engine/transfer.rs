//! Moves items from one manager to another.
//!
//! A move is two changes, one in the journal of each manager. Each change names the other manager
//! as its partner. Undoing or redoing one of the changes also undoes or redoes the other, so that
//! an item is never in both managers or in neither.

use super::{Added, Engine, EngineError};
use crate::context::change::Slot;
use crate::context::manager::Arrival;
use crate::ids::ItemId;

impl Engine {
    /// Moves items to another manager, where they become the newest. The items keep their ids.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`]; [`ManagerError::CapacityFull`](crate::context::manager::ManagerError::CapacityFull) if they do not fit there.
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

    /// Returns an item as it enters another manager, with a new version. No two managers share a
    /// version of an item, since each manager forgets the versions that its journal no longer
    /// needs.
    pub(super) fn arrival(&mut self, slot: &Slot) -> Arrival {
        let (item, version) = (slot.item.clone(), self.counters.give_version());
        Arrival { item, version, pinned: slot.pinned }
    }
}
