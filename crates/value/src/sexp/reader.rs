//! Reads text into a [`Value`] without recursion, one step per datum.
//!
//! All data read so far are on one stack of values, and an open list knows where its elements
//! begin. Deep nesting therefore does not fill the call stack. The sibling modules read atoms.

use super::{MAX_DATA, MAX_DEPTH, ReadError, ReadErrorKind};
use crate::Value;

/// Reads exactly one datum. Only white space and comments may follow it.
///
/// # Errors
/// [`ReadError`], with the place, if the text is not one datum, nests beyond [`MAX_DEPTH`], or
/// contains something that is not data.
pub fn read(text: &str) -> Result<Value, ReadError> {
    SexpReader::new(text).read_only_datum()
}

/// Tail of the dotted list that stands for a record. No list that [`read`] gives has this tail.
pub const END_OF_RECORD: Value = Value::List(Vec::new());

/// Reads a text of the store, which may contain records, such as `#s(false)`, for what s-expressions
/// cannot hold.
pub fn read_stored(text: &str) -> Result<Value, ReadError> {
    SexpReader { has_records: true, ..SexpReader::new(text) }.read_only_datum()
}

/// Reads the data at the beginning of a list whose end may be missing. Stops before the first datum
/// that may be incomplete.
pub fn read_beginning(text: &str) -> Vec<Value> {
    let Some(inside) = text.trim_start().strip_prefix('(') else { return Vec::new() };
    let (mut reader, mut found) = (SexpReader::new(inside), Vec::new());
    while let Ok(value) = reader.read_datum()
        && reader.at < inside.len()
    {
        found.push(value);
    }
    found
}

/// Returns the column of the byte at `byte`, counted from 1 in characters.
pub fn column_of(text: &str, byte: usize) -> usize {
    text[..text.floor_char_boundary(byte)].chars().count() + 1
}

/// The kind of value that an open list will become.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ListShape {
    List,
    Vector,
    Record,
    /// A string with text properties, which are dropped.
    Propertized,
    /// `'`, `#'`, a backquote or a comma; the next datum completes the list.
    Prefix,
}

/// Progress of reading an open list's dot and the tail after it.
#[derive(Clone, Copy, PartialEq)]
enum Dot {
    Absent,
    TailExpected,
    TailRead,
}

/// A list that has begun but not ended.
struct OpenList {
    shape: ListShape,
    /// Index of the list's first element among the reader's values.
    start: usize,
    /// Byte index of the list's opening character.
    at: usize,
    dot: Dot,
    /// The tail after the dot; `None` if there is none, or if the tail is a list, whose elements
    /// then continue this list.
    tail: Option<Value>,
}

/// A text, the current place in it, and everything that is not complete yet.
pub(super) struct SexpReader<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) at: usize,
    open: Vec<OpenList>,
    values: Vec<Value>,
    /// Number of data read.
    count: usize,
    /// Set for a text of the store.
    pub(super) has_records: bool,
}

impl<'t> SexpReader<'t> {
    fn new(text: &'t str) -> Self {
        let (open, values) = (Vec::new(), Vec::new());
        Self { text, bytes: text.as_bytes(), at: 0, open, values, count: 0, has_records: false }
    }

    fn read_only_datum(mut self) -> Result<Value, ReadError> {
        let value = self.read_datum()?;
        self.skip_blank();
        match self.peek() {
            None => Ok(value),
            Some(_) => {
                Err(self.fault(ReadErrorKind::TrailingData, "something follows the first datum"))
            }
        }
    }

    fn read_datum(&mut self) -> Result<Value, ReadError> {
        loop {
            self.skip_blank();
            let Some(byte) = self.peek() else { return Err(self.ended()) };
            if let Some(value) = self.step(byte)?
                && let Some(complete) = self.place(value)?
            {
                return Ok(complete);
            }
        }
    }

