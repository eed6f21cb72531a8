//! The data of every message: one type for both s-expressions and JSON.
//!
//! Serde converts a [`Value`] to and from Rust types; [`sexp`] and [`json`] are its two notations.
//! [`Value`] distinguishes everything that Emacs distinguishes (symbols and strings, lists and
//! vectors) and everything that JSON distinguishes (`null`, `false` and `[]`). This module knows
//! nothing of files, connections or messages.

mod atoms;
mod de;
mod describe;
mod error;
pub mod escape;
pub mod json;
mod key;
mod named;
#[cfg(feature = "schema")]
mod schema;
mod ser;
pub mod sexp;
mod whole;

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use error::Error;
pub use key::Key;
pub use ser::Keyword;

/// Maximum number of data in a text. Each atom and each list counts as one. A decoded datum takes
/// up to a hundred bytes. A call with the largest allowed number of messages, each with a role and
/// a content, has about a quarter of this maximum.
pub const MAX_DATA: usize = 2_000_000;

/// A datum. Emacs evaluates parts of some data when it shows them: text properties, byte-code,
/// records. No `Value` can hold these, so no client can send them to another.
///
/// Named values arrive as a [`Value::List`] (a property list) from an s-expression, and as a
/// [`Value::Map`] from JSON or a serialized struct. Code that wants a map must accept both. Names
/// in maps have no colon; see [`Key`] for their spelling.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `nil`: null, and also false and the empty list where a reader expects these.
    #[default]
    Nil,
    /// JSON's `true` and `false`. `t` is read as `Bool(true)`, and `Bool(false)` is printed as
    /// `nil`.
    Bool(bool),
    /// An integer that fits an `i64`.
    Int(i64),
    /// An integer that does not fit an `i64`: decimal digits with an optional minus sign.
    BigInt(Box<str>),
    /// A float; infinities and NaN are allowed.
    Float(f64),
    /// A float from JSON together with its text, if [`json`] would write the float differently. The
    /// text is written back unchanged.
    FloatText(f64, Box<str>),
    /// Text.
    Str(String),
    /// A string that is not Unicode text: Emacs character codes, raw bytes as 0x3FFF80–0x3FFFFF.
    RawStr(Vec<u32>),
    /// A symbol other than `nil` and `t`. The name is unescaped.
    Symbol(Box<str>),
    /// A keyword. The name is unescaped and without the leading colon.
    Keyword(Box<str>),
    /// A proper list. An empty list comes only from JSON or Rust, since the s-expression `()` is
    /// `Nil`.
    List(Vec<Value>),
    /// A list with a tail other than `nil`: `(a b . c)`. The tail is never a list.
    Dotted(Vec<Value>, Box<Value>),
    /// A vector, `[a b]`.
    Vector(Vec<Value>),
    /// A map, with its entries in the given order.
    Map(Vec<(Key, Value)>),
}

impl Value {
    /// Number of bytes that [`exceeds`](Self::exceeds) counts for each datum, in addition to its
    /// text.
    pub const DATUM_BYTES: usize = 16;

    /// Converts the datum to `T`. Texts move over without being copied.
    ///
    /// Structs are filled from maps and property lists. Keys may be in kebab-case or snake_case,
    /// and if two keys are equal, the first one counts. `nil` is also the empty map, the empty
    /// list, false and `None`. Symbols, keywords and strings name the variants of an enum.
    ///
    /// # Errors
    /// [`Error`], with the place of a datum that does not fit.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T, Error> {
        T::deserialize(de::ValueDeserializer { value: self, strict: false })
    }

    /// Converts the datum to `T` as [`decode`](Self::decode) does, but refuses keys that a struct
    /// does not have.
    ///
    /// # Errors
    /// [`Error`], with the place of a datum that does not fit.
    pub fn decode_strictly<T: DeserializeOwned>(self) -> Result<T, Error> {
        T::deserialize(de::ValueDeserializer { value: self, strict: true })
    }

    /// Converts a result to a datum; see [`to_value`] for the conversion.
    ///
    /// # Panics
    /// Panics if a map in `result` has a key that is not a name, which is a defect of the result's
    /// type.
    pub fn of<T: Serialize + ?Sized>(result: &T) -> Self {
        to_value(result).expect("the keys of a result should be names")
    }

    /// Returns whether the datum takes more than `bytes` bytes: the bytes of its texts, and
    /// [`DATUM_BYTES`](Self::DATUM_BYTES) for each datum in it. Counts no further than `bytes`.
    pub fn exceeds(&self, bytes: usize) -> bool {
        self.take_from(bytes).is_none()
    }

    /// Returns the number of bytes that the datum takes, as [`exceeds`](Self::exceeds) counts them.
    pub fn weight(&self) -> usize {
        self.take_from(usize::MAX).map_or(usize::MAX, |rest| usize::MAX - rest)
    }

    /// Returns how many of `room` bytes are left after the datum; `None` if the datum takes more
    /// than `room`.
    fn take_from(&self, room: usize) -> Option<usize> {
        let room = room.checked_sub(Self::DATUM_BYTES)?;
        let all = |values: &[Self], room| values.iter().try_fold(room, |room, v| v.take_from(room));
        match self {
            Self::Nil | Self::Bool(_) | Self::Int(_) | Self::Float(_) => Some(room),
            Self::FloatText(_, text)
            | Self::BigInt(text)
            | Self::Symbol(text)
            | Self::Keyword(text) => room.checked_sub(text.len()),
            Self::Str(text) => room.checked_sub(text.len()),
            Self::RawStr(codes) => room.checked_sub(size_of_val(&codes[..])),
            Self::List(items) | Self::Vector(items) => all(items, room),
            Self::Dotted(items, tail) => tail.take_from(all(items, room)?),
            Self::Map(entries) => entries
                .iter()
                .try_fold(room, |room, (key, value)| value.take_from(room.checked_sub(key.len())?)),
        }
    }

    /// Returns whether the datum is `:false` or `:json-false`, which JSON libraries of Lisp use for
    /// false when `nil` stands for null.
    pub fn is_false(&self) -> bool {
        matches!(self, Self::Keyword(name) | Self::Symbol(name) if matches!(&**name, "false" | "json-false"))
    }

    /// Returns whether the datum is a non-empty list of alternating keywords and values.
    pub fn is_plist(&self) -> bool {
        let Self::List(items) = self else { return false };
        let key_first = |pair: &[Value]| matches!(pair[0], Self::Keyword(_));
        !items.is_empty() && items.len().is_multiple_of(2) && items.chunks(2).all(key_first)
    }
}

/// Converts `value` to a datum: structs become maps with kebab-case names, unit variants become
/// keywords, sequences and tuples become lists, and `None` becomes `nil`.
///
/// # Errors
/// Fails when the `Serialize` of `value` fails, or when a map has a key that is not a name.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, Error> {
    value.serialize(ser::ValueSerializer)
}

/// Returns `name` with `-` for each `_`. Names are compared and kept in this form.
pub fn kebab(name: &str) -> Cow<'_, str> {
    if name.contains('_') { Cow::Owned(name.replace('_', "-")) } else { Cow::Borrowed(name) }
}

#[cfg(test)]
mod tests;
