//! Characters: the escapes that strings and character literals such as `?x` share, with Emacs's
//! modifier bits.
//!
//! The numbers are from Emacs's `character.h` and `lisp.h`. Codes end at 0x3FFFFF; the last 128
//! codes are raw bytes. Higher bits stand for modifier keys.

use super::reader::SexpReader;
use super::{ReadError, ReadErrorKind};
use crate::Value;

/// Number that is added to a raw byte to get its character code. Only the bytes 0x80 to 0xFF have
/// such codes.
pub(super) const RAW_BYTES: u32 = 0x3F_FF00;
pub(super) const MAX_CODE: u32 = 0x3F_FFFF;

pub(super) const ALT: u32 = 1 << 22;
pub(super) const SUPER: u32 = 1 << 23;
pub(super) const HYPER: u32 = 1 << 24;
pub(super) const SHIFT: u32 = 1 << 25;
pub(super) const CONTROL: u32 = 1 << 26;
pub(super) const META: u32 = 1 << 27;
pub(super) const MODIFIERS: u32 = ALT | SUPER | HYPER | SHIFT | CONTROL | META;

/// Maximum number of modifiers on a character, which bounds the recursion. There are only six
/// modifier keys.
const MAX_MODIFIERS: usize = 8;

/// Returns whether a code stands for a byte that is not text.
pub(super) fn is_raw_byte(code: u32) -> bool {
    (RAW_BYTES + 0x80..=MAX_CODE).contains(&code)
}

/// The place of an escape. The escapes `\s` and `\ ` mean different things in different places.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum EscapePlace {
    /// In a string literal.
    String,
    /// After a `?`.
    Character,
}

