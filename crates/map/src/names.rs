//! Gives each name or word a number, so that files hold numbers instead of texts.
//!
//! Numbers depend on the order in which names arrive. Nothing that is shown may depend on them.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a name.
pub(crate) type Id = u32;

/// All names of an index.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: HashMap<Arc<str>, Id>,
    texts: Vec<Arc<str>>,
}

impl Names {
    /// Returns the number of a name, which may be new.
    pub(crate) fn id(&mut self, name: &str) -> Id {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = Id::try_from(self.texts.len()).unwrap_or(Id::MAX);
        let text: Arc<str> = name.into();
        self.ids.insert(Arc::clone(&text), id);
        self.texts.push(text);
        id
    }

    /// Returns the number of a name that is known.
    pub(crate) fn known(&self, name: &str) -> Option<Id> {
        self.ids.get(name).copied()
    }

    /// Returns the text of a name.
    pub(crate) fn text(&self, id: Id) -> &str {
        &self.texts[id as usize]
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}
