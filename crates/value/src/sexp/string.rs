//! String literals: Unicode text, or character codes when a string is not Unicode text.

use super::character::{
    CONTROL, EscapePlace, MAX_CODE, META, MODIFIERS, RAW_BYTES, SHIFT, is_raw_byte,
};
use super::reader::{SexpReader, column_of};
use super::{ReadError, ReadErrorKind};
use crate::Value;
use crate::escape::push_content;

impl SexpReader<'_> {
    /// Reads a string, beginning at its opening quote.
    pub(super) fn read_string(&mut self) -> Result<Value, ReadError> {
        let begin = self.at;
        self.at += 1;
        let mut content = StringContent::Text(String::new());
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
                return Err(self.ended_in_string(begin));
            };
            content.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Ok(content.into_value());
            }
            if let Some(code) = self.read_string_escape(begin)? {
                content.push(code);
            }
        }
    }

    /// Reads the rest of an escape, after its backslash. Returns a character code, or `None` if the
    /// escape stands for nothing.
    fn read_string_escape(&mut self, begin: usize) -> Result<Option<u32>, ReadError> {
        let escape =
            self.read_escape(EscapePlace::String, 0).map_err(|fault| match fault.kind {
                ReadErrorKind::IncompleteAtom => self.ended_in_string(begin),
                _ => fault,
            })?;
        let Some(code) = escape else { return Ok(None) };
        match in_string(code) {
            Some(code) => Ok(Some(code)),
            None => Err(self.syntax("a modifier that strings cannot hold")),
        }
    }

    fn ended_in_string(&self, begin: usize) -> ReadError {
        let begin = column_of(self.text, begin);
        let message = format!("the text ends inside the string that begins at column {begin}");
        self.fault_at(self.bytes.len(), ReadErrorKind::IncompleteString, message)
    }
}

/// Appends `text` as a string literal on one line. Octal escapes always have three digits, so that
/// a digit after an escape is never read as part of the escape.
pub fn print_str(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_content(text, out, print_octal);
    out.push(b'"');
}

/// Appends character codes as a string literal.
pub(super) fn print_raw_string(codes: &[u32], out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    out.push(b'"');
    for code in codes {
        match char::from_u32(*code) {
            Some(character) => {
                push_content(character.encode_utf8(&mut buffer), out, print_octal);
            }
            None => print_code(*code, out),
        }
    }
    out.push(b'"');
}

fn print_octal(byte: u8, out: &mut Vec<u8>) {
    let digit = |shift: u8| b'0' + (byte >> shift & 7);
    out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
}

/// Appends a code that is not a Unicode character.
fn print_code(code: u32, out: &mut Vec<u8>) {
    let text = match code {
        0xD800..=0xDFFF => format!("\\u{code:04x}"),
        // The escaped space ends the digits and stands for nothing.
        _ if code <= MAX_CODE && !is_raw_byte(code) => format!("\\x{code:x}\\ "),
        _ if is_raw_byte(code) => return print_octal((code & 0xFF) as u8, out),
        _ => char::REPLACEMENT_CHARACTER.to_string(),
    };
    out.extend_from_slice(text.as_bytes());
}

/// The content of a string being read.
enum StringContent {
    Text(String),
    Codes(Vec<u32>),
}

impl StringContent {
    fn push_str(&mut self, text: &str) {
        match self {
            Self::Text(content) => content.push_str(text),
            Self::Codes(codes) => codes.extend(text.chars().map(u32::from)),
        }
    }

    fn push(&mut self, code: u32) {
        match (&mut *self, char::from_u32(code)) {
            (Self::Text(text), Some(character)) => text.push(character),
            (Self::Text(text), None) => {
                let mut codes: Vec<u32> = text.chars().map(u32::from).collect();
                codes.push(code);
                *self = Self::Codes(codes);
            }
            (Self::Codes(codes), _) => codes.push(code),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::Str(text),
            Self::Codes(codes) => Value::RawStr(codes),
        }
    }
}

/// Returns the code that an escape means in a string. Some modifiers change an ASCII character; any
/// other modifier is not allowed in strings and gives `None`.
fn in_string(escape: u32) -> Option<u32> {
    let (mut modifiers, mut code) = (escape & MODIFIERS, escape & !MODIFIERS);
    if let Ok(ascii @ 0..0x80) = u8::try_from(code) {
        if modifiers == CONTROL && matches!(ascii, b' ' | b'?') {
            code = if ascii == b' ' { 0 } else { 0x7F };
            modifiers = 0;
        }
        if modifiers & SHIFT != 0 && ascii.is_ascii_alphabetic() {
            code = u32::from(ascii.to_ascii_uppercase());
            modifiers &= !SHIFT;
        }
        if modifiers & META != 0 {
            code = RAW_BYTES + (code | 0x80);
            modifiers &= !META;
        }
    }
    (modifiers == 0).then_some(code)
}
