//! Context items: their content, source and cost.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use crate::ids::ItemId;
use crate::names::names;
use contexture_value::{Key, Value};

/// One version of an item. A version never changes: an update makes another `Item` with the same id
/// and timestamp.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Id of the item. Unique across all managers and restarts.
    pub id: ItemId,
    /// Type of the content.
    pub kind: Kind,
    /// The text itself, verbatim.
    pub content: Arc<str>,
    /// Source of the content, and anything else the client sent.
    pub metadata: Metadata,
    /// Time of the first version, in Unix seconds. An update keeps it.
    pub timestamp: i64,
    /// Time when this content was taken, in Unix milliseconds. If the file changes later, the item
    /// may be stale.
    pub taken_ms: i64,
    /// Number of tokens of the content, by the counter named in `counted_by`.
    pub tokens: u64,
    /// Name of the counter: `o200k`, `cl100k` or `estimate`.
    pub counted_by: &'static str,
    /// True if the item follows its source: it is brought up to date whenever it is shown or
    /// rendered.
    pub live: bool,
}

names! {
    /// The type of an item.
    #[cfg_attr(feature = "schema", schemars(rename = "ItemKind"))]
    Kind {
        /// Source code.
        Code => "code",
        /// Prose.
        Text => "text",
        /// A file, or some of its lines.
        File => "file",
        /// Interactions with a REPL.
        ReplHistory => "repl-history",
        /// An error with its backtrace.
        Error => "error",
        /// Anything else.
        Custom => "custom",
    }
}

names! {
    /// What the text of an item was taken from.
    #[cfg_attr(feature = "schema", schemars(rename = "ItemOrigin"))]
    Origin {
        /// A marked region.
        Region => "region",
        /// A whole buffer, unsaved edits included.
        Buffer => "buffer",
        /// The definition around point.
        Defun => "defun",
        /// A file, or some of its lines, read by the server.
        File => "file",
        /// A file found by walking a directory.
        Tree => "tree",
        /// The listing of a directory.
        Listing => "listing",
        /// A symbol's definition.
        Symbol => "symbol",
        /// A REPL's inputs and values.
        Repl => "repl",
        /// A diagnostic from a checker or compiler.
        Diagnostic => "diagnostic",
        /// A debugger's condition and backtrace.
        Debugger => "debugger",
        /// An inspector's content.
        Inspector => "inspector",
        /// The output of a compilation or search.
        Compilation => "compilation",
        /// A difference between versions.
        Diff => "diff",
        /// Killed or copied text.
        Kill => "kill",
        /// The output of a tool that an agent ran.
        Tool => "tool",
        /// A text that a person or program composed.
        Note => "note",
    }
}

names! {
    /// The state of an item compared with its file.
    #[cfg_attr(feature = "schema", schemars(rename = "ItemState"))]
    State {
        /// The item has the current text of its file, or came from no file.
        Fresh => "fresh",
        /// The file has another text now, or may have one.
        Stale => "stale",
        /// The file is gone.
        Missing => "missing",
    }
}

impl Item {
    /// Returns the reason why a live item does not have the current text of its source; `None` if
    /// it has that text, or is not live.
    pub fn stale(&self) -> Option<&str> {
        self.metadata.text(STALE).filter(|_| self.live)
    }

    /// Returns the time of the text in Unix seconds: for a snapshot, the time in its metadata; for
    /// a stale item, the time when its text was taken. `None` for other items.
    pub fn as_of(&self) -> Option<i64> {
        match self.metadata.get(AS_OF) {
            Some(Value::Int(seconds)) => Some(*seconds),
            _ => self.stale().map(|_| self.taken_ms.div_euclid(1000)),
        }
    }

    /// Returns the item with the text and the lines that it had in its file when it was marked, as
    /// far as its anchor records them.
    pub fn as_marked(&self) -> Self {
        let mut marked = self.clone();
        [UNSAVED, STALE, "modified"].into_iter().for_each(|name| marked.metadata.remove(name));
        let anchor = self.metadata.get(ANCHOR);
        let line = |name| anchor.and_then(|anchor| anchor.get(name)).cloned();
        if let Some(Value::Str(text)) = line("text") {
            marked.content = text.into();
        }
        for name in ["start-line", "end-line"] {
            line(name).into_iter().for_each(|value| marked.metadata.set(name, value));
        }
        marked
    }

    /// Returns whether the text is from a buffer with unsaved edits.
    pub fn is_unsaved(&self) -> bool {
        self.metadata.is_set(UNSAVED)
    }
}

/// Metadata name for the reason why a live item does not have the current text of its source.
pub const STALE: &str = "stale";
/// Metadata name for what finds the text of a live item again.
pub const ANCHOR: &str = "anchor";
/// Metadata name for the time of a snapshot, in Unix seconds.
pub const AS_OF: &str = "as-of";
/// Metadata name whose value is true for text from a buffer with unsaved edits.
pub const UNSAVED: &str = "unsaved";

impl Kind {
    /// Returns the name for headings, with each part capitalized: `Repl-History`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Code => "Code",
            Self::Text => "Text",
            Self::File => "File",
            Self::ReplHistory => "Repl-History",
            Self::Error => "Error",
            Self::Custom => "Custom",
        }
    }
}

