//! Replaces live items with newer versions when their sources have changed, and merges a live item
//! that is added again with the existing one.

use std::collections::HashMap;
use std::sync::Arc;

use super::context::{Added, NewItem};
use super::{Engine, EngineError, Event};
use crate::context::change::{Change, Slot};
use crate::context::item::{ANCHOR, Item};
use crate::context::manager::Arrival;
use crate::context::repeat::{self, Merged, Repeat};
use crate::ids::ItemId;
use crate::tokens::Counter;

/// The overlap of an added live item with the items that the manager already had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// Relation of the added item to the existing items.
    pub repeat: Repeat,
    /// Ids of other existing items, which became part of the merged item.
    pub absorbed: Vec<ItemId>,
}

/// What [`Engine::follow`] did.
#[derive(Debug, Default)]
pub struct Following {
    /// The current versions of the items that are still in their managers.
    pub items: Vec<Arc<Item>>,
    /// The managers that changed.
    pub steps: Vec<VersionStep>,
}

/// A manager whose version changed.
#[derive(Debug)]
pub struct VersionStep {
    /// Name of the manager.
    pub manager: String,
    /// Its version before.
    pub before: u64,
    /// Its version now.
    pub after: u64,
}

impl Engine {
    /// Adds an item. A live item that repeats an existing one, whole or in part, is merged with the
    /// existing item, which becomes the newest; the overlap is then returned too. So is a copy that
    /// was taken again. `counter` counts the tokens of the merged text, and `anchor` gives it an
    /// anchor.
    ///
    /// # Errors
    /// Those of [`add`](Self::add).
    pub fn add_live(
        &mut self,
        method: &str,
        manager: &str,
        item: NewItem,
        counter: &dyn Counter,
        anchor: &mut dyn FnMut(&mut Item),
    ) -> Result<(Added, Option<Again>), EngineError> {
        let slots: Vec<Slot> = self.manager(manager)?.slots().cloned().collect();
        let known: Vec<_> = slots.iter().map(|slot| self.as_known(&slot.item)).collect();
        let known = known.iter().map(|item| &**item);
        let merged = match item.live {
            true => repeat::merged(known, &item.content, &item.metadata),
            false => repeat::copied_again(known, &item.content, &item.metadata),
        };
        // What another editor has not saved is neither replaced nor extended.
        let is_elsewhere =
            |id: &ItemId| slots.iter().any(|it| it.item.id == *id && self.is_elsewhere(&it.item));
        let merged = merged.filter(|merged| {
            let mut parts = merged.absorbed.iter().chain([&merged.into]);
            (merged.repeat == Repeat::Same && merged.absorbed.is_empty())
                || !parts.any(is_elsewhere)
        });
        let Some(Merged { into, absorbed, content, lines, repeat }) = merged else {
            return Ok((self.add(method, manager, vec![item])?, None));
        };
        let slot = self.slot(manager, into)?;
        if self.is_elsewhere(&slot.item) {
            return self.renew(method, manager, slot, absorbed, repeat);
        }
        let is_given = content == item.content;
        let tokens = if is_given { item.tokens } else { counter.count(&content) };
        let counted_by = counter.name();
        let mut metadata = item.metadata;
        if let Some((start, end)) = lines {
            metadata.set_lines(start, end);
        }
        if item.live && lines == slot.item.metadata.lines() {
            metadata.complete(&slot.item.metadata);
        }
        let taken_ms = item.taken_ms;
        let mut new =
            Item { content, metadata, tokens, counted_by, taken_ms, ..Item::clone(&slot.item) };
        if !is_given {
            new.metadata.remove(ANCHOR);
            anchor(&mut new);
        }
        self.held.note(&new, self.sessions.caller);
        let pinned = slot.pinned || item.pinned;
        self.renew(method, manager, Slot { item: Arc::new(new), pinned, ..slot }, absorbed, repeat)
    }

    /// Makes an item that was added again the newest.
    fn renew(
        &mut self,
        method: &str,
        manager: &str,
        Slot { item, pinned, .. }: Slot,
        absorbed: Vec<ItemId>,
        repeat: Repeat,
    ) -> Result<(Added, Option<Again>), EngineError> {
        let added = Added { ids: vec![item.id.0], evicted: Vec::new() };
        let arrival = Arrival { item, version: self.counters.give_version(), pinned };
        let change = self.plan(manager, |held| held.plan_renew(method, arrival, &absorbed))?;
        self.carry_out(manager, change)?;
        Ok((added, Some(Again { repeat, absorbed })))
    }

