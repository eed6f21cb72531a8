//! Passes a whole [`Value`] through serde, whose data model cannot tell a symbol from a string.
//!
//! `Value` asks serde for a newtype struct with a name that no other type uses. The serializer and
//! deserializer of `Value` know the name. They pass the datum through a thread-local slot instead
//! of serde. The slot is filled and emptied within one call. Every other format sees an ordinary
//! newtype and gets the plain form, with symbols and keywords as strings. This is also true of
//! `#[serde(flatten)]`, which buffers data in a format of its own.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Value;
use super::atoms::visit_atoms;
use super::json::text_of_codes;
use super::sexp::print;

/// Name by which the serializer and deserializer of `Value` recognize a `Value`.
pub(super) const MARKER: &str = "$contexture::Value";

thread_local! {
    static SLOT: RefCell<Option<Value>> = const { RefCell::new(None) };
    static WANTED: Cell<bool> = const { Cell::new(false) };
}

/// Hands `value` to the visitor in the `Deserialize` of `Value`.
pub(super) fn hand_over<'de, V: Visitor<'de>>(
    value: Value,
    visitor: V,
) -> Result<V::Value, super::Error> {
    SLOT.replace(Some(value));
    visitor.visit_unit()
}

/// Returns a copy of the `Value` that `inner` was made from; `inner` is the content of the newtype
/// named [`MARKER`].
pub(super) fn capture<T: Serialize + ?Sized, S>(inner: &T, serializer: S) -> Result<Value, S::Error>
where
    S: Serializer<Ok = Value>,
{
    WANTED.set(true);
    let plain = inner.serialize(serializer)?;
    Ok(SLOT.take().unwrap_or(plain))
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(MARKER, WholeVisitor)
    }
}

struct WholeVisitor;

impl<'de> Visitor<'de> for WholeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any datum")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(SLOT.take().unwrap_or_default())
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        Value::deserialize(inner)
    }

    visit_atoms! {}

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(access)).map(Value::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            entries.push((key.into(), value));
        }
        Ok(Value::Map(entries))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(MARKER, &Plain(self))
    }
}

/// The content of the newtype named [`MARKER`].
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if WANTED.replace(false) {
            SLOT.replace(Some(self.0.clone()));
            return serializer.serialize_unit();
        }
        match self.0 {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::BigInt(digits) => match digits.parse() {
                Ok(number) => serializer.serialize_i128(number),
                Err(_) => serializer.serialize_str(digits),
            },
            Value::Float(number) | Value::FloatText(number, _) => serializer.serialize_f64(*number),
            Value::Str(text) => serializer.serialize_str(text),
            Value::RawStr(codes) => serializer.serialize_str(&text_of_codes(codes)),
            Value::Symbol(name) | Value::Keyword(name) => serializer.serialize_str(name),
            Value::Map(entries) => serializer.collect_map(entries.iter().map(|(k, v)| (k, v))),
            Value::List(items) | Value::Vector(items) => serializer.collect_seq(items),
            Value::Dotted(..) => serializer.serialize_str(&print(self.0)),
        }
    }
}
