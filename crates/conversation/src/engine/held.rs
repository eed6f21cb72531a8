//! Items whose texts connected editors have in unsaved buffers.

use std::collections::HashMap;
use std::sync::Arc;

use super::reach::Caller;
use crate::context::change::{Change, SlotChange};
use crate::context::item::{ANCHOR, Item, STALE, UNSAVED};
use crate::ids::ItemId;

/// The versions of items that connections have in unsaved buffers.
#[derive(Default)]
pub(super) struct UnsavedBuffers(HashMap<ItemId, Vec<Holding>>);

/// The version of an item in an unsaved buffer of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Holding {
    /// Connection of the editor with the buffer.
    pub caller: Caller,
    item: Arc<Item>,
}

/// Reason why an item is stale: an editor has another text of it in a buffer that is not saved.
pub const ELSEWHERE: &str = "another editor has other unsaved text";

/// Metadata names for what an editor says of its buffer; other metadata are the same for all.
const OF_BUFFER: [&str; 7] =
    ["filename", "start-line", "end-line", UNSAVED, "modified", STALE, ANCHOR];

impl UnsavedBuffers {
    /// Records whether the caller has the text of this version of an item in an unsaved buffer.
    /// Other connections keep their own versions. Returns whether a connection had the item in an
    /// unsaved buffer until now.
    pub(super) fn note(&mut self, item: &Item, caller: Caller) -> bool {
        let versions = self.0.entry(item.id).or_default();
        let count = versions.len();
        versions.retain(|it| it.caller != caller && item.live);
        let left = versions.len();
        if caller != Caller::Nobody && item.live && item.is_unsaved() {
            versions.push(Holding { caller, item: Arc::new(item.clone()) });
        }
        if versions.is_empty() {
            self.0.remove(&item.id);
            return count > 0;
        }
        left < count && versions.len() == left
    }

    /// Records a change by a caller that need not be an editor: if it leaves the text unsaved, the
    /// caller does not become a holder by it.
    pub(super) fn note_change(&mut self, old: &Item, new: &Item, caller: Caller) {
        let is_own = self.of(old).iter().any(|it| it.caller == caller);
        if is_own || !new.live || !(old.is_unsaved() && new.is_unsaved()) {
            self.note(new, caller);
        }
    }

    /// Lets no version stand for a text that `change` took back or brought back, since it was a
    /// version of the replaced text. An editor keeps a text that was not saved, and is told.
    pub(super) fn replace(&mut self, change: &Change) {
        for SlotChange { before, after } in &change.slots {
            if !change.is_following()
                && let (Some(before), Some(after)) = (before, after)
                && before.item.content != after.item.content
                && let Some(versions) = self.0.get_mut(&after.item.id)
            {
                versions.retain(|_| after.item.live && after.item.is_unsaved());
                versions.iter_mut().for_each(|it| it.item = Arc::clone(&after.item));
            }
        }
        self.0.retain(|_, versions| !versions.is_empty());
    }

    /// Forgets a connection that has ended. Returns the items that it had in unsaved buffers.
    pub(super) fn forget(&mut self, caller: Caller) -> Vec<ItemId> {
        let mut released = Vec::new();
        self.0.retain(|id, versions| {
            if versions.iter().any(|it| it.caller == caller) {
                released.push(*id);
            }
            versions.retain(|it| it.caller != caller);
            !versions.is_empty()
        });
        released
    }

    /// Returns the versions of an item in unsaved buffers, the newest last.
    pub(super) fn of(&self, item: &Item) -> &[Holding] {
        self.0.get(&item.id).map_or(&[], |versions| versions)
    }
}

impl Holding {
    /// Returns the item as its editor gave it.
    pub(super) fn item(&self) -> &Item {
        &self.item
    }

    /// Returns the item with the text and the place that it has in the buffer.
    pub fn version(&self, item: &Item) -> Item {
        let Item { content, tokens, counted_by, taken_ms, .. } = &*self.item;
        let (content, counted_by) = (Arc::clone(content), *counted_by);
        let mut version =
            Item { content, counted_by, tokens: *tokens, taken_ms: *taken_ms, ..item.clone() };
        for name in OF_BUFFER {
            match self.item.metadata.get(name) {
                Some(value) => version.metadata.set(name, value.clone()),
                None => version.metadata.remove(name),
            }
        }
        version
    }
}

/// Returns the text that a caller is shown for an item, marked as stale if another connection than
/// `of` has another text in an unsaved buffer.
pub(super) fn compared(held: &[Holding], of: Option<Caller>, item: Arc<Item>) -> Arc<Item> {
    let differs = |it: &Holding| Some(it.caller) != of && it.item.content != item.content;
    if item.stale().is_some() || !held.iter().any(differs) {
        return item;
    }
    let mut marked = Item::clone(&item);
    marked.metadata.set_stale(ELSEWHERE);
    Arc::new(marked)
}
