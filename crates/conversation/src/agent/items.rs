//! Creates context items and shows them, for the protocol methods, the model's tools and the
//! library alike.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::Services;
use super::refresh::{GONE, current, now_ms};
use crate::context::item::{ANCHOR, Item, Kind, Metadata, State};
use crate::context::picture::{PICTURE, Picture, PictureKind, tokens_of_picture};
use crate::context::repeat::{Repeat, covered};
use crate::engine::{Added, Again, Caller, Engine, EngineError, NewItem, View, name_views};
use crate::files::{self, FileError, FileText, OpenedFile, WITHIN};
use crate::ids::ItemId;
use crate::tokens::Counter;
use crate::value::{Keyword, Value};

/// First and last line of a part of a file; without a last line, the part extends to the end.
pub type LineRange = (u64, Option<u64>);

/// Maximum size of a picture in bytes, so that a request has at most 5 MB of it.
pub const MAX_PICTURE_BYTES: u64 = 3_750_000;
/// Maximum size of a PDF in bytes, so that a request has at most 16 MB of it.
pub const MAX_PDF_BYTES: u64 = 12_000_000;
/// Maximum width and height of a picture in pixels.
pub const MAX_PIXELS: u64 = 8_000;

/// An item of a file that is to be added.
pub struct FileItem {
    /// The item.
    pub item: NewItem,
    /// Hash and content of a picture or PDF. The content is kept apart from the item, by the hash.
    pub picture: Option<(String, Vec<u8>)>,
}

impl From<NewItem> for FileItem {
    fn from(item: NewItem) -> Self {
        Self { item, picture: None }
    }
}

/// An item with its state, in the form for clients and models.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Item"))]
pub struct ItemShown<'a> {
    /// Id of the item, `ctx-N`.
    id: ItemId,
    /// Type of the content.
    r#type: Kind,
    /// The content; absent if the call is `:brief`.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    /// Metadata from the client, and the place of the text in its file; `nil` if there is neither.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")
    )]
    metadata: Cow<'a, Metadata>,
    /// Time at which the item was added, in Unix seconds.
    timestamp: i64,
    /// Tokens of the content.
    tokens: u64,
    /// Name of the counter that counted the tokens.
    token_counter: Keyword<&'static str>,
    /// Size of the content, in bytes.
    bytes: usize,
    /// True if the item is exempt from eviction.
    pinned: bool,
    /// True if the item follows its file: its content is brought up to date whenever it is shown.
    live: bool,
    /// Relation of the item to its file. Additions and changes do not look at the file, so their
    /// answers always have `:fresh`; `list-items` compares the item with the file.
    state: State,
    /// Time at which the content of a snapshot or of a stale live item was taken, in Unix seconds;
    /// absent for other items.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<i64>,
}

impl<'a> ItemShown<'a> {
    /// Creates the form of an item for clients and models, without the content if `brief` is true.
    pub fn new(view: &'a View, state: State, brief: bool) -> Self {
        let Item { id, kind, content, metadata, timestamp, counted_by, live, .. } = &*view.item;
        Self {
            id: *id,
            r#type: *kind,
            content: (!brief).then_some(&**content),
            metadata: without_own(metadata),
            timestamp: *timestamp,
            tokens: Picture::shown_tokens(&view.item),
            token_counter: Keyword(counted_by),
            bytes: content.len(),
            pinned: view.pinned,
            live: *live,
            state,
            as_of: view.item.as_of(),
        }
    }
}

/// The item that a request added or changed, with the state of its manager if the item was added.
pub struct ItemAnswer {
    view: View,
    brief: bool,
    added_to: Option<AddedTo>,
}

/// The state of a manager after an item was added.
#[derive(Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct AddedTo {
    /// Name of the manager; only if the call added the item.
    manager: String,
    /// Number of items in the manager now; only if the call added the item.
    count: usize,
    /// Tokens of all items in the manager now; only if the call added the item.
    total_tokens: u64,
    /// Ids of the items that were evicted to make room, oldest first; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evicted: Vec<ItemId>,
    /// Relation of a live item to the items that were already there; absent if the item is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Repeat>,
    /// Ids of items that became part of this item; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absorbed: Vec<ItemId>,
    /// Id of the item that contains this item and is rendered instead. Absent if there is no such
    /// item.
    #[serde(skip_serializing_if = "Option::is_none")]
    covered_by: Option<ItemId>,
    /// Ids of the items that are not rendered because this item contains them; absent if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    covers: Vec<ItemId>,
}

