//! Which of the items a call is about.

use super::item::{Item, Kind, Origin};

/// A name in `:types`: it matches an item's type or its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeName {
    kind: Option<Kind>,
    origin: Option<Origin>,
}

/// A name in `:types` that is neither a type nor an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a type or origin; valid are {}", valid_names().join(", "))]
pub struct UnknownType {
    /// The name as it was given.
    pub name: String,
}

impl TypeName {
    /// Reads a kebab-case name; `file` is both a type and an origin and matches either.
    ///
    /// # Errors
    /// [`UnknownType`] lists the valid names.
    pub fn from_name(name: &str) -> Result<Self, UnknownType> {
        let found = Self { kind: Kind::from_name(name), origin: Origin::from_name(name) };
        match found {
            Self { kind: None, origin: None } => Err(UnknownType { name: name.to_owned() }),
            found => Ok(found),
        }
    }

    /// Whether the item is of this type or origin.
    pub fn matches(self, item: &Item) -> bool {
        self.kind == Some(item.kind)
            || (self.origin.is_some() && self.origin == item.metadata.origin())
    }
}

/// Every name that `:types` takes, types first.
pub fn valid_names() -> Vec<&'static str> {
    let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    names.extend(Origin::ALL.iter().map(|origin| origin.name()).filter(|name| *name != "file"));
    names
}

/// The most recent `limit` of the items that match one of `types` (all when there are none),
/// oldest first, as `items` are.
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
