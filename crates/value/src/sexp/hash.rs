//! Reads everything that begins with `#`: some kinds of data, and many objects that are refused
//! because they are not data.

use super::number;
use super::reader::{ListShape, SexpReader};
use super::symbol::intern;
use super::{ReadError, ReadErrorKind};
use crate::Value;

/// Maximum number of characters of an unreadable object to quote in an error message.
const LONGEST_QUOTE: usize = 40;

impl SexpReader<'_> {
    /// Reads a datum that begins with `#`. Returns the value of an atom, and `None` when a list was
    /// opened or a line skipped.
    pub(super) fn read_hash(&mut self) -> Result<Option<Value>, ReadError> {
        let next = self.bytes.get(self.at + 1).copied();
        match next {
            Some(b'\'') => self.open_prefix("function", 2)?,
            Some(b'(') => self.open(ListShape::Propertized, 2)?,
            Some(b's') if self.has_records && self.bytes.get(self.at + 2) == Some(&b'(') => {
                self.open(ListShape::Record, 3)?
            }
            Some(b'!') => self.skip_line(),
            Some(b'#') => {
                self.at += 2;
                return Ok(Some(intern("")));
            }
            Some(b'_') => {
                self.at += 2;
                return self.read_name().map(Some);
            }
            Some(b'x' | b'X') => return self.read_radix(2, 16).map(Some),
            Some(b'o' | b'O') => return self.read_radix(2, 8).map(Some),
            Some(b'b' | b'B') => return self.read_radix(2, 2).map(Some),
            Some(b'0'..=b'9') => return self.read_hash_digits().map(Some),
            _ => return Err(self.refuse_hash(next)),
        }
        Ok(None)
    }

    fn refuse_hash(&self, next: Option<u8>) -> ReadError {
        let what = match next {
            Some(b'<') => {
                let quote: String = self.text[self.at..].chars().take(LONGEST_QUOTE).collect();
                let quote = quote.split_inclusive('>').next().unwrap_or("#<").to_owned();
                format!("an object that cannot be read back, {}", quote.escape_debug())
            }
            Some(b'[') => "byte-code, `#[`".to_owned(),
            Some(b's') if self.bytes.get(self.at + 2) == Some(&b'(') => {
                "a record or hash table, `#s(`".to_owned()
            }
            Some(b'&') => "a bool-vector, `#&`".to_owned(),
            Some(b'^') => "a char-table, `#^`".to_owned(),
            Some(b':') => "an uninterned symbol, `#:`".to_owned(),
            Some(b'$') => "the file being loaded, `#$`".to_owned(),
            Some(b'@') => "a skipped doc string, `#@`".to_owned(),
            _ => return self.syntax("a `#` with no known syntax after it"),
        };
        self.unsupported(&what)
    }

    fn unsupported(&self, what: &str) -> ReadError {
        let advice = "send strings, numbers, symbols, lists and vectors instead";
        self.fault(ReadErrorKind::Unsupported, format!("{what}, cannot be sent; {advice}"))
    }

    /// Reads an integer such as `#24rNN`, in radix 24. Refuses circular data, which `prin1` writes
    /// with labels as `#1=` and `#1#`, or without labels as `#0`.
    fn read_hash_digits(&mut self) -> Result<Value, ReadError> {
        let digits = self.bytes[self.at + 1..].iter().take_while(|byte| byte.is_ascii_digit());
        let length = digits.count();
        if self.bytes.get(self.at + 1 + length) != Some(&b'r') {
            return Err(self.unsupported("circular or shared data, `#1=` or `#1#`"));
        }
        let radix = self.text[self.at + 1..self.at + 1 + length].parse();
        match radix {
            Ok(radix @ 2..=36) => self.read_radix(length + 2, radix),
            _ => Err(self.syntax("a radix that is not from 2 to 36")),
        }
    }

    /// Reads an integer in `radix`. Its sign or first digit is `prefix` bytes after the current
    /// place.
    fn read_radix(&mut self, prefix: usize, radix: u32) -> Result<Value, ReadError> {
        let rest = &self.text[self.at + prefix..];
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        match number::parse_radix(&rest[..sign + digits], radix) {
            Some(number) => {
                self.at += prefix + sign + digits;
                Ok(number)
            }
            None => Err(self.syntax(format!("a bad or huge integer in radix {radix}"))),
        }
    }
}
