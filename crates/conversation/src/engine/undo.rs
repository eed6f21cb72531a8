//! Undoes changes to managers, and redoes them.
//!
//! All changes of one request are one step, in all managers, and are undone and redone together. An
//! undone change is kept with its manager until another change is made there. A change in which
//! items only follow their sources does not count: a redo adapts to the new texts of the items.

use serde::{Deserialize, Serialize};

use super::pushes::PUSH_NEXT;
use super::{Engine, EngineError};
use crate::context::change::{Change, Slot, SlotChange};
use crate::context::manager::{Manager, ManagerError};
use crate::ids::ItemId;
use crate::store::{ToldChange, Way};

/// Result of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Method whose change was undone.
    pub undone: String,
    /// Other managers in which changes of the same request were undone.
    pub also: Vec<String>,
}

/// Result of a redo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redone {
    /// Method whose change was redone.
    pub redone: String,
    /// Other managers in which changes of the same request were redone.
    pub also: Vec<String>,
}

impl Engine {
    /// Undoes the last step of a manager: all that one request changed there, and elsewhere as far
    /// as nothing was changed there since. Further calls go further back. A change in which items
    /// only followed their sources is not a step of its own, since the items would follow their
    /// sources again. If the newest step is a wish to send an item with a prompt, cancels that
    /// wish.
    ///
    /// # Errors
    /// [`EngineError::NothingToUndo`]; [`EngineError::NoSuchItem`] if an item that was moved to
    /// another manager is no longer there; [`EngineError::Manager`] if moved items do not fit into
    /// their old manager; [`EngineError::SetChanged`].
    pub fn undo(&mut self, manager: &str) -> Result<Undone, EngineError> {
        if let Some(wish) = self.newest_wish(manager)? {
            self.cancel_push(wish.number)?;
            return Ok(Undone { undone: PUSH_NEXT.to_owned(), also: Vec::new() });
        }
        let Some(ToldChange { method, step, .. }) = self.next_change(manager, Way::Undo)? else {
            return Err(EngineError::NothingToUndo(manager.to_owned()));
        };
        self.undo_step(manager, step)?;
        let also = self.each_of_step(manager, step, Way::Undo, Self::undo_step)?;
        Ok(Undone { undone: method, also })
    }

    /// Undoes the newest changes to a manager that are of `step`; only one if that is 0.
    fn undo_step(&mut self, manager: &str, step: u64) -> Result<(), EngineError> {
        loop {
            if self.undo_newest(manager)?.is_following() {
                continue;
            }
            if step == 0 || !self.is_next(manager, step, Way::Undo)? {
                return Ok(());
            }
        }
    }

    /// Makes the changes of the running request part of a step that an earlier request began; 0
    /// stands for a new step.
    pub fn join_step(&mut self, step: u64) {
        self.step = step;
    }

    /// Returns whether the change that would be undone or redone next is of `step`.
    fn is_next(&mut self, manager: &str, step: u64, way: Way) -> Result<bool, EngineError> {
        Ok(self.next_change(manager, way)?.is_some_and(|change| change.step == step))
    }

    fn next_change(&mut self, manager: &str, way: Way) -> Result<Option<ToldChange>, EngineError> {
        Ok(self.store.changes(manager, way, 1)?.pop())
    }

    /// Carries out `operation` for the managers, other than `manager`, in which a change of `step`
    /// is next. Returns their names.
    fn each_of_step(
        &mut self,
        manager: &str,
        step: u64,
        way: Way,
        operation: impl Fn(&mut Self, &str, u64) -> Result<(), EngineError>,
    ) -> Result<Vec<String>, EngineError> {
        let mut others = match step {
            0 => Vec::new(),
            _ => self.store.managers_of_step(step, way)?,
        };
        others.retain(|other| other != manager);
        let mut done = Vec::new();
        for other in others {
            if self.is_next(&other, step, way)? {
                operation(self, &other, step)?;
                done.push(other);
            }
        }
        Ok(done)
    }