    /// Returns an item as the caller has it: if only others have it in unsaved buffers, its text and
    /// lines there mean nothing to the caller.
    pub(super) fn as_known(&self, item: &Arc<Item>) -> Arc<Item> {
        let (held, caller) = (self.held.of(item), self.sessions.caller);
        match held.iter().find(|it| it.caller == caller) {
            Some(own) => Arc::new(own.version(item)),
            None if !held.is_empty() && item.is_unsaved() => Arc::new(item.as_marked()),
            None => Arc::clone(item),
        }
    }

    /// Returns whether only others have an item in unsaved buffers.
    fn is_elsewhere(&self, item: &Item) -> bool {
        let (held, caller) = (self.held.of(item), self.sessions.caller);
        item.is_unsaved() && !held.is_empty() && held.iter().all(|it| it.caller != caller)
    }

    /// Returns the names of the files of a manager's live items, other than `name`, whose last parts
    /// are that of `name`.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn files_named_like(
        &mut self,
        manager: &str,
        name: &str,
    ) -> Result<Vec<String>, EngineError> {
        let last = |name: &str| name.rsplit('/').next().map(str::to_owned);
        let items = self.manager(manager)?.slots().map(|slot| &slot.item);
        let names = items.filter(|item| item.live).filter_map(|item| item.metadata.filename());
        let alike = names.filter(|other| *other != name && last(other) == last(name));
        let mut alike: Vec<String> = alike.map(str::to_owned).collect();
        alike.sort_unstable();
        alike.dedup();
        Ok(alike)
    }

    /// Marks new items of files as live and returns them, except those that repeat or overlap live
    /// items of the manager. Also returns the ids of these live items.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn without_live(
        &mut self,
        manager: &str,
        items: Vec<NewItem>,
    ) -> Result<(Vec<NewItem>, Vec<ItemId>), EngineError> {
        let held: Vec<Arc<Item>> =
            self.manager(manager)?.slots().map(|slot| Arc::clone(&slot.item)).collect();
        let (mut new, mut there) = (Vec::new(), Vec::new());
        for item in items {
            match repeat::merged(held.iter().map(|it| &**it), &item.content, &item.metadata) {
                Some(merged) => there.push(merged.into),
                None => new.push(NewItem { live: true, ..item }),
            }
        }
        Ok((new, there))
    }

    /// Records that the caller has an item's text in an unsaved buffer, or no longer has it there.
    pub fn hold(&mut self, item: &Item) {
        let caller = self.sessions.caller;
        if self.held.note(item, caller) {
            self.tell_released(&[item.id], caller);
        }
    }

    /// Asks editors, with an event, for text that they have not saved: the text of the file at
    /// `path`, or, without a path, only the changed text of live items.
    pub fn want_text(&mut self, question: u64, path: Option<String>) {
        self.events.push(Event::TextWanted { question, path });
    }

    /// Replaces items, each in its manager, with newer versions that have the current text of their
    /// sources. An item that was changed meanwhile stays as it is.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn follow(
        &mut self,
        versions: impl IntoIterator<Item = (String, Arc<Item>, Arc<Item>)>,
    ) -> Result<Following, EngineError> {
        let mut by_manager: HashMap<String, Vec<Arrival>> = HashMap::new();
        let mut now = Following::default();
        for (manager, old, new) in versions {
            let Some(slot) = self.manager(&manager)?.slot(old.id).cloned() else { continue };
            if slot.item != old {
                now.items.push(slot.item);
                continue;
            }
            now.items.push(Arc::clone(&new));
            let arrival =
                Arrival { item: new, version: self.counters.give_version(), pinned: slot.pinned };
            by_manager.entry(manager).or_default().push(arrival);
        }
        for (manager, arrivals) in by_manager {
            let before = self.manager(&manager)?.version();
            let change = self.plan(&manager, |held| held.plan_update(Change::FOLLOW, arrivals))?;
            self.carry_out(&manager, change)?;
            let after = self.manager(&manager)?.version();
            now.steps.push(VersionStep { manager, before, after });
        }
        Ok(now)
    }
}
