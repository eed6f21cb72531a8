//! Reads JSON text into a [`Value`], with serde_json.
//!
//! Two properties of serde_json need care. It limits nesting to 128; this module measures the depth
//! first and then lifts that limit. And with its feature `arbitrary_precision`, without which large
//! integers would lose digits, serde_json shows every number as a map with one private key, which a
//! client could also send.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::writer::float_text;
use super::{ENDED, JsonError, MAX_DEPTH};
use crate::atoms::visit_atoms;
use crate::sexp::column_of;
use crate::{Key, MAX_DATA, Value, kebab};

/// Key under which serde_json shows the digits of a number.
const NUMBER: &str = "$serde_json::private::Number";

/// Maximum number of keys that are compared one by one. With more, repeated keys are looked up in a
/// table.
const FEW_KEYS: usize = 16;

/// Reads one JSON text. Objects become maps; of several values with equal keys, the last counts.
/// [`to_json`](super::to_json) writes the same keys, strings and numbers again, except that `-0`
/// becomes `0` and `1e2` becomes `1e+2`. In calculations, numbers other than integers are rounded
/// to the nearest float.
///
/// # Errors
/// [`JsonError`] for bad UTF-8, bad syntax, escapes of lone surrogates, nesting beyond
/// [`MAX_DEPTH`], too many data, and anything after the first JSON text.
pub fn read(text: &[u8]) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let valid = String::from_utf8_lossy(&text[..error.valid_up_to()]);
        JsonError { column: valid.chars().count() + 1, message: "the text is not UTF-8".to_owned() }
    })?;
    check_size(text)?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = Datum.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    value.map_err(|error| explain(text, &error))
}

/// Fails when the text nests deeper than [`MAX_DEPTH`] or has more data than [`MAX_DATA`]. This is
/// checked first, because parsing recurses and allocates.
fn check_size(text: &str) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut data) = (0, 0_usize, 1_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                data += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' | b':' => data += 1,
            b'"' => at = end_of_string(bytes, at + 1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let column = column_of(text, at);
            let message = format!("arrays and objects nest deeper than {MAX_DEPTH} levels");
            return Err(JsonError { column, message });
        }
        if data > MAX_DATA {
            let message = format!(
                "more than {MAX_DATA} values in one message; split it into smaller messages"
            );
            return Err(JsonError { column: column_of(text, at), message });
        }
        at += 1;
    }
    Ok(())
}

/// Returns the index of the closing quote of the string whose content begins at `at`; the length of
/// the text if there is none.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

/// Converts an error of serde_json. The place is counted in characters, and is no longer part of
/// the message.
fn explain(text: &str, error: &serde_json::Error) -> JsonError {
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let byte = match error.is_eof() {
        true => text.len(),
        false => (line_start + error.column()).saturating_sub(1),
    };
    let column = column_of(text, byte);
    let full = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let said = full.strip_suffix(&place).unwrap_or(&full);
    let message = match said {
        "EOF while parsing a string" => format!("{ENDED} a string"),
        _ if error.is_eof() && text.trim().is_empty() => "the text is empty".to_owned(),
        _ if error.is_eof() => format!("{ENDED} a JSON value"),
        _ if said.contains("surrogate") || said.contains("hex escape") => {
            format!("{said}: an escape from \\uD800 to \\uDFFF is valid only as one of a pair")
        }
        _ if said.starts_with("control character") => {
            "a control character inside a string: write a newline as \\n".to_owned()
        }
        _ => said.to_owned(),
    };
    JsonError { column, message }
}

/// The visitor, and also the seed, for any JSON datum.
struct Datum;

impl<'de> DeserializeSeed<'de> for Datum {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Datum {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    visit_atoms! {}

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Datum)? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries = Builder::default();
        while let Some(key) = access.next_key::<String>()? {
            if key != NUMBER {
                entries.put(key, access.next_value_seed(Datum)?);
                continue;
            }
            match access.next_value_seed(UnderNumberKey)? {
                Under::Digits(digits) => return number(&digits),
                Under::Datum(value) => entries.put(key, value),
            }
        }
        Ok(Value::Map(entries.finish()))
    }
}

fn number<E: serde::de::Error>(digits: &str) -> Result<Value, E> {
    if let Ok(number) = digits.parse() {
        return Ok(Value::Int(number));
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Ok(Value::BigInt(digits.into()));
    }
    let number: f64 = digits.parse().map_err(|_| E::custom("not a number"))?;
    Ok(match float_text(number) == digits {
        true => Value::Float(number),
        false => Value::FloatText(number, digits.into()),
    })
}

/// The value under serde_json's private key: the digits of a number from serde_json itself, or a
/// datum that a client wrote there.
enum Under {
    Digits(String),
    Datum(Value),
}

/// The visitor that tells the digits of a number from a datum that a client wrote. It asks for a
/// newtype. For a datum in the text, serde_json then calls the visitor with a newtype. For the
/// digits, which it keeps in a plain `String`, it calls the visitor with a string.
struct UnderNumberKey;

impl<'de> DeserializeSeed<'de> for UnderNumberKey {
    type Value = Under;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Under, D::Error> {
        deserializer.deserialize_newtype_struct("Under", self)
    }
}

impl<'de> Visitor<'de> for UnderNumberKey {
    type Value = Under;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, digits: &str) -> Result<Under, E> {
        Ok(Under::Digits(digits.to_owned()))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Under, D::Error> {
        Datum.deserialize(inner).map(Under::Datum)
    }
}

/// The entries of an object so far. A later value with an equal key takes the place of the earlier
/// value.
#[derive(Default)]
struct Builder {
    entries: Vec<(String, Value)>,
    places: HashMap<String, usize>,
}

impl Builder {
    fn put(&mut self, key: String, value: Value) {
        match self.place_of(&key) {
            Some(place) => self.entries[place].1 = value,
            None => self.entries.push((key, value)),
        }
    }

    fn place_of(&mut self, key: &str) -> Option<usize> {
        if self.entries.len() <= FEW_KEYS {
            return self.entries.iter().position(|(known, _)| known == key);
        }
        for (place, (known, _)) in self.entries.iter().enumerate().skip(self.places.len()) {
            self.places.insert(known.clone(), place);
        }
        self.places.get(key).copied()
    }

    /// Returns the entries with keys in kebab-case. A key that would not survive the conversion
    /// back keeps its exact spelling.
    fn finish(mut self) -> Vec<(Key, Value)> {
        let exact: Vec<bool> = (0..self.entries.len()).map(|at| self.is_exact(at)).collect();
        let entries = self.entries.into_iter().zip(exact);
        let keyed = entries.map(|((key, value), exact)| match exact {
            true => (Key::exact(&key), value),
            false => (Key::from(&*kebab(&key)), value),
        });
        keyed.collect()
    }

    fn is_exact(&mut self, at: usize) -> bool {
        let key = &self.entries[at].0;
        if key.contains('-') || !key.contains('_') {
            return key.contains('-');
        }
        let kebab = kebab(key).into_owned();
        self.place_of(&kebab).is_some()
    }
}