    /// Reads one atom, or opens or closes one list. Returns the atom or the closed list.
    fn step(&mut self, byte: u8) -> Result<Option<Value>, ReadError> {
        let complete = self.open.last().is_some_and(|list| list.dot == Dot::TailRead);
        match byte {
            b')' | b']' => return self.close(byte),
            b'.' if self.at_dot() => self.read_dot(),
            _ if complete => Err(self.syntax("more than one datum after a dot")),
            b'(' => self.open(ListShape::List, 1),
            b'[' => self.open(ListShape::Vector, 1),
            b'\'' => self.open_prefix("quote", 1),
            b'`' => self.open_prefix("`", 1),
            b',' if self.bytes.get(self.at + 1) == Some(&b'@') => self.open_prefix(",@", 2),
            b',' => self.open_prefix(",", 1),
            b'#' => return self.read_hash(),
            b'"' => return self.read_string().map(Some),
            b'?' => return self.read_character().map(Some),
            _ => return self.read_symbol().map(Some),
        }?;
        Ok(None)
    }

    /// Puts a complete datum into the innermost open list. Returns the datum if no list is open.
    fn place(&mut self, mut value: Value) -> Result<Option<Value>, ReadError> {
        self.count += 1;
        if self.count > MAX_DATA {
            let message = format!(
                "more than {MAX_DATA} values in one message; split it into smaller messages"
            );
            return Err(self.fault(ReadErrorKind::TooMany, message));
        }
        loop {
            let Some(list) = self.open.last_mut() else { return Ok(Some(value)) };
            match list.dot {
                Dot::TailExpected => {
                    list.dot = Dot::TailRead;
                    list.tail = Some(value).filter(|tail| *tail != Value::Nil);
                }
                Dot::Absent | Dot::TailRead => self.values.push(value),
            }
            if list.shape != ListShape::Prefix {
                return Ok(None);
            }
            match self.finish()? {
                Some(quoted) => value = quoted,
                None => return Ok(None),
            }
        }
    }

