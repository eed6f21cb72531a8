//! Reads JSON text into a [`Value`].
//!
//! The reader is this crate's own, since serde_json loses the digits of large numbers unless its
//! feature `arbitrary_precision` is on. That feature would change what `serde_json` does in every
//! program that uses this crate.

use std::collections::HashMap;

use super::writer::float_text;
use super::{ENDED, JsonError, MAX_DEPTH};
use crate::sexp::column_of;
use crate::{Key, MAX_DATA, Value, kebab};

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
    let mut reader = JsonReader { text, bytes: text.as_bytes(), at: 0, data: 0 };
    let read = reader.value(0).and_then(|value| match reader.next() {
        None => Ok(value),
        Some(_) => Err(Fault::new("trailing characters")),
    });
    read.map_err(|Fault(what)| {
        let message = match what {
            Some(what) => what,
            None if text.trim().is_empty() => "the text is empty".to_owned(),
            None => format!("{ENDED} a JSON value"),
        };
        JsonError { column: column_of(text, reader.at.min(text.len())), message }
    })
}

/// What is wrong at the reader's place; `None` if the text ends there.
struct Fault(Option<String>);

impl Fault {
    const ENDED: Self = Self(None);

    fn new(what: impl Into<String>) -> Self {
        Self(Some(what.into()))
    }
}

/// A JSON text, and the place of the next byte to read.
struct JsonReader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Number of data so far.
    data: usize,
}

impl JsonReader<'_> {
    /// Skips blanks, and returns the next byte without reading it.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Reads a value within `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        self.data += 1;
        if self.data > MAX_DATA {
            return Err(Fault::new(format!(
                "more than {MAX_DATA} values in one message; split it into smaller messages"
            )));
        }
        match self.next().ok_or(Fault::ENDED)? {
            b'[' => self.array(self.deeper(depth)?),
            b'{' => self.object(self.deeper(depth)?),
            b'"' => self.string().map(Value::Str),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Nil),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(Fault::new("expected value")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, Fault> {
        match depth < MAX_DEPTH {
            true => Ok(depth + 1),
            false => {
                let what = format!("arrays and objects nest deeper than {MAX_DEPTH} levels");
                Err(Fault::new(what))
            }
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fault> {
        for expected in word.bytes() {
            match self.bytes.get(self.at) {
                None => return Err(Fault::ENDED),
                Some(byte) if *byte == expected => self.at += 1,
                Some(_) => return Err(Fault::new(format!("expected {word}"))),
            }
        }
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut items = Vec::new();
        while self.goes_on(b']', items.is_empty())? {
            items.push(self.value(depth)?);
        }
        Ok(Value::List(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value, Fault> {
        self.at += 1;
        let mut entries = ObjectBuilder::default();
        while self.goes_on(b'}', entries.entries.is_empty())? {
            match self.next().ok_or(Fault::ENDED)? {
                b'"' => {}
                _ => return Err(Fault::new("key must be a string")),
            }
            let key = self.string()?;
            self.data += 1;
            match self.next().ok_or(Fault::ENDED)? {
                b':' => self.at += 1,
                _ => return Err(Fault::new("expected `:`")),
            }
            let value = self.value(depth)?;
            entries.put(key, value);
        }
        Ok(Value::Map(entries.finish()))
    }

    /// Returns whether another element follows, and reads what stands before it: a comma, unless it
    /// `is_first`. Reads the `end` if no element follows.
    fn goes_on(&mut self, end: u8, is_first: bool) -> Result<bool, Fault> {
        match self.next().ok_or(Fault::ENDED)? {
            byte if byte == end => self.at += 1,
            _ if is_first => return Ok(true),
            b',' => {
                self.at += 1;
                return match self.next() {
                    Some(byte) if byte == end => Err(Fault::new("trailing comma")),
                    _ => Ok(true),
                };
            }
            _ => return Err(Fault::new(format!("expected `,` or `{}`", char::from(end)))),
        }
        Ok(false)
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        self.at += usize::from(self.bytes[start] == b'-');
        let whole = self.at;
        self.digits()?;
        if self.bytes[whole] == b'0' && self.at > whole + 1 {
            self.at = whole + 1;
            return Err(Fault::new("invalid number"));
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        number(&self.text[start..self.at]).ok_or_else(|| Fault::new("invalid number"))
    }

    /// Reads one or more digits.
    fn digits(&mut self) -> Result<(), Fault> {
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match (digits, rest.is_empty()) {
            (0, true) => Err(Fault::ENDED),
            (0, false) => Err(Fault::new("invalid number")),
            _ => {
                self.at += digits;
                Ok(())
            }
        }
    }

    /// Reads a string, at whose opening quote the reader stands.
    fn string(&mut self) -> Result<String, Fault> {
        let mut read = String::new();
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if let Some(at) = rest[..length].iter().position(|byte| *byte < b' ') {
                self.at += at;
                let what = "a control character inside a string: write a newline as \\n";
                return Err(Fault::new(what));
            }
            read.push_str(&self.text[self.at..self.at + length]);
            self.at += length;
            match rest.get(length) {
                None => return Err(Fault::new(format!("{ENDED} a string"))),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(read);
                }
                Some(_) => read.push(self.escape()?),
            }
        }
    }

    /// Reads an escape, at whose backslash the reader stands.
    fn escape(&mut self) -> Result<char, Fault> {
        self.at += 1;
        let ended = || Fault::new(format!("{ENDED} a string"));
        let read = match self.bytes.get(self.at).ok_or_else(ended)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
            b'u' => return self.coded(),
            _ => return Err(Fault::new("invalid escape")),
        };
        self.at += 1;
        Ok(read)
    }

    /// Reads the rest of an escape `\uXXXX`, at whose `u` the reader stands, or of a pair of them.
    fn coded(&mut self) -> Result<char, Fault> {
        let start = self.at - 1;
        let first = self.unit()?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        if first < 0xDC00 && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 1;
            let second = self.unit()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.at = start;
        let what = "an escape from \\uD800 to \\uDFFF is valid only as one of a pair";
        Err(Fault::new(what))
    }

    /// Reads `uXXXX`, and returns the number.
    fn unit(&mut self) -> Result<u32, Fault> {
        self.at += 1;
        let Some(digits) = self.bytes.get(self.at..self.at + 4) else {
            self.at = self.bytes.len();
            return Err(Fault::new(format!("{ENDED} a string")));
        };
        let digit = |code: u32, byte: &u8| Some(code << 4 | char::from(*byte).to_digit(16)?);
        let code = digits.iter().try_fold(0, digit);
        let code = code.ok_or_else(|| Fault::new("invalid escape: \\u needs four hex digits"))?;
        self.at += 4;
        Ok(code)
    }
}

/// Returns the number that digits stand for; `None` if they stand for none.
fn number(digits: &str) -> Option<Value> {
    if let Ok(number) = digits.parse() {
        return Some(Value::Int(number));
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Some(Value::BigInt(digits.into()));
    }
    let number: f64 = digits.parse().ok()?;
    Some(match float_text(number) == digits {
        true => Value::Float(number),
        false => Value::FloatText(number, digits.into()),
    })
}

/// The entries of an object so far. A later value with an equal key takes the place of the earlier
/// value.
#[derive(Default)]
struct ObjectBuilder {
    entries: Vec<(String, Value)>,
    places: HashMap<String, usize>,
}

impl ObjectBuilder {
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
