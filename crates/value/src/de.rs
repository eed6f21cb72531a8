//! Converts a [`Value`] to Rust values. [`Value::decode`] is built on it.
//!
//! The datum is taken apart by value, so that texts move from the message into the struct without
//! being copied. Each error names what was expected and what was given; serde's own wording would
//! name Rust types to clients that wrote Lisp.

mod access;
mod number;

use std::collections::HashSet;

use serde::de::{Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

use super::error::one_of;
use super::whole::{self, MARKER};
use super::{Error, Value, kebab};
use access::{ListItems, MapEntries, Variant};

/// Maximum number of keys that are compared one by one. With more, repeated keys are looked up in a
/// table.
const FEW_KEYS: usize = 16;

/// A deserializer for one datum.
pub(super) struct ValueDeserializer {
    pub(super) value: Value,
    /// True if keys that a struct does not have are refused.
    pub(super) strict: bool,
}

impl ValueDeserializer {
    fn misfit<T>(&self, expected: &str) -> Result<T, Error> {
        Err(Error::misfit(expected, self.value.describe()))
    }
}

/// Implements the methods for integer types, each with its own range.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(number::integer(&self.value, <$type>::MIN, <$type>::MAX)?)
        })*
    };
}

/// Implements methods by calling others, and drops the arguments that these do not take.
macro_rules! forwarded {
    ($($method:ident($($known:ty),*) to $other:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $(_: $known,)* visitor: V) -> Result<V::Value, Error> {
            self.$other(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for ValueDeserializer {
    type Error = Error;

    integers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
    }

    forwarded! {
        deserialize_f32() to deserialize_f64;
        deserialize_str() to deserialize_string;
        deserialize_unit_struct(&'static str) to deserialize_unit;
        deserialize_tuple(usize) to deserialize_seq;
        deserialize_tuple_struct(&'static str, usize) to deserialize_seq;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Nil => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(truth),
            Value::Int(number) => visitor.visit_i64(number),
            Value::BigInt(digits) => match digits.parse() {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_string(digits.into_string()),
            },
            Value::Float(number) | Value::FloatText(number, _) => visitor.visit_f64(number),
            Value::List(_) if self.value.is_plist() => self.deserialize_map(visitor),
            Value::List(_) | Value::Vector(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
            Value::Str(_) | Value::RawStr(_) | Value::Symbol(_) | Value::Keyword(_) => {
                self.deserialize_string(visitor)
            }
            Value::Dotted(..) => self.misfit("plain data"),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Nil => visitor.visit_bool(false),
            Value::Bool(truth) => visitor.visit_bool(truth),
            _ if self.value.is_false() => visitor.visit_bool(false),
            _ => self.misfit("t or nil"),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(number::float(&self.value)?)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let character = match &self.value {
            Value::Str(text) => {
                let mut all = text.chars();
                all.next().filter(|_| all.next().is_none())
            }
            Value::Int(code) => u32::try_from(*code).ok().and_then(char::from_u32),
            _ => None,
        };
        match character {
            Some(character) => visitor.visit_char(character),
            None => self.misfit("one character"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Str(text) => visitor.visit_string(text),
            Value::Symbol(name) | Value::Keyword(name) => visitor.visit_string(name.into_string()),
            Value::RawStr(codes) => Err(not_text(&codes)),
            _ => self.misfit("a string"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Nil => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Nil => visitor.visit_unit(),
            _ => self.misfit("nil"),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == MARKER {
            whole::hand_over(self.value, visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let items = match self.value {
            Value::Nil => Vec::new(),
            Value::List(items) | Value::Vector(items) => items,
            _ => return self.misfit("a list"),
        };
        ListItems::new(items, self.strict).visit(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(MapEntries::new(entries_of(self.value)?, self.strict))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut entries = entries_of(self.value)?;
        for (key, _) in entries.iter_mut().filter(|(key, _)| !fields.contains(&&**key)) {
            let snake = key.replace('-', "_");
            match fields.contains(&&*snake) {
                true => *key = snake.into_boxed_str(),
                false if self.strict => return Err(Error::unknown_field(key, fields)),
                false => {}
            }
        }
        visitor.visit_map(MapEntries::new(entries, self.strict))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let got = self.value.describe();
        let variant = match self.value {
            Value::Symbol(name) | Value::Keyword(name) => Some((name, Value::Nil)),
            Value::Str(name) => Some((name.into(), Value::Nil)),
            Value::Map(_) | Value::List(_) => {
                <[_; 1]>::try_from(entries_of(self.value)?).ok().map(|[only]| only)
            }
            _ => None,
        };
        let Some((name, value)) = variant else {
            return Err(Error::misfit(one_of(variants), got));
        };
        let content = Self { value, strict: self.strict };
        visitor.visit_enum(Variant::named(name, variants, content))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bytes byte_buf identifier }
}

/// Returns the entries of a map with keys in kebab-case. If keys are equal, the first one counts,
/// as in `plist-get`.
fn entries_of(value: Value) -> Result<Vec<(Box<str>, Value)>, Error> {
    let mut entries = match value {
        Value::Nil => Vec::new(),
        Value::Vector(items) if items.is_empty() => Vec::new(),
        Value::Map(entries) => {
            entries.into_iter().map(|(key, value)| (key.into_text(), value)).collect()
        }
        Value::List(items) => plist_entries(items)?,
        other => return Err(Error::misfit("a property list or map", other.describe())),
    };
    for (key, _) in &mut entries {
        if key.contains('_') {
            *key = kebab(key).into();
        }
    }
    keep_first(&mut entries);
    Ok(entries)
}

fn plist_entries(items: Vec<Value>) -> Result<Vec<(Box<str>, Value)>, Error> {
    let mut entries = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let Some(key) = items.next() {
        let name = match key {
            Value::Keyword(name) => name,
            Value::Symbol(name) if name.starts_with(':') => name[1..].into(),
            other => {
                let got = other.describe();
                let message = format!("must be a property list, got {got} in place of a keyword");
                return Err(Error::new(message));
            }
        };
        match items.next() {
            Some(value) => entries.push((name, value)),
            None => return Err(Error::new("has no value").under_key(&name)),
        }
    }
    Ok(entries)
}

fn keep_first(entries: &mut Vec<(Box<str>, Value)>) {
    if entries.len() <= FEW_KEYS {
        for index in (1..entries.len()).rev() {
            if entries[..index].iter().any(|(key, _)| *key == entries[index].0) {
                entries.remove(index);
            }
        }
    } else {
        let mut seen = HashSet::with_capacity(entries.len());
        entries.retain(|(key, _)| seen.insert(key.clone()));
    }
}

fn not_text(codes: &[u32]) -> Error {
    let (index, code) = codes
        .iter()
        .enumerate()
        .find(|(_, code)| char::from_u32(**code).is_none())
        .map_or((0, 0), |(index, code)| (index + 1, *code));
    Error::new(match code {
        0x3F_FF80.. => {
            format!("must be text, but character {index} is the raw byte 0x{:02X}", code & 0xFF)
        }
        _ => format!(
            "must be text, but character {index} has the code 0x{code:X}, which is not Unicode"
        ),
    })
}
