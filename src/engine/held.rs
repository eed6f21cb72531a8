//! Items whose texts connected editors have in unsaved buffers.

use std::collections::HashMap;

use super::reach::Caller;
use crate::context::item::Item;
use crate::ids::ItemId;

/// The connections that have items in unsaved buffers. Such an item does not follow its file.
#[derive(Default)]
pub(super) struct Held(HashMap<ItemId, Caller>);

impl Held {
    /// Records whether the caller has the text of this version of an item in an unsaved buffer.
    pub(super) fn note(&mut self, item: &Item, caller: Caller) {
        match caller {
            Caller::Connection(_) if item.live && item.is_unsaved() => {
                self.0.insert(item.id, caller);
            }
            _ => {
                self.0.remove(&item.id);
            }
        }
    }

    /// Forgets a connection that has ended.
    pub(super) fn forget(&mut self, caller: Caller) {
        self.0.retain(|_, holder| *holder != caller);
    }

    /// Returns whether a connected editor has the item's text in an unsaved buffer.
    pub(super) fn has(&self, item: &Item) -> bool {
        self.0.contains_key(&item.id) && item.is_unsaved()
    }
}