/// The metadata of an item: names and values from the client, in order, and those that the server
/// adds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata(pub Vec<(Key, Value)>);

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_empty() {
            true => serializer.serialize_unit(),
            // Serialized as a value, because the keys of a value keep their spelling.
            false => Value::Map(self.0.clone()).serialize(serializer),
        }
    }
}

impl Metadata {
    /// Names that the server understands in metadata from clients. Clients may use all other names
    /// as they like.
    pub const NAMES: [&str; 14] = [
        "filename",
        "project",
        "start-line",
        "end-line",
        "language",
        "symbol",
        "package",
        "origin",
        "partial",
        "unsaved",
        "anchor",
        "stale",
        "as-of",
        "picture",
    ];

    /// Creates metadata from what a client gave. Spells the names that the server understands in
    /// kebab-case, and keeps the client's spelling of all others. If names are equal, keeps only
    /// the first entry.
    pub fn of(given: impl IntoIterator<Item = (Key, Value)>) -> Self {
        let mut entries: Vec<(Key, Value)> = Vec::new();
        let mut seen = HashSet::new();
        for (key, value) in given {
            let key = match Self::NAMES.iter().find(|name| key.kebab() == **name) {
                Some(name) => Key::from(*name),
                None => key,
            };
            if seen.insert(key.clone()) {
                entries.push((key, value));
            }
        }
        Self(entries)
    }

    /// Returns the value under `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    /// Replaces or appends the value under `name`.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(key, _)| &**key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Records why a live item does not have the current text of its source.
    pub fn set_stale(&mut self, reason: &str) {
        self.set(STALE, Value::Str(reason.to_owned()));
    }

    /// Removes the value under `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| &**key != name);
    }

    /// Adds the entries of another version of the same text that this version lacks, such as the
    /// name of the definition. Entries about the state of the other version are left out.
    pub fn complete(&mut self, other: &Self) {
        let of_state = [STALE, AS_OF, UNSAVED, ANCHOR, "modified", "origin"];
        for (key, value) in &other.0 {
            if !of_state.contains(&&**key) && self.get(key).is_none() {
                self.0.push((key.clone(), value.clone()));
            }
        }
    }

    /// Returns whether the value under `name` is true.
    pub fn is_set(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the text under `name`: a string, or the name of a symbol or keyword. Returns `None`
    /// for other values, or if there is no value.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// Returns the file's name as the client gave it. It is absolute if it came from Emacs or the
    /// server.
    pub fn filename(&self) -> Option<&str> {
        self.text("filename")
    }

    /// Returns the first and last line, counted from 1, if both are known.
    pub fn lines(&self) -> Option<(u64, u64)> {
        Some((self.line("start-line")?, self.line("end-line")?))
    }

    /// Sets the first and the last line.
    pub fn set_lines(&mut self, start: u64, end: u64) {
        self.set("start-line", Value::from(start));
        self.set("end-line", Value::from(end));
    }

    /// Returns what the item's text was taken from, if that is known.
    pub fn origin(&self) -> Option<Origin> {
        self.text("origin").and_then(Origin::from_name)
    }

    /// Returns the name of the source for display: of the file, relative to `:project` if that
    /// folder contains it, or of the buffer that a copy was taken from.
    pub fn display_name(&self) -> Option<&str> {
        let Some(name) = self.filename() else { return self.copied_buffer() };
        let project = self.text("project");
        Some(project.and_then(|root| inside(name, root)).unwrap_or(name))
    }

    /// Returns the name of the buffer, without a file, that a dated copy was taken from.
    pub fn copied_buffer(&self) -> Option<&str> {
        let is_copy = self.filename().is_none() && self.get(AS_OF).is_some();
        self.text("buffer").filter(|_| is_copy)
    }

    fn line(&self, name: &str) -> Option<u64> {
        match self.get(name)? {
            Value::Int(line) => u64::try_from(*line).ok().filter(|n| *n > 0),
            _ => None,
        }
    }
}

/// Returns the name of a file relative to a folder, if it is below the folder.
pub(super) fn inside<'a>(name: &'a str, folder: &str) -> Option<&'a str> {
    name.strip_prefix(folder.trim_end_matches('/'))?.strip_prefix('/').filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_are_relative_to_the_project_that_contains_the_file() {
        let name = |file: &str, project: &str| {
            let mut metadata = Metadata::default();
            metadata.set("filename", Value::Str(file.to_owned()));
            metadata.set("project", Value::Str(project.to_owned()));
            metadata.display_name().map(str::to_owned)
        };
        assert_eq!(name("/p/src/a.rs", "/p").as_deref(), Some("src/a.rs"));
        assert_eq!(name("/p/src/a.rs", "/p/").as_deref(), Some("src/a.rs"));
        assert_eq!(name("/pq/a.rs", "/p").as_deref(), Some("/pq/a.rs"));
        assert_eq!(name("src/a.rs", "/p").as_deref(), Some("src/a.rs"));
    }
}
