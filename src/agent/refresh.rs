//! Updates items from their files. Reads the disk, so call it on a thread that may block.

use std::sync::Arc;

use crate::context::item::Item;
use crate::engine::View;
use crate::files::{self, ReadOptions, Refreshed};
use crate::names::names;
use crate::tokens::Counter;
use crate::value::Value;

names! {
    /// The outcome of reading an item from its file again.
    #[cfg_attr(feature = "server", schemars(rename = "RefreshOutcome"))]
    Outcome {
        /// The file has the same text in the same place.
        Unchanged => "unchanged",
        /// The item has the new text.
        Updated => "updated",
        /// The same text is at other lines of the file now.
        Moved => "moved",
        /// The place or the new content of the text is uncertain, so the item stays the same.
        Stale => "stale",
        /// The file is gone, so the item stays the same.
        Missing => "missing",
    }
}

/// The result of comparing an item with its file.
pub(crate) struct Reread {
    /// The updated item, or the old one if the file's state is uncertain.
    pub item: Arc<Item>,
    /// Outcome for the item.
    pub outcome: Outcome,
    /// Reason why the file's state is uncertain, if it is.
    pub reason: Option<&'static str>,
}

/// Compares an item with its file, and reads the item again if it changed.
pub(crate) fn reread(counter: &dyn Counter, item: &Arc<Item>, options: &ReadOptions) -> Reread {
    let taken_ms = now_ms();
    let found = |item, outcome, reason| Reread { item, outcome, reason };
    match files::refresh(item, options) {
        Refreshed::Unchanged => found(Arc::clone(item), Outcome::Unchanged, None),
        Refreshed::Missing => found(Arc::clone(item), Outcome::Missing, None),
        Refreshed::Unsure(reason) => found(Arc::clone(item), Outcome::Stale, Some(reason)),
        Refreshed::Moved { start_line, end_line } => {
            let mut moved = Item { taken_ms, ..(**item).clone() };
            moved.metadata.set("start-line", Value::from(start_line));
            moved.metadata.set("end-line", Value::from(end_line));
            found(Arc::new(moved), Outcome::Moved, None)
        }
        Refreshed::Updated(text) => {
            let updated = Item {
                taken_ms,
                tokens: counter.count(&text.content),
                counted_by: counter.name(),
                content: text.content.into(),
                ..(**item).clone()
            };
            found(Arc::new(updated), Outcome::Updated, None)
        }
    }
}

/// Returns the items, the live ones updated from their files. An item stays the same if its file is
/// gone or its place in the file is uncertain.
pub(crate) fn current(counter: &dyn Counter, options: &ReadOptions, views: Vec<View>) -> Vec<View> {
    let read = |view: View| match view.item.live {
        true => View { item: reread(counter, &view.item, options).item, ..view },
        false => view,
    };
    views.into_iter().map(read).collect()
}

/// Returns the present time in Unix milliseconds, for the time at which content is taken. Uses the
/// system clock and not the engine's, because the result is compared with the times of files.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
