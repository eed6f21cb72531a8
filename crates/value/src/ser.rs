//! Converts Rust values to a [`Value`]. `to_value` is built on it.

use serde::ser::{self, Serialize, Serializer};

use super::whole::{self, MARKER};
use super::{Error, Key, Value, kebab};

/// Name by which the serializer recognizes a [`Keyword`].
const KEYWORD: &str = "$contexture::Keyword";

/// A name that becomes a keyword in a datum, and text in any other format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keyword<T>(pub T);

impl<T: AsRef<str>> Serialize for Keyword<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(KEYWORD, self.0.as_ref())
    }
}

/// The serializer behind [`super::to_value`].
pub(super) struct ValueSerializer;

/// The elements of a list so far, and the enum variant that will hold the list, if any.
pub(super) struct ListBuilder {
    variant: Option<&'static str>,
    items: Vec<Value>,
}

/// Number of entries reserved for a map whose length serde does not know: a struct with flattened
/// fields.
const FLATTENED_FIELDS: usize = 16;

/// The entries of a map so far, the key that waits for its value, and the enum variant that will
/// hold the map, if any.
pub(super) struct MapBuilder {
    variant: Option<&'static str>,
    entries: Vec<(Key, Value)>,
    key: Option<Key>,
}

/// Implements the serializers of atoms, each with an existing conversion.
macro_rules! atoms {
    ($($method:ident($type:ty) => $make:expr;)*) => {
        $(fn $method(self, atom: $type) -> Result<Value, Error> { Ok($make(atom)) })*
    };
}

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = ListBuilder;
    type SerializeTuple = ListBuilder;
    type SerializeTupleStruct = ListBuilder;
    type SerializeTupleVariant = ListBuilder;
    type SerializeMap = MapBuilder;
    type SerializeStruct = MapBuilder;
    type SerializeStructVariant = MapBuilder;

    atoms! {
        serialize_bool(bool) => Value::Bool;
        serialize_i8(i8) => |n| Value::Int(i64::from(n));
        serialize_i16(i16) => |n| Value::Int(i64::from(n));
        serialize_i32(i32) => |n| Value::Int(i64::from(n));
        serialize_i64(i64) => Value::Int;
        serialize_u8(u8) => |n| Value::Int(i64::from(n));
        serialize_u16(u16) => |n| Value::Int(i64::from(n));
        serialize_u32(u32) => |n| Value::Int(i64::from(n));
        serialize_u64(u64) => Value::from;
        serialize_f32(f32) => |n| Value::Float(f64::from(n));
        serialize_f64(f64) => Value::Float;
        serialize_char(char) => |c: char| Value::Str(c.to_string());
        serialize_i128(i128) => |n| i64::try_from(n).map_or_else(|_| big(n), Value::Int);
        serialize_u128(u128) => |n| i64::try_from(n).map_or_else(|_| big(n), Value::Int);
        serialize_str(&str) => Value::from;
        serialize_bytes(&[u8]) => |bytes: &[u8]| Value::of(bytes);
    }

    fn serialize_none(self) -> Result<Value, Error> {
        Ok(Value::Nil)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Error> {
        Ok(Value::Nil)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, Error> {
        Ok(Value::Nil)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Value, Error> {
        Ok(Value::Keyword(kebab(variant).into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        match name {
            MARKER => whole::capture(value, self),
            KEYWORD => keyword(value.serialize(self)?),
            _ => value.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Error> {
        Ok(within(Some(variant), value.serialize(self)?))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListBuilder, Error> {
        Ok(ListBuilder { variant: None, items: Vec::with_capacity(length.unwrap_or(0)) })
    }

    fn serialize_tuple(self, length: usize) -> Result<ListBuilder, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        length: usize,
    ) -> Result<ListBuilder, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListBuilder, Error> {
        Ok(ListBuilder { variant: Some(variant), items: Vec::with_capacity(length) })
    }

    fn serialize_map(self, length: Option<usize>) -> Result<MapBuilder, Error> {
        let entries = Vec::with_capacity(length.unwrap_or(FLATTENED_FIELDS));
        Ok(MapBuilder { variant: None, entries, key: None })
    }

    fn serialize_struct(self, _name: &'static str, length: usize) -> Result<MapBuilder, Error> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<MapBuilder, Error> {
        let entries = Vec::with_capacity(length);
        Ok(MapBuilder { variant: Some(variant), entries, key: None })
    }
}

impl ListBuilder {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let index = self.items.len();
        let item = value.serialize(ValueSerializer).map_err(|error| error.under_index(index))?;
        self.items.push(item);
        Ok(())
    }
}

/// Implements the serializers of types that have elements without names.
macro_rules! lists {
    ($($trait:ident $method:ident;)*) => {$(
        impl ser::$trait for ListBuilder {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(within(self.variant, Value::List(self.items)))
            }
        }
    )*};
}

lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

impl MapBuilder {
    fn put<T: Serialize + ?Sized>(&mut self, key: Key, value: &T) -> Result<(), Error> {
        let value = value.serialize(ValueSerializer).map_err(|error| error.under_key(&key))?;
        self.entries.push((key, value));
        Ok(())
    }

    fn finish(self) -> Value {
        within(self.variant, Value::Map(self.entries))
    }
}

impl ser::SerializeMap for MapBuilder {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = Some(match key.serialize(ValueSerializer)? {
            Value::Str(name) => name.into(),
            Value::Keyword(name) | Value::Symbol(name) | Value::BigInt(name) => name.into(),
            Value::Int(number) => number.to_string().into(),
            other => return Err(Error::misfit("a name as the key of a map", other.describe())),
        });
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::new("a map's value came before its key"))?;
        self.put(key, value)
    }

    fn end(self) -> Result<Value, Error> {
        Ok(self.finish())
    }
}

/// Implements the serializers of types that have fields.
macro_rules! structs {
    ($($trait:ident)*) => {$(
        impl ser::$trait for MapBuilder {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.put(name_of(name), value)
            }

            fn end(self) -> Result<Value, Error> {
                Ok(self.finish())
            }
        }
    )*};
}

structs! { SerializeStruct SerializeStructVariant }

/// Returns the keyword that has the text as its name.
fn keyword(text: Value) -> Result<Value, Error> {
    match text {
        Value::Str(name) => Ok(Value::Keyword(name.into_boxed_str())),
        other => Err(Error::misfit("a name", other.describe())),
    }
}

fn within(variant: Option<&'static str>, content: Value) -> Value {
    match variant {
        Some(name) => Value::Map(vec![(name_of(name), content)]),
        None => content,
    }
}

fn name_of(rust_name: &str) -> Key {
    Key::from(&*kebab(rust_name))
}

fn big(number: impl ToString) -> Value {
    Value::BigInt(number.to_string().into_boxed_str())
}