impl SexpReader<'_> {
    /// Reads a character literal such as `?x`, beginning at its question mark, as an integer.
    pub(super) fn read_character(&mut self) -> Result<Value, ReadError> {
        self.at += 1;
        let code = match self.next_char() {
            None => return Err(self.ended_in_character()),
            Some('\\') => self.read_escape(EscapePlace::Character, 0)?.unwrap_or(0),
            Some(plain) => u32::from(plain),
        };
        let (modifiers, base) = (code & MODIFIERS, code & !MODIFIERS);
        let base = if is_raw_byte(base) { base - RAW_BYTES } else { base };
        match self.peek() {
            None | Some(0..=b' ') => {}
            Some(next) if b"\"';()[]#?`,.".contains(&next) => {}
            Some(_) => return Err(self.syntax("a character literal with more than one character")),
        }
        Ok(Value::Int(i64::from(base | modifiers)))
    }

    /// Reads the rest of an escape, after its backslash and `depth` modifiers. Returns a code with
    /// modifiers, or `None` if the escape only separates characters or continues a line.
    pub(super) fn read_escape(
        &mut self,
        place: EscapePlace,
        depth: usize,
    ) -> Result<Option<u32>, ReadError> {
        let Some(character) = self.next_char() else { return Err(self.ended_in_character()) };
        let plain = |code: char| Ok(Some(u32::from(code)));
        match character {
            'a' => plain('\x07'),
            'b' => plain('\x08'),
            'd' => plain('\x7F'),
            'e' => plain('\x1B'),
            'f' => plain('\x0C'),
            'n' => plain('\n'),
            'r' => plain('\r'),
            't' => plain('\t'),
            'v' => plain('\x0B'),
            '\n' | ' ' if place == EscapePlace::String => Ok(None),
            '\n' => Err(self.syntax("a backslash before a line end in a character; write `?\\n`")),
            's' if place == EscapePlace::String || self.peek() != Some(b'-') => plain(' '),
            's' => self.read_modifier(SUPER, depth),
            'M' => self.read_modifier(META, depth),
            'S' => self.read_modifier(SHIFT, depth),
            'H' => self.read_modifier(HYPER, depth),
            'A' => self.read_modifier(ALT, depth),
            'C' => self.read_modifier(CONTROL, depth),
            '^' => self.read_modifiable(depth).map(|code| Some(control(code))),
            '0'..='7' => Ok(Some(self.read_octal(character))),
            'x' => self.read_hex().map(Some),
            'u' => self.read_unicode(4).map(Some),
            'U' => self.read_unicode(8).map(Some),
            'N' => self.read_named().map(Some),
            other => plain(other),
        }
    }

    fn read_modifier(&mut self, modifier: u32, depth: usize) -> Result<Option<u32>, ReadError> {
        if self.peek() != Some(b'-') {
            return Err(self.syntax("a modifier such as `\\C` without its hyphen"));
        }
        self.at += 1;
        let code = self.read_modifiable(depth)?;
        Ok(Some(if modifier == CONTROL { control(code) } else { code | modifier }))
    }

    /// Reads the character that a modifier applies to, escaped or not.
    fn read_modifiable(&mut self, depth: usize) -> Result<u32, ReadError> {
        if depth >= MAX_MODIFIERS {
            return Err(self.syntax("too many modifiers on one character"));
        }
        match self.next_char() {
            None => Err(self.ended_in_character()),
            Some('\\') => Ok(self.read_escape(EscapePlace::Character, depth + 1)?.unwrap_or(0)),
            Some(plain) => Ok(u32::from(plain)),
        }
    }

    fn read_octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(byte @ b'0'..=b'7') = self.peek() else { break };
            code = code * 8 + u32::from(byte - b'0');
            self.at += 1;
        }
        if (0x80..0x100).contains(&code) { RAW_BYTES + code } else { code }
    }

    /// Reads the digits of an escape such as `\x41`, however many there are. One or two digits may
    /// name a raw byte.
    fn read_hex(&mut self) -> Result<u32, ReadError> {
        let (mut code, mut count) = (0, 0);
        while let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) {
            code = code * 16 + digit;
            count += 1;
            self.at += 1;
            if code > META | (META - 1) {
                return Err(self.syntax("a hexadecimal escape out of range"));
            }
        }
        let raw = count < 3 && code >= 0x80;
        Ok(if raw { RAW_BYTES + code } else { code })
    }

    /// Reads the digits of `\u03bb` or `\U000003bb`, exactly `count` of them.
    fn read_unicode(&mut self, count: usize) -> Result<u32, ReadError> {
        let rest = self.bytes[self.at..].iter().take(count);
        let length = rest.take_while(|byte| byte.is_ascii_hexdigit()).count();
        if length < count {
            return Err(match self.bytes.get(self.at + length) {
                Some(_) => self.syntax(format!("a Unicode escape with fewer than {count} digits")),
                None => self.ended_in_character(),
            });
        }
        match u32::from_str_radix(&self.text[self.at..self.at + count], 16) {
            Ok(code) if code <= u32::from(char::MAX) => {
                self.at += count;
                Ok(code)
            }
            _ => Err(self.syntax("an escape beyond U+10FFFF")),
        }
    }

    /// Reads the braces of `\N{U+3bb}`. Refuses the names of characters, since reading a name would
    /// need a table of all names.
    fn read_named(&mut self) -> Result<u32, ReadError> {
        let rest = &self.text[self.at..];
        let Some(named) = rest.strip_prefix('{') else {
            return Err(self.syntax("`\\N` without a name in braces"));
        };
        let Some(end) = named.find('}') else { return Err(self.ended_in_character()) };
        let Some(digits) = named[..end].strip_prefix("U+") else {
            let message = "a character's name, which cannot be read: write \\N{U+XXXX}";
            return Err(self.fault(ReadErrorKind::Unsupported, message));
        };
        match u32::from_str_radix(digits, 16).ok().and_then(char::from_u32) {
            Some(character) if !digits.starts_with('+') => {
                self.at += end + 2;
                Ok(u32::from(character))
            }
            _ => Err(self.syntax("`\\N{U+…}` without the number of a character")),
        }
    }

    fn ended_in_character(&self) -> ReadError {
        self.fault(ReadErrorKind::IncompleteAtom, "the text ends inside a character")
    }
}

/// Applies the control key to a character. Returns a control character if one exists, otherwise the
/// character with the bit of the modifier.
fn control(code: u32) -> u32 {
    let modifiers_and_low_bits = !0o177 | 0o037;
    if code & !MODIFIERS == u32::from(b'?') {
        return 0o177 | code & MODIFIERS;
    }
    let letter = (0o101..=0o132).contains(&(code & 0o137));
    if letter || (0o100..=0o137).contains(&(code & 0o177)) {
        code & modifiers_and_low_bits
    } else {
        code | CONTROL
    }
}