impl ItemAnswer {
    /// Records how the added live item repeats earlier items; `None` if it repeats none.
    pub fn again(mut self, again: Option<Again>) -> Self {
        if let (Some(added), Some(Again { repeat, absorbed })) = (&mut self.added_to, again) {
            (added.repeat, added.absorbed) = (Some(repeat), absorbed);
        }
        self
    }

    /// Records which item covers this one, and which items this one covers. `views` must contain
    /// all items of the manager.
    pub fn among(mut self, views: &[View]) -> Self {
        let Some(added) = &mut self.added_to else { return self };
        let items: Vec<&Item> = views.iter().map(|view| &*view.item).collect();
        for (item, by) in items.iter().zip(covered(&items)) {
            if item.id == self.view.item.id {
                added.covered_by = by;
            } else if by == Some(self.view.item.id) {
                added.covers.push(item.id);
            }
        }
        self
    }

    /// Reads an item of a manager.
    ///
    /// # Errors
    /// [`EngineError::NoSuchItem`].
    pub fn of(
        engine: &mut Engine,
        manager: &str,
        id: ItemId,
        brief: bool,
    ) -> Result<Self, EngineError> {
        let mut view = engine.view_as_caller(manager, id)?;
        name_views(&[manager.to_owned()], [&mut view]);
        Ok(Self { view, brief, added_to: None })
    }

    /// Reads the item that was added to a manager, and the state of the manager.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn added(
        engine: &mut Engine,
        manager: String,
        added: &Added,
        brief: bool,
    ) -> Result<Self, EngineError> {
        let id = ItemId(added.ids.first().copied().unwrap_or_default());
        let (count, total_tokens) = engine.size(&manager)?;
        let answer = Self::of(engine, &manager, id, brief)?;
        let evicted = ItemId::all(&added.evicted);
        let added_to = AddedTo { manager, count, total_tokens, evicted, ..AddedTo::default() };
        Ok(Self { added_to: Some(added_to), ..answer })
    }

    /// Returns the number of bytes of content in the answer.
    pub fn bytes(&self) -> usize {
        if self.brief { 0 } else { self.view.item.content.len() }
    }
}

/// An item that a call added or changed, with the state of its manager if the item was added.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ItemAnswer"))]
pub struct AnswerShown<'a> {
    #[serde(flatten)]
    item: ItemShown<'a>,
    #[serde(flatten)]
    added_to: Option<&'a AddedTo>,
}

impl Serialize for ItemAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = ItemShown::new(&self.view, State::Fresh, self.brief);
        AnswerShown { item, added_to: self.added_to.as_ref() }.serialize(serializer)
    }
}

/// Returns each item with its state, after bringing live items up to date. Reads the disk.
pub fn with_states(services: &Services, caller: Caller, views: Vec<View>) -> Vec<(View, State)> {
    let views = current(services, &*services.counter, caller, views);
    let others: Vec<&Item> =
        views.iter().map(|view| &*view.item).filter(|item| !item.live).collect();
    let mut states = files::states(&others).into_iter();
    let state = |view: View| {
        let state = match (view.item.live, view.item.stale()) {
            (false, _) => states.next().unwrap_or(State::Fresh),
            (true, None) => State::Fresh,
            (true, Some(GONE)) => State::Missing,
            (true, Some(_)) => State::Stale,
        };
        (view, state)
    };
    views.into_iter().map(state).collect()
}

/// Returns the metadata without what the server keeps only for itself.
pub fn without_own(metadata: &Metadata) -> Cow<'_, Metadata> {
    match metadata.get(ANCHOR) {
        None => Cow::Borrowed(metadata),
        Some(_) => {
            let mut shown = metadata.clone();
            shown.remove(ANCHOR);
            Cow::Owned(shown)
        }
    }
}

/// Creates an item from a text that was taken at `taken_ms`, in Unix milliseconds.
pub fn new_item(
    counter: &dyn Counter,
    content: String,
    kind: Kind,
    metadata: Metadata,
    taken_ms: i64,
) -> NewItem {
    NewItem {
        kind,
        tokens: counter.count(&content),
        counted_by: counter.name(),
        content: content.into(),
        metadata,
        taken_ms,
        live: false,
        pinned: false,
    }
}

