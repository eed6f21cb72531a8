//! Items on their way into a manager. Before a live item is added, its file is read: only now is it
//! certain that the item's text is on its lines.

use std::sync::Arc;

use super::Services;
use super::items::FileItem;
use crate::context::item::{ANCHOR, Item};
use crate::engine::{Added, Again, Engine, EngineError, NewItem};
use crate::files::{self, FileReader, Looks, ReadOptions, Stamp};
use crate::ids::ItemId;
use crate::tokens::Counter;
use crate::value::Value;

/// An item that is about to be added.
pub struct Arriving {
    item: NewItem,
    /// Hash and content of the item's picture.
    picture: Option<(String, Vec<u8>)>,
    options: ReadOptions,
    reader: FileReader,
    /// What the file of a live item is now, and where that is remembered.
    file: Option<(Arc<Looks>, Stamp)>,
}

impl Arriving {
    /// Prepares an item for its addition. Reads the file of a live item. If the manager has the same
    /// file under another name, the item gets that name.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn new(
        services: &Services,
        manager: &str,
        item: impl Into<FileItem>,
    ) -> Result<Self, EngineError> {
        let FileItem { item, picture } = item.into();
        if !item.live {
            return Ok(Self::copy(FileItem { item, picture }));
        }
        let name = item.metadata.filename().unwrap_or_default().to_owned();
        let manager = manager.to_owned();
        let find = move |engine: &mut Engine| engine.files_named_like(&manager, &name);
        let names = services.engine.ask(find).await?;
        let (options, as_given) = (services.limits.read_options(None), item.clone());
        let looks = Arc::clone(&services.looks);
        let read = tokio::task::spawn_blocking(move || {
            let file = Stamp::of_new(&item.metadata).map(|stamp| (looks, stamp));
            Self { file, ..Self::read(item, &names, options) }
        });
        Ok(read.await.unwrap_or_else(|_| Self::copy(as_given)))
    }

    /// Returns an item that follows no file.
    pub fn copy(item: impl Into<FileItem>) -> Self {
        let FileItem { item, picture } = item.into();
        let (options, reader) = (ReadOptions { max_bytes: 0 }, FileReader::default());
        Self { item, picture, options, reader, file: None }
    }

    /// Like [`new`](Self::new), given the names that the manager has for files like the item's.
    /// Reads the disk.
    fn read(mut item: NewItem, names: &[String], options: ReadOptions) -> Self {
        if let Some(own) = item.metadata.filename().and_then(files::true_outside)
            && let Some(same) =
                names.iter().find(|name| files::true_outside(name).as_ref() == Some(&own))
        {
            item.metadata.set("filename", Value::Str(same.clone()));
        }
        files::note_way_out(&mut item.metadata);
        let reader = FileReader::default();
        let mut arriving = Self { item, picture: None, options, reader, file: None };
        arriving.note_anchor();
        arriving
    }

    fn note_anchor(&mut self) {
        let NewItem { kind, content, metadata, taken_ms, tokens, counted_by, live, .. } =
            self.item.clone();
        let (id, timestamp) = (ItemId(0), 0);
        let item =
            Item { id, kind, content, metadata, timestamp, taken_ms, tokens, counted_by, live };
        if let Some(anchor) = self.reader.anchor(&item, &self.options) {
            self.item.metadata.set(ANCHOR, anchor);
        }
    }

    /// Returns whether the item may overlap others of its manager.
    pub fn may_overlap(&self) -> bool {
        self.item.live || self.item.metadata.origin().is_some()
    }

    /// Adds the item, and keeps the content of its picture. A live item that repeats an existing one is merged with it.
    ///
    /// # Errors
    /// Those of [`Engine::add_live`].
    pub fn add(
        self,
        engine: &mut Engine,
        method: &str,
        manager: &str,
        counter: &dyn Counter,
    ) -> Result<(Added, Option<Again>), EngineError> {
        let Self { item, picture, options, mut reader, file } = self;
        if let Some((hash, content)) = picture {
            engine.keep_picture(&hash, &content)?;
        }
        let anchor = &mut |item: &mut Item| {
            if let Some(anchor) = reader.anchor(item, &options) {
                item.metadata.set(ANCHOR, anchor);
            }
        };
        let (added, again) = engine.add_live(method, manager, item, counter, anchor)?;
        if let Some((looks, stamp)) = file {
            looks.arrived(added.ids.first().map(|id| (*id, stamp)));
        }
        Ok((added, again))
    }
}
