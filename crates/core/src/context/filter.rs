//! Selects items by type or origin, up to a maximum number.

use super::item::{Item, Kind, Origin};

/// A name in the parameter `:types`. It stands for a type or an origin of items, or for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeName {
    kind: Option<Kind>,
    origin: Option<Origin>,
}

/// The error for a name in the parameter `:types` that is neither a type nor an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a type or origin; use one of {}", valid_names().join(", "))]
pub struct UnknownType {
    /// The given name.
    pub name: String,
}

impl TypeName {
    /// Parses a kebab-case name. `file` is both a type and an origin, and matches either.
    ///
    /// # Errors
    /// [`UnknownType`], which lists the valid names.
    pub fn from_name(name: &str) -> Result<Self, UnknownType> {
        match (Self { kind: Kind::from_name(name), origin: Origin::from_name(name) }) {
            Self { kind: None, origin: None } => Err(UnknownType { name: name.to_owned() }),
            found => Ok(found),
        }
    }

    /// Returns whether the item has this type or origin.
    pub fn matches(self, item: &Item) -> bool {
        self.kind == Some(item.kind)
            || (self.origin.is_some() && self.origin == item.metadata.origin())
    }
}

/// Returns every name that the parameter `:types` accepts, types first.
pub fn valid_names() -> Vec<&'static str> {
    let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    names.extend(Origin::ALL.iter().map(|origin| origin.name()).filter(|name| *name != "file"));
    names
}

/// Returns the most recent `limit` items that match one of `types`, in the order of `items`, which
/// is oldest first. Without a limit, returns all that match. An empty `types` matches every item.
pub fn select<T>(
    items: impl IntoIterator<Item = T>,
    types: &[TypeName],
    limit: Option<usize>,
    item_of: impl Fn(&T) -> &Item,
) -> Vec<T> {
    let matches = |item: &Item| types.is_empty() || types.iter().any(|name| name.matches(item));
    let mut chosen: Vec<T> = items.into_iter().filter(|entry| matches(item_of(entry))).collect();
    let excess = limit.map_or(0, |limit| chosen.len().saturating_sub(limit));
    chosen.drain(..excess);
    chosen
}
