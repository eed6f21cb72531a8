//! Updates items from their files. The functions here read the disk, so call them on a thread that
//! may block.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Services, shown_version};
use crate::context::item::{ANCHOR, AS_OF, Item, STALE, UNSAVED};
use crate::engine::{Caller, ELSEWHERE, Following, View};
use crate::files::{self, FileReader, Followed, Found, ReadOptions, Refreshed};
use crate::ids::ItemId;
use crate::names::names;
use crate::tokens::Counter;
use crate::value::Value;

names! {
    /// The outcome of reading an item from its file again.
    #[cfg_attr(feature = "schema", schemars(rename = "RefreshOutcome"))]
    Outcome {
        /// The file has the same text in the same place, or the item has no file.
        Unchanged => "unchanged",
        /// The item has the new text.
        Updated => "updated",
        /// The text is at other lines of the file now, or the file of a live item was renamed.
        Moved => "moved",
        /// The place or the new content of the text is uncertain, so the item keeps its content.
        Stale => "stale",
        /// The file is gone, so the item keeps its content.
        Missing => "missing",
    }
}

/// The result of comparing an item with its file.
pub struct Reread {
    /// The item after the comparison. If its new content is uncertain or its file is gone, it keeps
    /// its content, and a live item is marked as stale.
    pub item: Arc<Item>,
    /// Outcome for the item.
    pub outcome: Outcome,
    /// Reason why the item is stale, if that is the outcome.
    pub reason: Option<&'static str>,
    /// The way in which the lines of a live item were found again, if its file had changed.
    pub found: Option<Found>,
}

/// Reason why a live item is stale: its file is gone.
pub const GONE: &str = "its file is gone";
/// Metadata name for the names that the file of an item had before.
const FORMER: &str = "former-names";
/// Maximum number of former names that are kept.
const FORMER_NAMES: usize = 8;
/// Reason why a live item is stale in one answer: an editor, which is told of the new name only now,
/// has unsaved text under it.
const RENAMED: &str = "its file was renamed, and an editor has unsaved edits under the new name";
/// Reason why a live item is stale: its text was never saved.
const NEVER_SAVED: &str = "its text was not saved";

/// Compares an item with its file, and reads the item again if the file has changed. A live item
/// becomes stale if its new content is uncertain; if its file was renamed, the item follows the new
/// name.
pub fn reread(
    counter: &dyn Counter,
    item: &Arc<Item>,
    options: &ReadOptions,
    reader: &mut FileReader,
) -> Reread {
    let refreshed = files::refresh(item, options, reader);
    if item.live && refreshed == Refreshed::Missing {
        let found = elsewhere(counter, item, options, reader);
        return found.unwrap_or_else(|| updated(counter, item, refreshed));
    }
    updated(counter, item, refreshed)
}

/// Looks for the text of an item whose file is gone in the files that may be the same under another
/// name.
fn elsewhere(
    counter: &dyn Counter,
    item: &Item,
    options: &ReadOptions,
    reader: &mut FileReader,
) -> Option<Reread> {
    let path = Path::new(item.metadata.filename()?);
    let former = former_names(item);
    reader.renamed(item, path, &former).into_iter().find_map(|(name, file)| {
        let mut renamed = item.clone();
        renamed.metadata.set("filename", files::path_value(&name));
        let mut names = former.clone();
        names.retain(|former| *former != name && former != path);
        names.push(path.to_owned());
        names.drain(..names.len().saturating_sub(FORMER_NAMES));
        let names = names.iter().map(|name| files::path_value(name)).collect();
        renamed.metadata.set(FORMER, Value::List(names));
        let found = match files::refresh_from((name, file), &renamed, options, reader) {
            // Another file may have got the name.
            Refreshed::Updated(text) if !files::is_version(&text.content, &item.content) => {
                return None;
            }
            found => found,
        };
        let is_found =
            matches!(found, Refreshed::Unchanged | Refreshed::Updated(_) | Refreshed::Followed(_));
        let moved = || updated(counter, &Arc::new(renamed), found);
        is_found.then(|| Reread { outcome: Outcome::Moved, ..moved() })
    })
}

/// Returns the names that the file of an item had before, the last one last.
fn former_names(item: &Item) -> Vec<PathBuf> {
    let Some(Value::List(names)) = item.metadata.get(FORMER) else { return Vec::new() };
    names.iter().filter_map(Value::as_text).map(PathBuf::from).collect()
}

