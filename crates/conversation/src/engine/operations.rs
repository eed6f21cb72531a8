//! The log of the operations on a manager: lists it, and goes to any of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pushes::PUSH_NEXT;
use super::{Engine, EngineError};
use crate::context::item::Item;
use crate::ids::ItemId;
use crate::store::{ITEMS_TOLD, ToldChange, Way};

/// An operation in the log of a manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Number of the operation; it holds until the manager changes.
    pub number: u64,
    /// Method that made the operation.
    pub method: String,
    /// Number of items that the operation adds, removes or alters.
    pub count: usize,
    /// The first of these items.
    pub items: Vec<Arc<Item>>,
    /// Name of the set that the operation saved or dropped, if it did.
    pub set: Option<String>,
    /// Whether the operation is the one that would be undone or redone next.
    pub next: Option<Way>,
}

impl Engine {
    /// Returns at most `most` of the operations that undo can take back in a manager, and as many of
    /// those that redo can make again, newest first. A wish to send an item with the next prompt is
    /// an operation, too.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn operations(&mut self, manager: &str, most: u64) -> Result<Vec<Operation>, EngineError> {
        let mut done = one_for_each_step(self.store.changes(manager, Way::Undo, most)?);
        if let Some(wish) = self.newest_wish(manager)? {
            let number = done.first().map_or(0, |newest| newest.number) + 1;
            let (method, items) =
                (PUSH_NEXT.to_owned(), vec![self.slot(manager, ItemId(wish.item))?.item]);
            done.insert(0, Operation { number, method, count: 1, items, set: None, next: None });
        }
        let mut number = done.first().map_or(0, |newest| newest.number);
        let mut undone = one_for_each_step(self.store.changes(manager, Way::Redo, most)?);
        for (operations, way) in [(&mut done, Way::Undo), (&mut undone, Way::Redo)] {
            operations.first_mut().into_iter().for_each(|next| next.next = Some(way));
        }
        for operation in &mut undone {
            number += 1;
            operation.number = number;
        }
        undone.reverse();
        undone.extend(done);
        Ok(undone)
    }

    /// Undoes or redoes operations until number `number` is the newest that is not undone; 0 undoes
    /// all that are kept. Returns the other managers that changed.
    ///
    /// # Errors
    /// [`EngineError::NoSuchOperation`], and those of [`undo`](Self::undo) and
    /// [`redo`](Self::redo).
    pub fn restore(&mut self, manager: &str, number: u64) -> Result<Vec<String>, EngineError> {
        let all = self.operations(manager, u64::MAX)?;
        let now = all.iter().position(|it| it.next == Some(Way::Undo)).unwrap_or(all.len());
        let wanted = match number {
            0 => Some(all.len()),
            _ => all.iter().position(|it| it.number == number),
        };
        let Some(wanted) = wanted else {
            let newest = all.first().map_or(0, |newest| newest.number);
            return Err(EngineError::NoSuchOperation { number, newest });
        };
        let mut also = BTreeSet::new();
        for _ in now..wanted {
            also.extend(self.undo(manager)?.also);
        }
        for _ in wanted..now {
            also.extend(self.redo(manager)?.also);
        }
        Ok(also.into_iter().collect())
    }
}

/// Makes one operation of the changes of each step. The first of them names the method.
fn one_for_each_step(changes: Vec<ToldChange>) -> Vec<Operation> {
    let mut operations: Vec<(u64, Operation)> = Vec::new();
    for ToldChange { number, step, method, count, items, set } in changes {
        match operations.last_mut().filter(|(of, _)| step != 0 && *of == step) {
            Some((_, operation)) => {
                operation.count += count;
                let room = ITEMS_TOLD.saturating_sub(operation.items.len());
                operation.items.extend(items.into_iter().take(room));
                operation.set = operation.set.take().or(set);
            }
            None => {
                let operation = Operation { number, method, count, items, set, next: None };
                operations.push((step, operation));
            }
        }
    }
    operations.into_iter().map(|(_, operation)| operation).collect()
}
