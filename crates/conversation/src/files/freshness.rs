//! Checks whether items still match their files. Must not change an item.
//!
//! A file whose last change is older than the item is not read. This misses changes in two cases:
//! if a folder above the file was replaced by renaming or through a link, and if the clock of the
//! file system lags behind the server's.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::lines::{self, Cover};
use super::path::absolute;
use super::read::{is_gone, load};
use crate::context::item::{Item, Kind, Origin, State};
use crate::value::Value;

/// Maximum size of a compared file in bytes. An item from a larger file is stale once the file has
/// changed in any way. 64 MiB is also the default limit of a message, so no item is longer by
/// default.
pub(super) const MAX_COMPARED_BYTES: u64 = 64 << 20;

/// Tolerance, in milliseconds, when comparing a file's time with an item's. Linux stamps files with
/// the time of the last clock tick, which is up to 10 ms old (at 100 Hz); the tolerance is twice as
/// much.
const CLOCK_SLACK_MS: i64 = 20;

/// Compares each item with its file now, and returns the states in the order of the items. Each
/// file is checked once and read at most once, and only one file's text is in memory at a time.
///
/// Only items taken from a file (by their type and origin) with an absolute, local `filename` are
/// compared; all others are fresh. An item is missing when nothing is at its path. It is fresh when
/// its file has not changed since the item was taken, or when the file (or the lines that the
/// item's metadata names) still has the same text, apart from line ends and one final newline.
/// Otherwise, or when the file can no longer be read as text, the item is stale. With `partial`
/// true in its metadata (the region began or ended inside a line), the item need only be part of
/// those lines. A rectangle, which also has a `start-column`, is compared line by line in the same
/// way. A listing is fresh while its folder exists.
pub fn states(items: &[&Item]) -> Vec<State> {
    let mut states = vec![State::Fresh; items.len()];
    let mut by_file: HashMap<PathBuf, Vec<usize>> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if let Some(path) = file_of(item) {
            by_file.entry(path).or_default().push(at);
        }
    }
    for (path, places) in by_file {
        let look = Look::at(&path);
        let mut text = None;
        for at in places {
            states[at] = settled(items[at], look).unwrap_or_else(|| {
                let text = text.get_or_insert_with(|| load(&path, MAX_COMPARED_BYTES).ok());
                compared(items[at], text.as_deref())
            });
        }
    }
    states
}

/// Returns whether an item's file was changed after the item's text was taken, or maybe at the same
/// time. Also returns true if the file is gone, or if the item has no file.
pub fn has_changed_since(item: &Item) -> bool {
    let look = file_of(item).map(|path| settled(item, Look::at(&path)));
    look.flatten() != Some(State::Fresh)
}

/// Returns the local file that an item's text was taken from, if any. The content of a diagnostic,
/// for example, is only about a file.
pub(super) fn file_of(item: &Item) -> Option<PathBuf> {
    use Origin::{Buffer, Defun, File, Listing, Region, Symbol, Tree};
    let is_text_of_a_file = match item.metadata.origin() {
        Some(Region | Buffer | Defun | File | Tree | Listing | Symbol) => true,
        Some(_) => false,
        None => matches!(item.kind, Kind::Code | Kind::Text | Kind::File),
    };
    absolute(item.metadata.filename().filter(|_| is_text_of_a_file)?).ok()
}

/// The kind of thing at a path, determined without opening anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing is there.
    Gone,
    /// A folder.
    Folder,
    /// Anything else, last changed at this time in Unix milliseconds.
    Changed(i64),
    /// Unknown: asking the operating system failed.
    Unknown,
}

impl Look {
    pub(super) fn at(path: &Path) -> Self {
        match changed(path) {
            Err(error) if is_gone(&error) => Self::Gone,
            Err(_) => Self::Unknown,
            Ok(None) => Self::Folder,
            Ok(Some(at)) => Self::Changed(at),
        }
    }
}

/// Returns when the file, or the link that names it, last changed; `None` for a folder. The link
/// counts because it may now point to another, older file.
fn changed(path: &Path) -> io::Result<Option<i64>> {
    let named = path.symlink_metadata()?;
    let target = if named.is_symlink() { &path.metadata()? } else { &named };
    let at = changed_ms(&named).max(changed_ms(target));
    Ok((!target.is_dir()).then_some(at))
}

/// Returns the later of the times at which content and inode changed, in Unix milliseconds. Tools
/// like `cp -p` and `tar` set the time of the content back, but not the time of the inode.
pub(super) fn changed_ms(metadata: &Metadata) -> i64 {
    let ms =
        |seconds: i64, nanos: i64| seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000);
    ms(metadata.mtime(), metadata.mtime_nsec()).max(ms(metadata.ctime(), metadata.ctime_nsec()))
}

/// Returns an item's state if `look` alone decides it; `None` when the text must be compared.
pub(super) fn settled(item: &Item, look: Look) -> Option<State> {
    match look {
        Look::Gone => Some(State::Missing),
        Look::Folder if item.metadata.origin() == Some(Origin::Listing) => Some(State::Fresh),
        Look::Folder | Look::Unknown => Some(State::Stale),
        Look::Changed(at) if at.saturating_add(CLOCK_SLACK_MS) < item.taken_ms => {
            Some(State::Fresh)
        }
        Look::Changed(_) => None,
    }
}

/// Returns an item's state according to the file's text, which is `None` when the file cannot be
/// read.
fn compared(item: &Item, text: Option<&str>) -> State {
    let same = text.is_some_and(|text| match item.metadata.lines() {
        None => lines::same(text, &item.content),
        Some(range) => holds_at(item, text, range),
    });
    if same { State::Fresh } else { State::Stale }
}

/// Returns whether lines `start` to `end` of the text still have the item's content.
pub(super) fn holds_at(item: &Item, text: &str, (start, end): (u64, u64)) -> bool {
    let Some(part) = (start <= end).then(|| lines::slice(text, start, Some(end))).flatten() else {
        return false;
    };
    if lines::same(part, &item.content) {
        return true;
    }
    let (part, content) = (lines::unified(part), lines::unified(&item.content));
    if cover(item) != Cover::Anything || lines::count(&content) != lines::count(&part) {
        return false;
    }
    match item.metadata.get("start-column") {
        // The columns of a rectangle depend on the width of tabs, so its rows may be anywhere in
        // their lines.
        Some(_) => part.lines().zip(content.lines()).all(|(line, row)| line.contains(row)),
        None => part.contains(&*content),
    }
}

/// Returns the extent that a match of the item must cover. The metadata says whether a region began
/// or ended inside a line, since the text does not show this: `foo` may be a line, or a part of
/// `foobar`.
pub(super) fn cover(item: &Item) -> Cover {
    match item.metadata.get("partial") {
        Some(Value::Bool(true)) => Cover::Anything,
        _ => Cover::WholeLines,
    }
}

#[cfg(test)]
mod tests;
