//! Access to values by name, in maps and in property lists, which are the maps of Lisp. If several
//! values have equal names, the first one counts.

use std::borrow::Cow;

use super::{Value, kebab};

impl Value {
    /// Returns the value under `name` (kebab-case, no colon) in a map or property list.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Map(entries) => {
                entries.iter().find(|(key, _)| key.kebab() == name).map(|(_, value)| value)
            }
            Self::List(items) => {
                let mut pairs = items.chunks_exact(2);
                pairs
                    .find(|pair| pair[0].plist_key().is_some_and(|key| key == name))
                    .map(|it| &it[1])
            }
            _ => None,
        }
    }

    /// Returns the name that the datum has as a key of a property list, in kebab-case; `None` if
    /// the datum is not a keyword.
    pub fn plist_key(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Keyword(name) => Some(kebab(name)),
            Self::Symbol(name) => name.strip_prefix(':').map(kebab),
            _ => None,
        }
    }

    /// Returns the text of a string, or the name of a symbol or keyword.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            Self::Symbol(name) | Self::Keyword(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the names in a map or property list, in kebab-case.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let (entries, items): (&[_], &[_]) = match self {
            Self::Map(entries) => (entries, &[]),
            Self::List(items) => (&[], items),
            _ => (&[], &[]),
        };
        let of_list = items.iter().step_by(2).filter_map(Self::plist_key);
        entries.iter().map(|(key, _)| key.kebab()).chain(of_list)
    }

    /// Removes all entries named `wanted` from a map or property list, and returns the first value.
    pub fn take_named(&mut self, wanted: &str) -> Option<Self> {
        let mut taken = None;
        match self {
            Self::Map(entries) => entries.retain_mut(|(key, value)| {
                let is_kept = key.kebab() != wanted;
                if !is_kept {
                    taken.get_or_insert(std::mem::take(value));
                }
                is_kept
            }),
            Self::List(items) => {
                let is_key = |item: &Self| item.plist_key().is_some_and(|key| key == wanted);
                while let Some(at) = items.iter().step_by(2).position(is_key) {
                    let value = items.drain(2 * at..(2 * at + 2).min(items.len())).nth(1);
                    taken = taken.or(value);
                }
            }
            _ => {}
        }
        taken
    }

    /// Puts a name with its value in front of a map or property list; `nil` counts as an empty map.
    /// Leaves any other datum unchanged.
    pub fn put_first(&mut self, name: &'static str, value: Self) {
        match self {
            Self::Nil => *self = Self::Map(vec![(name.into(), value)]),
            Self::Map(entries) => entries.insert(0, (name.into(), value)),
            Self::List(items) => drop(items.splice(0..0, [Self::Keyword(name.into()), value])),
            _ => {}
        }
    }
}
