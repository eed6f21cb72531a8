//! Items brought up to date with their files. Reads the disk, so call it on a thread that may block.

use std::sync::Arc;

use crate::context::item::Item;
use crate::engine::View;
use crate::files::{self, ReadOptions, Refreshed};
use crate::tokens::Counter;
use crate::value::Value;

/// An item compared with its file.
pub struct Reread {
    /// The item as its file is now; as it was if that is not known.
    pub item: Arc<Item>,
    /// The outcome, by its name on the wire.
    pub outcome: &'static str,
    /// The reason why the outcome is not certain.
    pub reason: Option<&'static str>,
}

/// Compares an item with its file, and reads the item again if it changed.
pub fn reread(counter: &dyn Counter, item: &Arc<Item>, options: &ReadOptions) -> Reread {
    let taken_ms = now_ms();
    let found = |item, outcome, reason| Reread { item, outcome, reason };
    match files::refresh(item, options) {
        Refreshed::Unchanged => found(Arc::clone(item), "unchanged", None),
        Refreshed::Missing => found(Arc::clone(item), "missing", None),
        Refreshed::Unsure(reason) => found(Arc::clone(item), "stale", Some(reason)),
        Refreshed::Moved { start_line, end_line } => {
            let mut moved = Item { taken_ms, ..(**item).clone() };
            moved.metadata.set("start-line", Value::from(start_line));
            moved.metadata.set("end-line", Value::from(end_line));
            found(Arc::new(moved), "moved", None)
        }
        Refreshed::Updated(text) => {
            let updated = Item {
                taken_ms,
                tokens: counter.count(&text.content),
                counted_by: counter.name(),
                content: text.content.into(),
                ..(**item).clone()
            };
            found(Arc::new(updated), "updated", None)
        }
    }
}

/// Returns the items with the live ones read again. One whose file is gone, or whose place in it is
/// not certain, stays as it was.
pub fn current(counter: &dyn Counter, options: &ReadOptions, views: Vec<View>) -> Vec<View> {
    let read = |view: View| match view.item.live {
        true => View { item: reread(counter, &view.item, options).item, ..view },
        false => view,
    };
    views.into_iter().map(read).collect()
}

/// Returns the time at which content is taken, in Unix milliseconds. This is not the engine's clock,
/// as it is compared with the times of files.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