fn updated(counter: &dyn Counter, item: &Arc<Item>, refreshed: Refreshed) -> Reread {
    let taken_ms = now_ms();
    let as_it_was = |outcome, reason: Option<&'static str>| Reread {
        item: marked(item, reason),
        outcome,
        reason,
        found: None,
    };
    let changed = |outcome, now| Reread { item: Arc::new(now), outcome, reason: None, found: None };
    match refreshed {
        Refreshed::Unchanged => as_it_was(Outcome::Unchanged, None),
        Refreshed::Missing => Reread { reason: None, ..as_it_was(Outcome::Missing, Some(GONE)) },
        Refreshed::Unsure(_) if was_never_saved(item) => {
            as_it_was(Outcome::Stale, Some(NEVER_SAVED))
        }
        Refreshed::Unsure(reason) => as_it_was(Outcome::Stale, Some(reason)),
        Refreshed::Moved { start_line, end_line } => {
            let mut moved = Item { taken_ms, ..fresh(item) };
            moved.metadata.set_lines(start_line, end_line);
            changed(Outcome::Moved, moved)
        }
        Refreshed::Updated(text) => {
            changed(Outcome::Updated, with_text(counter, fresh(item), text.content, taken_ms))
        }
        // If the file has the same text, saving makes no difference to the item.
        Refreshed::Followed(Followed { text: Some(_), .. }) if was_never_saved(item) => {
            as_it_was(Outcome::Stale, Some(NEVER_SAVED))
        }
        Refreshed::Followed(followed) => follow(counter, item, followed, taken_ms),
    }
}

/// Returns whether a live item has unsaved text from a buffer, and its file has not changed since
/// the text was taken.
fn was_never_saved(item: &Item) -> bool {
    item.live && item.is_unsaved() && !files::has_changed_since(item)
}

/// Updates a live item with the text that was found in its file.
fn follow(counter: &dyn Counter, item: &Arc<Item>, followed: Followed, taken_ms: i64) -> Reread {
    let Followed { text, lines, anchor, found } = followed;
    let is_elsewhere = item.metadata.lines() != Some(lines);
    let outcome = match (&text, is_elsewhere) {
        (Some(_), _) => Outcome::Updated,
        (None, true) => Outcome::Moved,
        (None, false) => Outcome::Unchanged,
    };
    let mut now = fresh(item);
    now.metadata.set_lines(lines.0, lines.1);
    now.metadata.set(ANCHOR, anchor.value());
    if let Some(text) = text {
        now = with_text(counter, now, text, taken_ms);
    } else if is_elsewhere {
        now.taken_ms = taken_ms;
    }
    Reread { item: kept(item, now), outcome, reason: None, found: Some(found) }
}

/// Returns the item without its mark as stale; a live item also loses its mark as unsaved.
fn fresh(item: &Item) -> Item {
    let mut fresh = item.clone();
    fresh.metadata.remove(STALE);
    if item.live {
        fresh.metadata.remove(UNSAVED);
    }
    fresh
}

/// Returns a live item marked as stale for `reason`, or made [`fresh`] if there is no reason.
/// Returns other items unchanged.
fn marked(item: &Arc<Item>, reason: Option<&str>) -> Arc<Item> {
    let now = match reason {
        _ if !item.live => return Arc::clone(item),
        None => fresh(item),
        Some(reason) => {
            let mut stale = Item::clone(item);
            stale.metadata.set_stale(reason);
            stale
        }
    };
    kept(item, now)
}

/// Returns the old version if the new version is equal to it, else the new one.
fn kept(old: &Arc<Item>, new: Item) -> Arc<Item> {
    if **old == new { Arc::clone(old) } else { Arc::new(new) }
}

fn with_text(counter: &dyn Counter, item: Item, text: String, taken_ms: i64) -> Item {
    let (tokens, counted_by) = (counter.count(&text), counter.name());
    Item { taken_ms, tokens, counted_by, content: text.into(), ..item }
}

/// Brings the live items up to date with their files, and stores the versions that differ, as one
/// change in each manager. Returns all items in their new state, even if the new versions cannot be
/// stored, for example because the disk is full.
///
/// Items whose files have not been touched since the last comparison are not compared again. An
/// item with the text of an unsaved buffer keeps that text while its editor is connected; each
/// editor sees the text of its own buffer. If an item was changed while its file was read, the item
/// keeps that change.
pub fn current(
    services: &Services,
    counter: &dyn Counter,
    caller: Caller,
    mut views: Vec<View>,
) -> Vec<View> {
    let found = look(services, counter, &views);
    let name = |item: &Item| item.metadata.filename().map(str::to_owned);
    let renamed: HashMap<ItemId, String> = found
        .iter()
        .filter(|(old, new)| name(old) != name(new))
        .filter_map(|(_, new)| Some((new.id, name(new)?)))
        .collect();
    if !found.is_empty() {
        keep(services, caller, found, &mut views);
    }
    show(services, counter, caller, &mut views);
    if !renamed.is_empty() {
        doubt(services, &renamed, &mut views);
    }
    views
}

