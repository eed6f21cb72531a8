//! The log: an append-only file in which each burst is one line, appended in one write. A burst
//! consists of the requests of one commit.
//!
//! Each line is a hash, a space and JSON. Lines that are torn or do not match their hash are
//! skipped. Bursts are numbered, so a reader knows which ones are missing.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Counters, StoreError, counter_name, metadata};
use crate::context::change::{Change, Settings, Slot, SlotChange};
use crate::context::item::{Item, ItemId, Kind};

/// Number of hexadecimal digits of the hash that begins a line.
const HASH_DIGITS: usize = 16;

/// A logged write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// A change to the manager with this name. Changes to sets, and moves of items to another
    /// manager, are never logged.
    Record(String, Change),
    /// The key and the outcome of a request.
    Remember(String, String),
}

/// The log file, open for appending.
pub(super) struct Log {
    file: File,
    path: PathBuf,
    bytes: u64,
    /// Set when a partial line could not be removed; the next append removes it first.
    torn: bool,
}

/// Contents of a log.
#[derive(Default)]
pub(super) struct Found {
    /// Readable bursts, in file order.
    pub(super) bursts: Vec<Burst>,
    /// Number of lines that cannot be read, not counting a torn last line.
    pub(super) unreadable: usize,
}

/// A burst read from the log.
#[derive(Debug, PartialEq)]
pub(super) struct Burst {
    pub(super) counters: Counters,
    pub(super) entries: Vec<Entry>,
}

impl Log {
    /// Opens the log, creating it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path);
        let file = file.map_err(log_error(path))?;
        let bytes = file.metadata().map_err(log_error(path))?.len();
        Ok(Self { file, path: path.to_owned(), bytes, torn: false })
    }

    /// Fails if the file has been removed: anything appended to it would be lost.
    pub(super) fn refuse_removed(&self) -> Result<(), StoreError> {
        match self.file.metadata() {
            Ok(status) if status.nlink() == 0 => Err(StoreError::Removed(self.path.clone())),
            _ => Ok(()),
        }
    }

    /// Appends a burst. On failure, the file is cut back to its old length.
    pub(super) fn append(
        &mut self,
        counters: Counters,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        self.refuse_removed()?;
        let line = write_line(counters, entries)?;
        if self.torn {
            self.file.set_len(self.bytes).map_err(log_error(&self.path))?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(&line) {
            self.torn = self.file.set_len(self.bytes).is_err();
            return Err(log_error(&self.path)(error));
        }
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Empties the log. The database must have all of its bursts.
    pub(super) fn clear(&mut self) -> Result<(), StoreError> {
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        cleared.map_err(log_error(&self.path))?;
        self.bytes = 0;
        self.torn = false;
        Ok(())
    }

    /// Returns the file's length in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads a log; a missing file counts as empty.
pub(super) fn read(path: &Path) -> Result<Found, StoreError> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::default()),
        read => read.map_err(log_error(path))?,
    };
    let mut found = Found::default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match read_line(line) {
            Some(burst) => found.bursts.push(burst),
            None => found.unreadable += usize::from(line.ends_with(b"\n")),
        }
    }
    Ok(found)
}

fn log_error(path: &Path) -> impl Fn(std::io::Error) -> StoreError {
    move |error| StoreError::Log { path: path.to_owned(), cause: error.to_string() }
}

#[derive(Serialize, Deserialize)]
struct BurstLine<'a> {
    burst: u64,
    next_item: u64,
    next_version: u64,
    last_timestamp: i64,
    #[serde(borrow)]
    entries: Vec<EntryLine<'a>>,
}

#[derive(Serialize, Deserialize)]
enum EntryLine<'a> {
    #[serde(rename = "change")]
    Record {
        manager: Cow<'a, str>,
        method: Cow<'a, str>,
        #[serde(borrow)]
        slots: Vec<(Option<SlotLine<'a>>, Option<SlotLine<'a>>)>,
        max_items: Option<(usize, usize)>,
        /// Version of the manager after the change; 0 in logs of earlier releases.
        #[serde(default)]
        version: u64,
        step: u64,
    },
    #[serde(rename = "answer")]
    Remember { key: Cow<'a, str>, outcome: Cow<'a, str> },
}

#[derive(Serialize, Deserialize)]
struct SlotLine<'a> {
    item: u64,
    version: u64,
    rank: i64,
    pinned: bool,
    /// The item itself, if this change introduces this version.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    new: Option<ItemLine<'a>>,
}

#[derive(Serialize, Deserialize)]
struct ItemLine<'a> {
    kind: Kind,
    content: Cow<'a, str>,
    metadata: Cow<'a, str>,
    timestamp: i64,
    taken_ms: i64,
    tokens: u64,
    counted_by: Cow<'a, str>,
    live: bool,
}

