//! Names of the entries of a map.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::kebab;

/// The name of an entry in a [`Value::Map`](super::Value::Map).
///
/// Names that Contexture knows, and names from Lisp, are kebab-case here and snake_case in JSON.
/// Other keys that a JSON client wrote come back as the client wrote them, even keys that contain
/// `-` and keys that differ only in `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    text: Box<str>,
    is_exact: bool,
}

impl Key {
    /// Creates a key that is spelled exactly like this in JSON text.
    pub fn exact(text: &str) -> Self {
        Self { text: text.into(), is_exact: true }
    }

    /// Returns whether the key's exact spelling in JSON text is fixed.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Returns the key's text.
    pub(super) fn into_text(self) -> Box<str> {
        self.text
    }

    /// Returns the key in kebab-case, in which names are compared.
    pub fn kebab(&self) -> Cow<'_, str> {
        kebab(&self.text)
    }

    /// Returns the key as it is spelled in JSON text.
    pub(super) fn in_json(&self) -> Cow<'_, str> {
        match self.is_exact {
            true => Cow::Borrowed(&self.text),
            false => snake(&self.text),
        }
    }
}

/// Returns `name` with `_` for each `-`, as names are written in JSON.
pub(super) fn snake(name: &str) -> Cow<'_, str> {
    if name.contains('-') { Cow::Owned(name.replace('-', "_")) } else { Cow::Borrowed(name) }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<T: Into<Box<str>>> From<T> for Key {
    fn from(text: T) -> Self {
        Self { text: text.into(), is_exact: false }
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}
