//! [`Value`] from and to JSON text.
//!
//! Keys are snake_case in JSON and kebab-case in a [`Value::Map`]. What JSON has no word for is
//! written as the nearest thing a JSON reader can use; see [`to_json`].

mod reader;
mod writer;

use super::Value;

/// The deepest nesting of arrays and objects that is read.
pub const MAX_DEPTH: usize = 512;

/// Why a text is not JSON that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct JsonError {
    /// Where, in characters from the beginning of the text, counted from 1.
    pub column: usize,
    /// A phrase that says what is wrong.
    pub message: String,
}

impl JsonError {
    /// Whether the text ended too early, which a raw newline in a message leads to.
    pub fn is_incomplete(&self) -> bool {
        self.message.starts_with(ENDED)
    }
}

/// How the messages about texts that end too early begin.
const ENDED: &str = "the text ends inside";

/// Reads one JSON text: objects become maps with kebab-case names, of equal names the last value
/// counts; integers stay exact; other numbers become the nearest float.
///
/// # Errors
/// Bad UTF-8, bad syntax, escapes of lone surrogates, nesting beyond [`MAX_DEPTH`], and anything
/// after the first text.
pub fn from_json(text: &[u8]) -> Result<Value, JsonError> {
    reader::read(text)
}

/// Appends `value` to `out` as JSON on one line.
///
/// Maps and property lists become objects with snake_case names; a list whose elements are *all*
/// keywords is a list of names and becomes an array like any other list or vector. Symbols,
/// keywords and strings with properties become strings. NaN and the infinities become the strings
/// `"NaN"`, `"Infinity"` and `"-Infinity"`; in strings with raw bytes each of these becomes
/// U+FFFD; dotted pairs, records and bool-vectors become strings that hold their s-expression.
pub fn to_json(value: &Value, out: &mut Vec<u8>) {
    writer::write(value, out);
}

/// The JSON text of a value, as [`to_json`] writes it.
pub fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    to_json(value, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Appends `text` as a JSON string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    writer::write_string(text, out);
}

/// The s-expression of `value`, for want of anything better.
pub(super) fn printed(value: &Value) -> String {
    crate::wire::sexp::print(value)
}

/// Emacs character codes as text, U+FFFD for what is not Unicode.
pub(super) fn text_of_codes(codes: &[u32]) -> String {
    let character = |code: &u32| char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER);
    codes.iter().map(character).collect()
}

#[cfg(test)]
mod tests;