fn write_line(counters: Counters, entries: &[Entry]) -> serde_json::Result<Vec<u8>> {
    let burst = BurstLine {
        burst: counters.burst,
        next_item: counters.next_item,
        next_version: counters.next_version,
        last_timestamp: counters.last_timestamp,
        entries: entries.iter().map(entry_line).collect(),
    };
    let mut line = vec![b' '; HASH_DIGITS + 1];
    serde_json::to_writer(&mut line, &burst)?;
    let hash = blake3::hash(&line[HASH_DIGITS + 1..]).to_hex();
    line[..HASH_DIGITS].copy_from_slice(&hash.as_bytes()[..HASH_DIGITS]);
    line.push(b'\n');
    Ok(line)
}

fn entry_line(entry: &Entry) -> EntryLine<'_> {
    match entry {
        Entry::Remember(key, outcome) => {
            EntryLine::Remember { key: key.as_str().into(), outcome: outcome.as_str().into() }
        }
        Entry::Record(manager, change) => EntryLine::Record {
            manager: manager.as_str().into(),
            method: change.method.as_str().into(),
            slots: change.slots.iter().map(slot_lines).collect(),
            max_items: change.settings.map(|(before, after)| (before.max_items, after.max_items)),
            version: change.version,
            step: change.step,
        },
    }
}

fn slot_lines(change: &SlotChange) -> (Option<SlotLine<'_>>, Option<SlotLine<'_>>) {
    let known = change.before.as_ref().map(|slot| slot.version);
    let after = change.after.as_ref().map(|slot| slot_line(slot, known != Some(slot.version)));
    (change.before.as_ref().map(|slot| slot_line(slot, false)), after)
}

fn slot_line(slot: &Slot, is_new: bool) -> SlotLine<'_> {
    let Slot { rank, pinned, version, item } = slot;
    let new = is_new.then(|| ItemLine {
        kind: item.kind,
        content: (&*item.content).into(),
        metadata: metadata::print(&item.metadata).into(),
        timestamp: item.timestamp,
        taken_ms: item.taken_ms,
        tokens: item.tokens,
        counted_by: item.counted_by.into(),
        live: item.live,
    });
    SlotLine { item: item.id.0, version: *version, rank: *rank, pinned: *pinned, new }
}

fn read_line(line: &[u8]) -> Option<Burst> {
    let line = line.strip_suffix(b"\n")?;
    let (hash, json) = line.split_at_checked(HASH_DIGITS)?;
    let json = json.strip_prefix(b" ")?;
    if blake3::hash(json).to_hex().as_bytes()[..HASH_DIGITS] != *hash {
        return None;
    }
    let burst: BurstLine<'_> = serde_json::from_slice(json).ok()?;
    Some(Burst {
        counters: Counters {
            next_item: burst.next_item,
            next_version: burst.next_version,
            last_timestamp: burst.last_timestamp,
            burst: burst.burst,
        },
        entries: burst.entries.into_iter().map(entry).collect::<Option<_>>()?,
    })
}

fn entry(line: EntryLine<'_>) -> Option<Entry> {
    Some(match line {
        EntryLine::Remember { key, outcome } => {
            Entry::Remember(key.into_owned(), outcome.into_owned())
        }
        EntryLine::Record { manager, method, slots, max_items, version, step } => {
            let settings = |max_items| Settings { max_items };
            let pairs = slots.into_iter().map(|(before, after)| {
                let slot = |line: Option<SlotLine<'_>>| line.map(slot).transpose().ok();
                Some(SlotChange { before: slot(before)?, after: slot(after)? })
            });
            Entry::Record(
                manager.into_owned(),
                Change {
                    method: method.into_owned(),
                    slots: pairs.collect::<Option<_>>()?,
                    settings: max_items.map(|(a, b)| (settings(a), settings(b))),
                    version,
                    step,
                    ..Change::default()
                },
            )
        }
    })
}

/// Parses a slot. When the line has only the item's id, because an earlier change introduced this
/// version of the item, the item's other fields stay empty: storing the change does not need them.
fn slot(line: SlotLine<'_>) -> Result<Slot, StoreError> {
    let SlotLine { item, version, rank, pinned, new } = line;
    let id = ItemId(item);
    let item = match new {
        None => known_item(id),
        Some(new) => Item {
            id,
            kind: new.kind,
            content: new.content.into(),
            metadata: metadata::read(&new.metadata)?,
            timestamp: new.timestamp,
            taken_ms: new.taken_ms,
            tokens: new.tokens,
            counted_by: counter_name(&new.counted_by),
            live: new.live,
        },
    };
    Ok(Slot { rank, pinned, version, item: Arc::new(item) })
}

fn known_item(id: ItemId) -> Item {
    Item {
        id,
        kind: Kind::Custom,
        content: "".into(),
        metadata: Default::default(),
        timestamp: 0,
        taken_ms: 0,
        tokens: 0,
        counted_by: counter_name(""),
        live: false,
    }
}