/// Creates an item from the text of a file.
pub fn file_item(
    counter: &dyn Counter,
    text: FileText,
    kind: Kind,
    metadata: Metadata,
    taken_ms: i64,
) -> NewItem {
    let mut metadata = file_metadata(metadata, &text, "file");
    files::note_way_out(&mut metadata);
    new_item(counter, text.content, kind, metadata, taken_ms)
}

/// Creates an item from a picture or PDF, with the tokens of a picture for `model`. The item is a
/// copy: it follows no file.
///
/// # Errors
/// [`FileError::BrokenPicture`], [`FileError::TooLarge`], [`FileError::TooManyPixels`].
pub fn picture_item(
    counter: &dyn Counter,
    model: &str,
    path: PathBuf,
    content: Vec<u8>,
    kind: Kind,
    metadata: Metadata,
    taken_ms: i64,
) -> Result<FileItem, FileError> {
    let Some((of, width, height)) = PictureKind::of(&content) else {
        return Err(FileError::BrokenPicture { path });
    };
    let bytes = content.len() as u64;
    if of != PictureKind::Pdf && bytes > MAX_PICTURE_BYTES {
        return Err(FileError::TooLarge { path, bytes, limit: MAX_PICTURE_BYTES });
    }
    if width.max(height) > MAX_PIXELS {
        return Err(FileError::TooManyPixels { path, width, height, limit: MAX_PIXELS });
    }
    let hash = blake3::hash(&content).to_hex().to_string();
    let mut picture = Picture {
        kind: of,
        hash: hash.clone(),
        bytes,
        width,
        height,
        pages: 0,
        has_text: false,
        tokens: 0,
    };
    let (mut text, mut why) = (String::new(), None);
    if of != PictureKind::Pdf {
        picture.tokens = tokens_of_picture(model, width, height);
    } else {
        let pages = files::pages_of_pdf(&content);
        picture.pages = pages.as_ref().map_or(1, |pages| pages.len() as u64);
        for (number, page) in (1..).zip(pages.iter().flatten()) {
            picture.has_text |= !page.trim().is_empty();
            text += &format!("[page {number}]\n{}\n", page.trim_end());
        }
        why = pages.err();
    }
    if !picture.has_text {
        text = picture.named(&path.file_name().unwrap_or_default().to_string_lossy());
        text.extend(why.map(|why| format!(" (its text was not read: {why})")));
    }
    let project = files::project_root(&path);
    let text = FileText { path, content: text, lines: None, total_lines: 0, project };
    let mut item = file_item(counter, text, kind, metadata, taken_ms);
    item.metadata.set(PICTURE, picture.told());
    Ok(FileItem { item, picture: Some((hash, content)) })
}

/// Reads an open file, or some of its lines, and creates an item from it: a live one, or a copy of a
/// picture or PDF. Does not resolve the file's name again.
///
/// # Errors
/// The errors of reading the file.
pub fn resolved_item(
    services: &Services,
    counter: &dyn Counter,
    file: &OpenedFile,
    lines: Option<LineRange>,
) -> Result<FileItem, FileError> {
    let mut metadata = Metadata::default();
    if let Some(folder) = file.within() {
        metadata.set(WITHIN, files::path_value(folder));
    }
    let taken_ms = now_ms();
    let seen = if lines.is_none() { file.seen(MAX_PDF_BYTES)? } else { None };
    if let Some(content) = seen {
        let asked = services.providers.find(None, None);
        let model = asked.as_ref().map_or("", |asked| asked.provider.model());
        let path = file.path().to_owned();
        return picture_item(counter, model, path, content, Kind::File, metadata, taken_ms);
    }
    let text = file.read(lines, &services.limits.read_options(None))?;
    let item = NewItem { live: true, ..file_item(counter, text, Kind::File, metadata, taken_ms) };
    Ok(item.into())
}

/// Adds the file name, project and lines of `text` to the metadata, and `origin` if the client gave
/// no origin. Keeps all other metadata from the client, and its project if the file is inside: for
/// an editor, a file of a submodule may belong to the project around it.
pub fn file_metadata(mut metadata: Metadata, text: &FileText, origin: &str) -> Metadata {
    metadata.set("filename", files::path_value(&text.path));
    let given = metadata.text("project").map(Path::new);
    if let Some(root) = &text.project
        && !given.is_some_and(|given| text.path.starts_with(given))
    {
        metadata.set("project", files::path_value(root));
    }
    if let Some((start, end)) = text.lines {
        metadata.set_lines(start, end);
    }
    if metadata.origin().is_none() {
        metadata.set("origin", Value::of(&Keyword(origin)));
    }
    metadata
}