    /// Undoes the newest change to a manager, and returns it. If items were moved, also undoes the
    /// change to the other manager.
    fn undo_newest(&mut self, manager: &str) -> Result<Change, EngineError> {
        let nothing = || EngineError::NothingToUndo(manager.to_owned());
        let change = self.store.last_change(manager, Way::Undo)?.ok_or_else(nothing)?;
        if let Some(set) = &change.set
            && self.store.read().set_named(&set.name)? != set.after
        {
            return Err(EngineError::SetChanged(set.name.clone()));
        }
        if let Some(partner) = &change.partner {
            self.check_items(partner, &moved_out(&change))?;
        }
        self.take_back(manager, change.clone())?;
        if let Some(partner) = &change.partner {
            self.undo_there(partner, &change, manager)?;
        }
        Ok(change)
    }

    /// Undoes the newest change to a manager, and nothing elsewhere.
    fn take_back(&mut self, manager: &str, change: Change) -> Result<(), EngineError> {
        let version = self.counters.give_version();
        let inverse = Change { version, ..change.inverse() };
        self.touched.push(manager.to_owned());
        self.manager(manager)?;
        self.store.take_back(manager, &inverse)?;
        self.held.replace(&inverse);
        self.apply(manager, &inverse, Some(Way::Undo))
    }

    /// Undoes the part of a move in the manager `there`, after the part in the manager `here` was
    /// undone. If the change in `there` is the newest one, undoes it; otherwise moves the items
    /// back with new changes.
    fn undo_there(&mut self, there: &str, taken: &Change, here: &str) -> Result<(), EngineError> {
        if let Some(last) = self.store.last_change(there, Way::Undo)?
            && is_counterpart(&last, taken)
            && last.partner.as_deref() == Some(here)
        {
            return self.take_back(there, last);
        }
        let change = self.plan(there, |manager| manager.plan_remove("undo", &moved_out(taken)))?;
        self.carry_out(there, Change { partner: Some(here.to_owned()), ..change })?;
        self.bring(there, "undo", taken.entering(), here)
    }

    /// Redoes the step of a manager that was undone last, and what was undone elsewhere with it.
    /// Each further call redoes the step that was undone before that one.
    ///
    /// # Errors
    /// [`EngineError::NothingToRedo`] if nothing was undone, or another change has been made since;
    /// [`EngineError::NoSuchItem`] or [`EngineError::Manager`] if moved items are gone or do not
    /// fit; [`EngineError::SetChanged`].
    pub fn redo(&mut self, manager: &str) -> Result<Redone, EngineError> {
        let Some(ToldChange { method, step, .. }) = self.next_change(manager, Way::Redo)? else {
            return Err(EngineError::NothingToRedo(manager.to_owned()));
        };
        self.redo_step(manager, step)?;
        let also = self.each_of_step(manager, step, Way::Redo, Self::redo_step)?;
        Ok(Redone { redone: method, also })
    }

    /// Redoes the changes to a manager that were undone last and are of `step`; only one if that
    /// is 0.
    fn redo_step(&mut self, manager: &str, step: u64) -> Result<(), EngineError> {
        loop {
            let nothing = || EngineError::NothingToRedo(manager.to_owned());
            let change = self.store.last_change(manager, Way::Redo)?.ok_or_else(nothing)?;
            self.redo_last(manager, &change)?;
            if change.is_following() {
                continue;
            }
            if step == 0 || !self.is_next(manager, step, Way::Redo)? {
                break;
            }
        }
        // Items that had followed their sources after this change do so again.
        while let Some(change) = self.store.last_change(manager, Way::Redo)?
            && change.is_following()
        {
            self.redo_last(manager, &change)?;
        }
        Ok(())
    }

