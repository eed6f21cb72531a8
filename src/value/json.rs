//! Converts a [`Value`] from and to JSON text.
//!
//! Names that Contexture knows are snake_case in JSON and kebab-case in a [`Value::Map`]; see
//! [`Key`](super::Key). Data that JSON cannot express are written in the form most useful to a JSON
//! reader; see [`to_json`].

mod reader;
mod writer;

use super::Value;

/// Maximum nesting of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 512;

/// The reason why a text cannot be read as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct JsonError {
    /// Place in characters from the beginning of the text, counted from 1.
    pub column: usize,
    /// Phrase that says what is wrong.
    pub message: String,
}

impl JsonError {
    /// Returns whether the text ended too early, for example because a message contains a raw
    /// newline.
    pub fn is_incomplete(&self) -> bool {
        self.message.starts_with(ENDED)
    }
}

/// First words of the messages about texts that end too early.
const ENDED: &str = "the text ends inside";

/// Reads one JSON text. Objects become maps; of several values with equal keys, the last counts.
/// [`to_json`] writes the same keys, strings and numbers again, except that `-0` becomes `0` and
/// `1e2` becomes `1e+2`. In calculations, numbers other than integers are rounded to the nearest
/// float.
///
/// # Errors
/// [`JsonError`] for bad UTF-8, bad syntax, escapes of lone surrogates, nesting beyond
/// [`MAX_DEPTH`], too many data, and anything after the first JSON text.
pub fn from_json(text: &[u8]) -> Result<Value, JsonError> {
    reader::read(text)
}

/// Appends `value` to `out` as JSON on one line.
///
/// Maps and property lists become objects. Names become snake_case, except keys whose exact
/// spelling is fixed; see [`Key`](super::Key). A list whose elements are *all* keywords is a list
/// of names and becomes an array, like any other list or vector. Symbols, keywords and strings with
/// properties become strings. NaN and the infinities become the strings `"NaN"`, `"Infinity"` and
/// `"-Infinity"`. In a string, each raw byte and each other code outside Unicode becomes U+FFFD.
/// Dotted pairs, records and bool-vectors become strings that hold their s-expression.
pub fn to_json(value: &Value, out: &mut Vec<u8>) {
    writer::write(value, out);
}

/// Returns the JSON text of a value, as [`to_json`] writes it.
pub(crate) fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    to_json(value, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Appends `text` as a JSON string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    writer::write_string(text, out);
}

/// Returns Emacs character codes as text, with U+FFFD for codes outside Unicode.
pub(super) fn text_of_codes(codes: &[u32]) -> String {
    let character = |code: &u32| char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER);
    codes.iter().map(character).collect()
}

#[cfg(test)]
mod tests;
