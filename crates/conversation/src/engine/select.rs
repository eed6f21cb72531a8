//! Selects items from one or several managers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use super::held::{Holding, compared};
use super::reach::Caller;
use super::{Engine, EngineError};
use crate::context::change::Slot;
use crate::context::filter::{self, TypeName};
use crate::context::item::Item;
use crate::context::manager::Manager;
use crate::context::naming::Naming;
use crate::context::render::budget::Piece;
use crate::context::repeats::without_repeats;
use crate::ids::ItemId;

/// Selection of items from managers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Selection {
    /// Managers to select from, the most general first and the most specific last.
    pub managers: Vec<String>,
    /// Types and origins to include; all if empty.
    pub types: Vec<TypeName>,
    /// Ids of the items to include; `None` for all items.
    pub ids: Option<HashSet<ItemId>>,
    /// Files of the live items to include, also those that only an editor's unsaved version of an
    /// item has; `None` for all items, live or not.
    pub filenames: Option<HashSet<String>>,
    /// Maximum number of items; the most recent of those to include are kept.
    pub limit: Option<usize>,
}

impl Selection {
    /// Returns whether the ids and files include an item.
    fn has(&self, view: &View) -> bool {
        let is_live_of =
            |files: &HashSet<String>| view.item.live && view.names().any(|it| files.contains(it));
        self.ids.as_ref().is_none_or(|ids| ids.contains(&view.item.id))
            && self.filenames.as_ref().is_none_or(is_live_of)
    }
}

/// An item as its manager holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The item.
    pub item: Arc<Item>,
    /// True if the item is exempt from eviction.
    pub pinned: bool,
    /// Time in Unix seconds that orders items of several managers by age: the largest time of this
    /// item and of those before it in its manager, so that each manager keeps its own order. For an
    /// item that was read by its id, only its own time.
    pub since: i64,
    /// Name of the item's manager.
    pub manager: Arc<str>,
    /// Versions of the item in unsaved buffers of connected editors, the newest last.
    pub held: Vec<Holding>,
}

impl View {
    /// Returns whether the item has the text of an unsaved buffer of a connected editor.
    pub fn is_held(&self) -> bool {
        self.item.is_unsaved() && !self.held.is_empty()
    }

    /// Returns the names of the item's file, which differ if only one editor knows that it was
    /// renamed.
    fn names(&self) -> impl Iterator<Item = &str> {
        let items = self.held.iter().map(Holding::item).chain([&*self.item]);
        items.filter_map(|item| item.metadata.filename())
    }

    /// Returns the item as the caller has it: with the text of its own unsaved buffer, if it has
    /// such a buffer.
    pub fn of(&self, caller: Caller) -> Arc<Item> {
        let own = self.held.iter().find(|it| it.caller == caller);
        own.map_or_else(|| Arc::clone(&self.item), |own| Arc::new(own.version(&self.item)))
    }

    /// Returns the newest version in an unsaved buffer, with the connection that has it.
    pub fn newest(&self) -> Option<(Caller, Arc<Item>)> {
        self.held.last().map(|it| (it.caller, Arc::new(it.version(&self.item))))
    }

    /// Gives the view the text that is shown. Marks the item as stale if a connection other than
    /// `of` has another text in an unsaved buffer.
    pub fn show(&mut self, of: Option<Caller>, item: Arc<Item>) {
        self.item = compared(&self.held, of, item);
    }

    /// Returns the item as a piece to render.
    pub fn piece(&self) -> Piece<'_> {
        Piece { item: &self.item, pinned: self.pinned, since: self.since }
    }
}

/// Gives the items the names with which they are shown for these managers: see [`Naming`]. The items
/// must be up to date, since a renamed item is another value than that of its manager.
pub fn name_views<'v>(managers: &[String], views: impl IntoIterator<Item = &'v mut View>) {
    let mut views: Vec<&mut View> = views.into_iter().collect();
    let naming =
        Naming::of(managers.iter().map(String::as_str), views.iter().map(|view| &*view.item));
    for view in &mut views {
        if let Cow::Owned(item) = naming.item(&view.item) {
            view.item = Arc::new(item);
        }
    }
}

impl Engine {
    /// Returns the selected items, manager by manager, in each manager's order. If there are
    /// several managers, leaves out each item that a later item repeats.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn select(&mut self, selection: &Selection) -> Result<Vec<View>, EngineError> {
        let selected = self.select_by_manager(selection)?;
        Ok(selected.into_iter().map(|(_, view)| view).collect())
    }

    /// Applies the selection to each manager with live items, one by one, instead of to the
    /// managers that it names. Returns the live items among those selected.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn select_live(&mut self, selection: &Selection) -> Result<Vec<View>, EngineError> {
        let mut live = Vec::new();
        let mut one = Selection { limit: None, ..selection.clone() };
        for manager in self.store.read().managers_with_live()? {
            one.managers = vec![manager];
            let selected = self.select_by_manager(&one)?;
            live.extend(selected.into_iter().filter(|(_, view)| view.item.live));
        }
        Ok(newest(live, selection.limit).into_iter().map(|(_, view)| view).collect())
    }

    /// Returns the item in `slot`, with its own time as [`since`](View::since).
    pub(super) fn view_of(&self, manager: &Arc<str>, slot: &Slot) -> View {
        let Slot { item, pinned, .. } = slot;
        let (manager, held) = (Arc::clone(manager), self.held.of(item).to_vec());
        View { item: Arc::clone(item), pinned: *pinned, since: item.timestamp, manager, held }
    }

    /// Selects items like [`select`](Self::select), each with the position of its manager in the
    /// selection.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn select_by_manager(
        &mut self,
        selection: &Selection,
    ) -> Result<Vec<(usize, View)>, EngineError> {
        let mut all: Vec<(usize, View)> = Vec::new();
        for (position, name) in selection.managers.iter().enumerate() {
            let mut since = i64::MIN;
            let manager: Arc<str> = name.as_str().into();
            self.manager(name)?;
            for slot in self.managers.get(name).into_iter().flat_map(Manager::slots) {
                since = since.max(slot.item.timestamp);
                all.push((position, View { since, ..self.view_of(&manager, slot) }));
            }
        }
        if selection.managers.len() > 1 {
            all = without_repeats(all, |(_, view)| &view.item);
        }
        all.retain(|(_, view)| selection.has(view));
        let matching = filter::select(all, &selection.types, None, |(_, view)| &view.item);
        Ok(newest(matching, selection.limit))
    }
}

/// Returns the `limit` most recent items in their original order; all items without a limit.
fn newest(views: Vec<(usize, View)>, limit: Option<usize>) -> Vec<(usize, View)> {
    let mut by_age: Vec<usize> = (0..views.len()).collect();
    by_age.sort_by_key(|index| Reverse((views[*index].1.since, *index)));
    by_age.truncate(limit.unwrap_or(usize::MAX));
    by_age.sort_unstable();
    let mut kept = by_age.into_iter().peekable();
    let is_kept = |index: usize| kept.next_if_eq(&index).is_some();
    let is_kept: Vec<bool> = (0..views.len()).map(is_kept).collect();
    views.into_iter().zip(is_kept).filter(|(_, keep)| *keep).map(|(view, _)| view).collect()
}