/// Marks the views of items whose files have just got these names, if an editor has unsaved text of
/// such a file.
fn doubt(services: &Services, renamed: &HashMap<ItemId, String>, views: &mut [View]) {
    let Some(is_unsaved) = services.unsaved.get() else { return };
    let names: HashSet<&String> = renamed.values().collect();
    let edited: HashSet<&String> =
        names.into_iter().filter(|name| is_unsaved(Path::new(name))).collect();
    let is_edited = |view: &&mut View| {
        !view.is_held() && renamed.get(&view.item.id).is_some_and(|name| edited.contains(name))
    };
    for view in views.iter_mut().filter(is_edited) {
        view.item = marked(&view.item, Some(RENAMED));
    }
}

/// Stores the versions that were found, and gives them to the views.
fn keep(
    services: &Services,
    caller: Caller,
    found: Vec<(Arc<Item>, Arc<Item>)>,
    views: &mut [View],
) {
    let managers: HashMap<ItemId, Arc<str>> =
        views.iter().map(|view| (view.item.id, Arc::clone(&view.manager))).collect();
    let versions = found.clone();
    let stored = services.engine.ask_blocking_for(caller, move |engine| {
        engine.follow(
            versions.into_iter().map(|(old, new)| (managers[&old.id].to_string(), old, new)),
        )
    });
    let stored = stored.map(|Following { items, steps }| {
        shown_version::note(steps);
        items
    });
    let mut now: HashMap<ItemId, Arc<Item>> =
        found.into_iter().map(|(old, new)| (old.id, new)).collect();
    match stored {
        Ok(stored) => now.extend(stored.into_iter().map(|item| (item.id, item))),
        Err(error) => tracing::debug!("cannot store items that were brought up to date: {error}"),
    }
    for view in views {
        if let Some(item) = now.remove(&view.item.id) {
            view.item = item;
        }
    }
}

/// Gives the views of items in unsaved buffers the texts that the caller is shown. An editor is
/// shown its own text or that of the file. Anybody else is shown the newest text. An item of a file
/// on another machine gets a date if no editor has the file open, since nobody looks at that file.
fn show(services: &Services, counter: &dyn Counter, caller: Caller, views: &mut [View]) {
    let (options, mut reader) = (services.read_options(), FileReader::default());
    for view in views.iter_mut() {
        let item = &view.item;
        if !view.held.is_empty() || !item.live || !is_far(item) {
            continue;
        }
        if item.is_unsaved() && item.metadata.is_set("modified") {
            view.item = marked(item, Some(NEVER_SAVED));
        } else {
            let mut dated = Item::clone(item);
            dated.metadata.set(AS_OF, Value::Int(item.taken_ms.div_euclid(1000)));
            view.item = Arc::new(dated);
        }
    }
    for view in views.iter_mut().filter(|view| !view.held.is_empty()) {
        let has_own = view.held.iter().any(|it| it.caller == caller);
        let (of, item) = match view.newest().filter(|_| view.is_held()) {
            _ if has_own => (Some(caller), view.of(caller)),
            None => (None, Arc::clone(&view.item)),
            Some(_) if services.is_editor(caller) => {
                let mut saved = fresh(&view.item);
                saved.metadata.remove("modified");
                if is_far(&saved) {
                    // Only the other editor knows what was saved.
                    saved.metadata.set_stale(ELSEWHERE);
                    (None, Arc::new(saved))
                } else {
                    (None, reread(counter, &Arc::new(saved), &options, &mut reader).item)
                }
            }
            Some((of, item)) => (Some(of), item),
        };
        view.show(of, item);
    }
}

/// Returns whether the file of an item is not on this machine, so that only editors can read it.
fn is_far(item: &Item) -> bool {
    item.metadata.filename().is_some_and(|name| files::absolute(name).is_err())
}

/// Compares live items with their files. Returns the old and new version of each that differs.
fn look(services: &Services, counter: &dyn Counter, views: &[View]) -> Vec<(Arc<Item>, Arc<Item>)> {
    let mut live: Vec<&Arc<Item>> = views
        .iter()
        .filter(|view| view.item.live && !view.is_held())
        .map(|view| &view.item)
        .collect();
    // Each file is read once.
    live.sort_by_key(|item| item.metadata.filename());
    let (options, mut reader) = (services.read_options(), FileReader::default());
    let mut found = Vec::new();
    for item in live {
        let Some(stamp) = services.looks.unseen(item) else { continue };
        reader.inode = services.looks.inode(item);
        let now = reread(counter, item, &options, &mut reader).item;
        let is_same = Arc::ptr_eq(item, &now);
        services.looks.note(item, stamp, is_same);
        if !is_same {
            found.push((Arc::clone(item), now));
        }
    }
    found
}

/// Returns the current time in Unix milliseconds, for the time at which content is taken. Uses the
/// system clock and not the engine's, because the result is compared with the times of files.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests;
