//! Gives each name or word a number, so that files hold numbers instead of texts.
//!
//! Numbers depend on the order in which names arrive. Nothing that is shown may depend on them.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a name.
pub(crate) type NameId = u32;

/// All names of an index.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    ids: HashMap<Arc<str>, NameId>,
    texts: Vec<Arc<str>>,
}

impl NameTable {
    /// Returns the number of a name, which may be new.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = NameId::try_from(self.texts.len()).unwrap_or(NameId::MAX);
        let text: Arc<str> = name.into();
        self.ids.insert(Arc::clone(&text), id);
        self.texts.push(text);
        id
    }

    /// Returns the number of a name that is known.
    pub(crate) fn known(&self, name: &str) -> Option<NameId> {
        self.ids.get(name).copied()
    }

    /// Returns the text of a name.
    pub(crate) fn text(&self, id: NameId) -> &str {
        &self.texts[id as usize]
    }

    /// Returns the number of names.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}
