//! Layers: the managers whose items are sent from a buffer or in a conversation, from the most
//! general to the most specific.
//!
//! Opening a layer also moves into it the items of managers that have former names: those from
//! before the project got a Git remote, or the buffer got a file.

use serde::Serialize;

use super::{Engine, EngineError, SessionSettings};
use crate::context::place::{self, Place};
use crate::ids::ItemId;
use crate::names::names;

names! {
    /// A layer, named after what its items belong to.
    Layer {
        /// Nothing in particular: the items are sent from everywhere.
        Everywhere => "everywhere",
        /// The project.
        Project => "project",
        /// The file.
        File => "file",
        /// The buffer, which has no file.
        Buffer => "buffer",
        /// The conversation.
        Conversation => "conversation",
    }
}

/// The layers to open.
#[derive(Debug, Clone, Default)]
pub struct WantedLayers {
    /// Layers from the most general to the most specific, without that of the conversation.
    pub layers: Vec<WantedLayer>,
    /// Name or id of the session that holds the conversation; `None` if there is no conversation.
    pub session: Option<String>,
    /// Root of the project. Labels of files inside the project are relative to it.
    pub root: Option<String>,
}

/// A layer to open.
#[derive(Debug, Clone)]
pub struct WantedLayer {
    /// The layer.
    pub layer: Layer,
    /// Name of the layer's manager.
    pub manager: String,
    /// Manager of the buffer that has become the layer's file, if any. The items of this manager
    /// move into the layer.
    pub once: Option<String>,
}

/// An open layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenLayer {
    /// The layer.
    pub layer: Layer,
    /// Name of the layer's manager.
    pub manager: String,
    /// Label to show, such as `project app`.
    pub label: String,
    /// Number of items.
    pub items: usize,
    /// Tokens of the items.
    pub tokens: u64,
    /// Maximum number of items.
    pub max_items: usize,
    /// Version of the manager.
    pub version: u64,
}

/// A manager, with the number of its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSize {
    /// Name of the manager.
    pub manager: String,
    /// Number of items.
    pub items: u64,
    /// Layer that took the items over, if any.
    pub layer: Option<Layer>,
}

/// The result of opening layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenLayers {
    /// Layers from the most general to the most specific.
    pub layers: Vec<OpenLayer>,
    /// Managers whose items moved into a layer.
    pub taken_over: Vec<LayerSize>,
    /// Managers that belong to none of the layers, although the caller may expect their items
    /// there.
    pub elsewhere: Vec<LayerSize>,
}

impl Engine {
    /// Opens layers. Moves into them the items of managers that stood for the same project, file or
    /// buffer under former names.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], [`EngineError::Store`].
    pub fn open_layers(&mut self, wanted: WantedLayers) -> Result<OpenLayers, EngineError> {
        let WantedLayers { layers: mut asked, session, root } = wanted;
        let mut open = OpenLayers::default();
        for WantedLayer { layer, manager, once } in &asked {
            let former = Place::of(manager).and_then(|place| place.former_manager());
            for former in former.iter().chain(once) {
                open.taken_over.extend(self.take_over(former, manager, *layer)?);
            }
        }
        for WantedLayer { manager, .. } in &asked {
            open.elsewhere.extend(self.neighbours(manager)?);
        }
        if let Some(session) = session {
            let manager = self.find_session(Some(&session))?.manager_name();
            if asked.iter().all(|layer| layer.manager != manager) {
                asked.push(WantedLayer { layer: Layer::Conversation, manager, once: None });
            }
        }
        for WantedLayer { layer, manager, .. } in asked {
            open.layers.push(self.open_layer(layer, manager, root.as_deref())?);
        }
        Ok(open)
    }

    fn open_layer(
        &mut self,
        layer: Layer,
        manager: String,
        root: Option<&str>,
    ) -> Result<OpenLayer, EngineError> {
        let (items, tokens) = self.size(&manager)?;
        let max_items = self.settings(&manager)?.max_items;
        let version = self.manager(&manager)?.version();
        let label = match layer {
            Layer::Conversation => "this conversation".to_owned(),
            _ => place::label(&manager, root),
        };
        Ok(OpenLayer { layer, manager, label, items, tokens, max_items, version })
    }

    /// Moves the items of the manager `from` to `to`, the manager of `layer`. Moves the journal
    /// with them if nothing is stored under the name `to`; otherwise moves them only if they all
    /// fit. Returns `from` and the number of its items; `None` if no items moved.
    fn take_over(
        &mut self,
        from: &str,
        to: &str,
        layer: Layer,
    ) -> Result<Option<LayerSize>, EngineError> {
        if self.store.load(from)?.is_none() {
            return Ok(None);
        }
        let (items, _) = self.size(from)?;
        if self.store.load(to)?.is_none() {
            self.rename_manager(from, to)?;
        } else {
            let room = self.settings(to)?.max_items.saturating_sub(self.size(to)?.0);
            if items == 0 || items > room {
                return Ok(None);
            }
            let ids = ItemId::all(&self.order(from)?);
            self.transfer("open-layers", from, &ids, to)?;
        }
        self.sessions_follow(from, to)?;
        let held = LayerSize { manager: from.to_owned(), items: items as u64, layer: Some(layer) };
        Ok(Some(held).filter(|held| held.items > 0))
    }

    /// Gives the manager `from` the name `to`, under which nothing may be stored yet. The manager's
    /// changes can still be undone.
    fn rename_manager(&mut self, from: &str, to: &str) -> Result<(), EngineError> {
        let emptied = self.manager(from)?.plan_clear("open-layers");
        let filled = emptied.clone().inverse();
        self.touched.extend([from.to_owned(), to.to_owned()]);
        self.store.rename(from, to)?;
        self.apply(from, &emptied, None)?;
        self.managers.remove(from);
        self.managers.remove(to);
        let by = self.sessions.caller;
        let held = self.manager(to)?;
        let event = super::Event::changed(to, held, &filled, None, by);
        self.events.push(event);
        Ok(())
    }

    /// Makes the sessions that show the manager `from` show `to` instead.
    fn sessions_follow(&mut self, from: &str, to: &str) -> Result<(), EngineError> {
        for row in self.store.read().sessions(true)? {
            if row.manager == from {
                self.store.change()?.set_session_manager(row.id, to)?;
                self.sessions.change_row(row.id, |row| to.clone_into(&mut row.manager));
            }
            let mut settings = SessionSettings::parse(&row.settings)?;
            let shown = settings.managers.iter_mut().filter(|manager| *manager == from);
            if shown.map(|manager| to.clone_into(manager)).count() > 0 {
                self.set_session_settings(row.id, &settings.print()?)?;
            }
        }
        Ok(())
    }

    /// Returns other managers that have items and belong to the same project or file under another
    /// Git remote, or to another buffer with the same name.
    fn neighbours(&mut self, manager: &str) -> Result<Vec<LayerSize>, EngineError> {
        let Some(place) = Place::of(manager) else { return Ok(Vec::new()) };
        let found = self.store.read().managers_beginning(&place.beginning())?;
        let is_other = |name: &str| {
            name != manager && Place::of(name).is_some_and(|other| other.is_at(&place))
        };
        let others = found.into_iter().filter(|(name, _)| is_other(name));
        Ok(others.map(|(manager, items)| LayerSize { manager, items, layer: None }).collect())
    }
}
