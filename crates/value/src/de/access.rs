//! Hands elements, entries and variants to serde one by one, and adds their places to errors.

use std::vec;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

use super::ValueDeserializer;
use crate::{Error, Value, kebab};

/// The elements of a list or vector.
pub(super) struct ListItems {
    rest: vec::IntoIter<Value>,
    length: usize,
    strict: bool,
}

impl ListItems {
    pub(super) fn new(items: Vec<Value>, strict: bool) -> Self {
        Self { length: items.len(), rest: items.into_iter(), strict }
    }

    /// Lets the visitor read the elements. Fails if the visitor does not read all of them, since a
    /// tuple would silently lose the rest.
    pub(super) fn visit<'de, V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let result = visitor.visit_seq(&mut self)?;
        match self.rest.len() {
            0 => Ok(result),
            left => {
                let (taken, length) = (self.length - left, self.length);
                Err(Error::misfit(
                    format_args!("a list of length {taken}"),
                    format_args!("one of length {length}"),
                ))
            }
        }
    }
}

impl<'de> SeqAccess<'de> for &mut ListItems {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let index = self.length - self.rest.len();
        let Some(value) = self.rest.next() else { return Ok(None) };
        let result = seed.deserialize(ValueDeserializer { value, strict: self.strict });
        result.map(Some).map_err(|error| error.under_index(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The entries of a map.
pub(super) struct MapEntries {
    rest: vec::IntoIter<(Box<str>, Value)>,
    pending: Option<(String, Value)>,
    strict: bool,
}

impl MapEntries {
    pub(super) fn new(entries: Vec<(Box<str>, Value)>, strict: bool) -> Self {
        Self { rest: entries.into_iter(), pending: None, strict }
    }
}

impl<'de> MapAccess<'de> for MapEntries {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        let key = key.into_string();
        let result = seed.deserialize(key.as_str().into_deserializer());
        self.pending = Some((key, value));
        result.map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (key, value) =
            self.pending.take().ok_or_else(|| Error::new("a map's value came before its key"))?;
        let value = ValueDeserializer { value, strict: self.strict };
        seed.deserialize(value).map_err(|error| error.under_key(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The name of a variant and its content, which is `nil` if there is none.
pub(super) struct Variant {
    name: Box<str>,
    content: ValueDeserializer,
}

impl Variant {
    /// Creates the variant called `name`. Changes the name to kebab-case if only that form is among
    /// the `known` names.
    pub(super) fn named(name: Box<str>, known: &[&str], content: ValueDeserializer) -> Self {
        let kebab = kebab(&name);
        let other_form = !known.contains(&&*name) && known.contains(&&*kebab);
        let name = if other_form { kebab.into() } else { name };
        Self { name, content }
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = ValueDeserializer;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self::Variant), Error> {
        Ok((seed.deserialize((&*self.name).into_deserializer())?, self.content))
    }
}

impl<'de> VariantAccess<'de> for ValueDeserializer {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        serde::Deserialize::deserialize(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_struct("", fields, visitor)
    }
}