    pub(super) fn open(&mut self, shape: ListShape, length: usize) -> Result<(), ReadError> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("lists nest deeper than {MAX_DEPTH} levels");
            return Err(self.fault(ReadErrorKind::TooDeep, message));
        }
        let (start, at) = (self.values.len(), self.at);
        self.open.push(OpenList { shape, start, at, dot: Dot::Absent, tail: None });
        self.at += length;
        Ok(())
    }

    pub(super) fn open_prefix(&mut self, name: &str, length: usize) -> Result<(), ReadError> {
        self.open(ListShape::Prefix, length)?;
        self.values.push(Value::Symbol(name.into()));
        Ok(())
    }

    fn close(&mut self, closer: u8) -> Result<Option<Value>, ReadError> {
        let Some(list) = self.open.last() else {
            return Err(self.syntax(format!("a `{}` that closes nothing", char::from(closer))));
        };
        let expected = match list.shape {
            ListShape::Prefix => {
                return Err(self.syntax("a quote or comma without a datum after it"));
            }
            ListShape::Vector => b']',
            ListShape::List | ListShape::Record | ListShape::Propertized => b')',
        };
        if closer != expected {
            let (wanted, got) = (char::from(expected), char::from(closer));
            return Err(self.syntax(format!("a `{got}` where a `{wanted}` belongs")));
        }
        if list.dot == Dot::TailExpected {
            return Err(self.syntax("a dot without a tail"));
        }
        self.at += 1;
        self.finish()
    }

    /// Takes the innermost list off the stack and returns its value. If the list is the tail of
    /// another list, returns `None`, and the elements stay on the stack for that other list, since
    /// `(a . (b c))` is `(a b c)`.
    fn finish(&mut self) -> Result<Option<Value>, ReadError> {
        let Some(list) = self.open.pop() else { return Ok(None) };
        if matches!(list.shape, ListShape::List | ListShape::Prefix)
            && let Some(outer) = self.open.last_mut()
            && outer.dot == Dot::TailExpected
        {
            outer.dot = Dot::TailRead;
            outer.tail = list.tail;
            return Ok(None);
        }
        let items = match list.start {
            0 => std::mem::take(&mut self.values),
            start => self.values.split_off(start),
        };
        match list.shape {
            ListShape::List | ListShape::Prefix => Ok(Some(list_of(items, list.tail))),
            ListShape::Vector => Ok(Some(Value::Vector(items))),
            ListShape::Record => Ok(Some(Value::Dotted(items, Box::new(END_OF_RECORD)))),
            ListShape::Propertized => self.without_properties(items, list.at).map(Some),
        }
    }

    /// Returns the string at the beginning of `items` without its properties. Emacs would evaluate
    /// some properties when it displays the string, so none may be kept or sent on.
    fn without_properties(&self, items: Vec<Value>, at: usize) -> Result<Value, ReadError> {
        match items.into_iter().next() {
            Some(string @ (Value::Str(_) | Value::RawStr(_))) => Ok(string),
            _ => {
                let message = "`#(` without a string to carry the properties";
                Err(self.fault_at(at, ReadErrorKind::Syntax, message))
            }
        }
    }

    /// Returns whether the `.` at the current place is the dot of a pair, not the beginning of a
    /// symbol or number.
    fn at_dot(&self) -> bool {
        match self.bytes.get(self.at + 1) {
            None => true,
            Some(byte) => *byte <= b' ' || b"\"';()[]#?`,".contains(byte),
        }
    }

    fn read_dot(&mut self) -> Result<(), ReadError> {
        match self.open.last_mut() {
            Some(list) if list.shape == ListShape::List && list.dot == Dot::Absent => {
                list.dot = Dot::TailExpected;
                self.at += 1;
                Ok(())
            }
            _ => Err(self.syntax("a dot outside a list or after another dot")),
        }
    }

    /// Skips white space, no-break spaces included, and comments.
    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                0..=b' ' => self.at += 1,
                0xC2 if self.bytes.get(self.at + 1) == Some(&0xA0) => self.at += 2,
                b';' => self.skip_line(),
                _ => return,
            }
        }
    }

    pub(super) fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Returns the character at the current place, which must be a character boundary, and moves to
    /// the next character. Returns `None` at the end of the text.
    pub(super) fn next_char(&mut self) -> Option<char> {
        let character = self.text.get(self.at..)?.chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn ended(&self) -> ReadError {
        let Some(list) = self.open.last() else {
            return self.fault(ReadErrorKind::Empty, "there is no datum");
        };
        let what = match list.shape {
            ListShape::List => "list",
            ListShape::Vector => "vector",
            ListShape::Record => "record",
            ListShape::Propertized => "string with properties",
            ListShape::Prefix => "quoted datum",
        };
        let begin = column_of(self.text, list.at);
        let message = format!("the text ends inside the {what} that begins at column {begin}");
        self.fault(ReadErrorKind::IncompleteList, message)
    }

    pub(super) fn fault(&self, kind: ReadErrorKind, message: impl Into<String>) -> ReadError {
        self.fault_at(self.at, kind, message)
    }

    /// Returns the error for the byte index `at`.
    pub(super) fn fault_at(
        &self,
        at: usize,
        kind: ReadErrorKind,
        message: impl Into<String>,
    ) -> ReadError {
        ReadError { kind, column: column_of(self.text, at), message: message.into() }
    }

    pub(super) fn syntax(&self, message: impl Into<String>) -> ReadError {
        self.fault(ReadErrorKind::Syntax, message)
    }
}

fn list_of(items: Vec<Value>, tail: Option<Value>) -> Value {
    match tail {
        Some(tail) if items.is_empty() => tail,
        Some(tail) => Value::Dotted(items, Box::new(tail)),
        None if items.is_empty() => Value::Nil,
        None => Value::List(items),
    }
}
