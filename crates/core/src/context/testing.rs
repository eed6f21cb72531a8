//! Items for tests, made in one line and independent of the time.

use super::item::{Item, ItemId, Kind, Metadata};
use contexture_value::Value;

/// Makes an item without metadata, with an estimated number of tokens, and with times of 0.
pub fn item(id: u64, kind: Kind, content: &str) -> Item {
    Item {
        id: ItemId(id),
        kind,
        content: content.into(),
        metadata: Metadata::default(),
        timestamp: 0,
        taken_ms: 0,
        tokens: (content.chars().count() as u64).div_ceil(4),
        counted_by: "estimate",
        live: false,
    }
}

/// Makes a code item without metadata.
pub fn code(id: u64, content: &str) -> Item {
    item(id, Kind::Code, content)
}

/// Chainable additions to an item's metadata.
pub trait With: Sized {
    /// Sets one string of the metadata.
    fn with(self, name: &str, text: &str) -> Self;

    /// Sets `:filename`.
    fn in_file(self, name: &str) -> Self {
        self.with("filename", name)
    }

    /// Sets `:start-line` and `:end-line`.
    fn at_lines(self, first: i64, last: i64) -> Self;
}

impl With for Item {
    fn with(mut self, name: &str, text: &str) -> Self {
        self.metadata.set(name, Value::Str(text.to_owned()));
        self
    }

    fn at_lines(mut self, first: i64, last: i64) -> Self {
        self.metadata.set("start-line", Value::Int(first));
        self.metadata.set("end-line", Value::Int(last));
        self
    }
}
