//! Context items of a conversation: files, regions and texts to show in its windows.

use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Conversation, Error};
use crate::agent::Job;
use crate::agent::arriving::Arriving;
use crate::agent::items::{FileItem, new_item, resolved_item, with_states};
use crate::agent::refresh::now_ms;
use crate::context::item::{Kind, Metadata, Origin, State};
use crate::engine::{Caller, Engine, NewItem, Selection};
use crate::files::{self, FileError};
use crate::ids::ItemId;
use crate::value::{Keyword, Value};

/// A text to add to the context of a conversation.
///
/// ```
/// use contexture::{Item, Kind};
///
/// let error = Item::new("thread 'main' panicked").kind(Kind::Error).pinned();
/// let region = Item::new("fn main() {}").region("/src/tla/src/main.rs", 1..=1);
/// # let _ = (error, region);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    content: String,
    kind: Option<Kind>,
    metadata: Metadata,
    lines: Option<(u64, u64)>,
    pinned: bool,
}

impl Item {
    /// Creates an item from a text.
    pub fn new(content: impl Into<String>) -> Self {
        let metadata = Metadata::default();
        Self { content: content.into(), kind: None, metadata, lines: None, pinned: false }
    }

    /// Sets the type of the content. By default, this is code for a region of a file, and text for
    /// all else.
    #[must_use]
    pub fn kind(self, kind: Kind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Sets the file and the lines, counted from 1, from which the content comes. A range without
    /// an end names only its first line.
    #[must_use]
    pub fn region(mut self, file: impl AsRef<Path>, lines: impl RangeBounds<u64>) -> Self {
        self.metadata.set("filename", files::path_value(file.as_ref()));
        self.metadata.set("origin", Value::of(&Keyword(Origin::Region.name())));
        self.lines = bounds(&lines).map(|(start, end)| (start, end.unwrap_or(start)));
        self
    }

    /// Adds an entry to the metadata, which is stored with the item. Windows show only entries that
    /// the library knows, such as `filename`.
    #[must_use]
    pub fn metadata(mut self, name: &str, value: impl Into<String>) -> Self {
        self.metadata.set(name, Value::Str(value.into()));
        self
    }

    /// Exempts the item from eviction when the context is full.
    #[must_use]
    pub fn pinned(self) -> Self {
        Self { pinned: true, ..self }
    }
}

impl<T: Into<String>> From<T> for Item {
    fn from(content: T) -> Self {
        Self::new(content)
    }
}

/// An item in the context of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemView {
    /// Id of the item.
    pub id: ItemId,
    /// Type of the content.
    pub kind: Kind,
    /// The content.
    pub content: Arc<str>,
    /// File that the content is from.
    pub file: Option<PathBuf>,
    /// First and last line in the file.
    pub lines: Option<(u64, u64)>,
    /// Number of tokens of the content.
    pub tokens: u64,
    /// True if the item is exempt from eviction.
    pub pinned: bool,
    /// Result of comparing the item with its file.
    pub state: State,
}

impl Conversation {
    /// Adds a file, or some of its lines, counted from 1; `..` means all. The path is absolute, or
    /// relative to the project. The item follows the file. If the lines are in the context already,
    /// they become the newest item. Returns the id of the item.
    ///
    /// A picture (PNG, JPEG, GIF, WebP) or a PDF is added as a copy, and sent with the question to
    /// models that take it. Other models get the text of a PDF, and refuse a picture.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Refused`] if the context is full of pinned items.
    pub async fn add_file(
        &self,
        path: impl AsRef<Path>,
        lines: impl RangeBounds<u64>,
    ) -> Result<ItemId, Error> {
        let name = path.as_ref().to_string_lossy().into_owned();
        let (lines, project) = (bounds(&lines), self.inner.project.clone());
        let read = move |job: &Job| {
            let named = files::resolve(&name, project.as_deref().map(Path::new))?;
            resolved_item(&job.services, &job.counter(), &named.file?, lines)
        };
        let item = self.inner.job().aside("adding a file", read).await??;
        self.add_new("add-file", item).await
    }

