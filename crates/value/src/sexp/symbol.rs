//! Symbols: reads names with escapes, and prints names with all the escapes that they need.

use super::number;
use super::reader::SexpReader;
use super::{ReadError, ReadErrorKind};
use crate::Value;

/// Quotation marks that Emacs refuses at the beginning of a symbol, because they look like `'` or
/// `"`.
const STRANGE_QUOTES: &[char] = &[
    '\u{2018}', '\u{2019}', '\u{201B}', '\u{201C}', '\u{201D}', '\u{201F}', '\u{301E}', '\u{FF02}',
    '\u{FF07}',
];

impl<'t> SexpReader<'t> {
    /// Reads a symbol, keyword or number. The current place must not be the end of the text.
    pub(super) fn read_symbol(&mut self) -> Result<Value, ReadError> {
        let token = self.token();
        if self.peek() == Some(b'\\') {
            return self.read_escaped_name(token.to_owned());
        }
        let numeric = token.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        match numeric.then(|| number::parse(token)).flatten() {
            Some(number) => Ok(number),
            None => Ok(intern(token)),
        }
    }

    /// Reads the rest of a name, beginning at its first backslash. A name with a backslash is never
    /// a number.
    fn read_escaped_name(&mut self, mut name: String) -> Result<Value, ReadError> {
        while self.peek() == Some(b'\\') {
            self.at += 1;
            let Some(escaped) = self.next_char() else {
                let message = "the text ends after a backslash in a symbol";
                return Err(self.fault(ReadErrorKind::IncompleteAtom, message));
            };
            name.push(escaped);
            name.push_str(self.token());
        }
        Ok(intern(&name))
    }

    /// Reads the name after `#_`, which is never a number even if it looks like one.
    pub(super) fn read_name(&mut self) -> Result<Value, ReadError> {
        let name = self.token().to_owned();
        self.read_escaped_name(name)
    }

    /// Skips to the end of the name or the next backslash. Returns the skipped text.
    fn token(&mut self) -> &'t str {
        let start = self.at;
        while let Some(byte) = self.peek() {
            let no_break_space = byte == 0xC2 && self.bytes.get(self.at + 1) == Some(&0xA0);
            if byte == b'\\' || ends_name(byte) || no_break_space {
                break;
            }
            self.at += 1;
        }
        &self.text[start..self.at]
    }
}

/// Returns the datum that has `name` as its name: `nil`, `t`, a keyword, or any other symbol.
pub(super) fn intern(name: &str) -> Value {
    match name {
        "nil" => Value::Nil,
        "t" => Value::Bool(true),
        _ => match name.strip_prefix(':') {
            Some(rest) => Value::Keyword(rest.into()),
            None => Value::Symbol(name.into()),
        },
    }
}

/// Appends a symbol. Line ends in its name become the pictures U+240A and U+240D: symbols have no
/// escape for a line end, and an unescaped line end would end the message.
pub(super) fn print_symbol(name: &str, out: &mut Vec<u8>) {
    if name.is_empty() {
        out.extend_from_slice(b"##");
        return;
    }
    if needs_leading_escape(name) {
        out.push(b'\\');
        let first = name.chars().next().map_or(0, char::len_utf8);
        let (first, rest) = name.split_at(first);
        push_name(first, false, out);
        push_name(rest, true, out);
    } else {
        push_name(name, true, out);
    }
}

/// Appends a keyword, given without its colon.
pub(super) fn print_keyword(name: &str, out: &mut Vec<u8>) {
    out.push(b':');
    push_name(name, true, out);
}

/// Returns whether the beginning of a name needs an escape. Does not check for characters that need
/// an escape anywhere in a name.
fn needs_leading_escape(name: &str) -> bool {
    let mut rest = name.chars();
    match rest.next() {
        Some('?') => true,
        Some('.') => {
            let is_symbol = rest.next().is_some_and(|next| next.is_alphanumeric() || next == '.');
            !is_symbol || number::parse(name).is_some()
        }
        Some('0'..='9' | '+' | '-') => number::parse(name).is_some(),
        Some(first) => STRANGE_QUOTES.contains(&first),
        None => false,
    }
}

fn push_name(name: &str, escape: bool, out: &mut Vec<u8>) {
    let is_plain = |byte: u8| byte.is_ascii() && byte != b'\\' && !ends_name(byte);
    if name.bytes().all(is_plain) {
        out.extend_from_slice(name.as_bytes());
        return;
    }
    let mut buffer = [0; 4];
    for character in name.chars() {
        let shown = match character {
            '\n' => '\u{240A}',
            '\r' => '\u{240D}',
            other => other,
        };
        if escape && (shown == '\u{A0}' || shown == '\\' || is_ascii_end(shown)) {
            out.push(b'\\');
        }
        out.extend_from_slice(shown.encode_utf8(&mut buffer).as_bytes());
    }
}

fn is_ascii_end(character: char) -> bool {
    u8::try_from(character).is_ok_and(ends_name)
}

/// Returns whether `byte` ends a name unless a backslash precedes it.
fn ends_name(byte: u8) -> bool {
    byte <= b' '
        || matches!(byte, b'"' | b'\'' | b';' | b'(' | b')' | b'[' | b']' | b'#' | b'`' | b',')
}