    /// Runs an operation, undoes its changes, and returns its result.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn rehearse<T>(
        &mut self,
        operation: impl FnOnce(&mut Self) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut done = None;
        let failed = self.part(|engine| {
            done = Some(operation(engine)?);
            // Any error undoes the changes.
            Err(EngineError::Cancelled)
        });
        done.map_or(failed, Ok)
    }

    /// Redoes `change`, which is the change that was undone last.
    fn redo_last(&mut self, manager: &str, change: &Change) -> Result<(), EngineError> {
        if let Some(set) = &change.set
            && self.store.read().set_named(&set.name)? != set.before
        {
            return Err(EngineError::SetChanged(set.name.clone()));
        }
        self.redo_here(manager, change)?;
        match &change.partner {
            Some(partner) => self.redo_there(partner, change, manager),
            None => Ok(()),
        }
    }

    /// Redoes a change in its manager only.
    fn redo_here(&mut self, manager: &str, change: &Change) -> Result<(), EngineError> {
        let mut change = adapted(change, self.manager(manager)?);
        if !change.is_empty() {
            change.version = self.counters.give_version();
        }
        self.touched.push(manager.to_owned());
        self.store.redo(manager, &change)?;
        self.held.replace(&change);
        match change.is_empty() {
            true => Ok(()),
            false => self.apply(manager, &change, Some(Way::Redo)),
        }
    }

    /// Redoes the part of a move in the manager `there`, after the part in the manager `here` was
    /// redone. If the change in `there` was undone last, redoes it; otherwise moves the items with
    /// a new change.
    fn redo_there(&mut self, there: &str, redone: &Change, here: &str) -> Result<(), EngineError> {
        if let Some(last) = self.store.last_change(there, Way::Redo)?
            && is_counterpart(&last, redone)
            && last.partner.as_deref() == Some(here)
        {
            return self.redo_here(there, &last);
        }
        let came: Vec<ItemId> = redone.entering().map(|slot| slot.item.id).collect();
        if came.is_empty() {
            let left = redone.slots.iter().filter_map(|slot| slot.before.as_ref());
            return self.bring(there, "redo", left, here);
        }
        self.check_items(there, &came)?;
        let change = self.plan(there, |manager| manager.plan_remove("redo", &came))?;
        self.carry_out(there, Change { partner: Some(here.to_owned()), ..change })
    }

    /// Adds to the manager `there` the items that left the manager `here`. They must all fit.
    fn bring<'a>(
        &mut self,
        there: &str,
        method: &str,
        slots: impl Iterator<Item = &'a Slot>,
        here: &str,
    ) -> Result<(), EngineError> {
        let arrivals: Vec<_> = slots.map(|slot| self.arrival(slot)).collect();
        let held = self.manager(there)?;
        if arrivals.len() > held.settings().max_items.saturating_sub(held.len()) {
            let pinned = held.slots().filter(|slot| slot.pinned).count();
            let capacity = held.settings().max_items;
            let source = ManagerError::CapacityFull { adding: arrivals.len(), capacity, pinned };
            return Err(EngineError::Manager { manager: there.to_owned(), source });
        }
        let change = self.plan(there, |manager| manager.plan_add(method, arrivals))?;
        self.carry_out(there, Change { partner: Some(here.to_owned()), ..change })
    }
}

/// Adapts an undone change to the items of its manager, which may have followed their sources
/// since. Where the change replaced no text, an item keeps its current text. If the change only
/// followed sources, items that have changed since are left out.
fn adapted(change: &Change, manager: &Manager) -> Change {
    let slot = |SlotChange { before, after }: &SlotChange| {
        let id = before.as_ref().or(after.as_ref())?.item.id;
        let now = manager.slot(id).cloned();
        if change.is_following() && now != *before {
            return None;
        }
        let version = |slot: &Option<Slot>| slot.as_ref().map(|slot| slot.version);
        let after = match (&now, after) {
            (Some(now), Some(after)) if version(before) == Some(after.version) => {
                Some(Slot { rank: after.rank, pinned: after.pinned, ..now.clone() })
            }
            _ => after.clone(),
        };
        Some(SlotChange { before: now, after })
    };
    Change { slots: change.slots.iter().filter_map(slot).collect(), ..change.clone() }
}

/// Returns the items that one side of a move gave to the other. Leaves out items that the receiving
/// side evicted, since these moved nowhere.
fn moved_out(change: &Change) -> Vec<ItemId> {
    match change.entering().next() {
        Some(_) => Vec::new(),
        None => change.leaving().collect(),
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

#[cfg(test)]
mod tests;