    /// Adds a text, or an [`Item`] with more details. Returns the id of the item.
    ///
    /// # Errors
    /// [`Error::Refused`] if the context is full of pinned items; [`Error::File`] if the lines of a
    /// region are none.
    pub async fn add(&self, item: impl Into<Item>) -> Result<ItemId, Error> {
        let Item { content, kind, mut metadata, lines, pinned } = item.into();
        if let Some((start, end)) = lines {
            if start == 0 || end < start {
                return Err(FileError::BadRange { start, end: Some(end) }.into());
            }
            metadata.set_lines(start, end);
        }
        let of_file = metadata.filename().map_or(Kind::Text, |_| Kind::Code);
        let kind = kind.unwrap_or(of_file);
        let count = move |job: &Job| NewItem {
            pinned,
            ..new_item(&job.counter(), content, kind, metadata, now_ms())
        };
        let item = self.inner.job().aside("adding an item", count).await?;
        self.add_new("add-item", item).await
    }

    async fn add_new(
        &self,
        method: &'static str,
        item: impl Into<FileItem>,
    ) -> Result<ItemId, Error> {
        let (manager, services) = (self.inner.manager.clone(), &self.inner.job().services);
        let counter = Arc::clone(&services.counter);
        let item = Arriving::new(services, &manager, item).await?;
        let add = move |engine: &mut Engine| item.add(engine, method, &manager, &*counter);
        let (added, _) = self.ask(add).await?;
        Ok(ItemId(added.ids.first().copied().unwrap_or_default()))
    }

    /// Returns the items, oldest first, each compared with its file.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn items(&self) -> Result<Vec<ItemView>, Error> {
        let managers = vec![self.inner.manager.clone()];
        let all = Selection { managers, ..Selection::default() };
        let views = self.ask(move |engine| engine.select(&all)).await?;
        let look = move |job: &Job| with_states(&job.services, Caller::Nobody, views);
        let items = self.inner.job().aside("listing the items", look).await?;
        let view = |(view, state): (crate::engine::View, State)| ItemView {
            id: view.item.id,
            kind: view.item.kind,
            content: Arc::clone(&view.item.content),
            file: view.item.metadata.filename().map(PathBuf::from),
            lines: view.item.metadata.lines(),
            tokens: view.item.tokens,
            pinned: view.pinned,
            state,
        };
        Ok(items.into_iter().map(view).collect())
    }

    /// Removes items. [`undo`](Self::undo) restores them.
    ///
    /// # Errors
    /// [`Error::Refused`] if one of the items does not exist; then no item is removed.
    pub async fn remove(&self, ids: impl IntoIterator<Item = ItemId>) -> Result<(), Error> {
        let (manager, ids) = (self.inner.manager.clone(), ids.into_iter().collect::<Vec<_>>());
        self.ask(move |engine| engine.remove(&manager, &ids)).await.map(drop)
    }

    /// Undoes the last change to the items.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no change to undo.
    pub async fn undo(&self) -> Result<(), Error> {
        let manager = self.inner.manager.clone();
        self.ask(move |engine| engine.undo(&manager)).await.map(drop)
    }

    /// Redoes the last undone change to the items.
    ///
    /// # Errors
    /// [`Error::Refused`] if nothing was undone, or another change has been made since.
    pub async fn redo(&self) -> Result<(), Error> {
        let manager = self.inner.manager.clone();
        self.ask(move |engine| engine.redo(&manager)).await.map(drop)
    }
}

/// Returns the first line of a range, and the last if the range has an end; `None` for all lines.
fn bounds(lines: &impl RangeBounds<u64>) -> Option<(u64, Option<u64>)> {
    let start = match lines.start_bound() {
        Bound::Included(line) => Some(*line),
        Bound::Excluded(line) => Some(line.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let end = match lines.end_bound() {
        Bound::Included(line) => Some(*line),
        Bound::Excluded(line) => Some(line.saturating_sub(1)),
        Bound::Unbounded => None,
    };
    start.or(end.map(|_| 1)).map(|start| (start, end))
}
