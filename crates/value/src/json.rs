//! Converts a [`Value`] from and to JSON text.
//!
//! Names that Contexture knows are snake_case in JSON and kebab-case in a [`Value::Map`]; see
//! [`Key`](super::Key). Data that JSON cannot express are written in the form most useful to a JSON
//! reader; see [`to_json`].

mod reader;
mod writer;

pub use self::reader::read as from_json;
pub use self::writer::write as to_json;
pub use self::writer::write_string;
use super::Value;

/// Maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 512;

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

/// Returns the JSON text of a value, as [`to_json`] writes it.
pub fn json_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    to_json(value, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Returns Emacs character codes as text, with U+FFFD for codes outside Unicode.
pub(super) fn text_of_codes(codes: &[u32]) -> String {
    let character = |code: &u32| char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER);
    codes.iter().map(character).collect()
}

#[cfg(test)]
mod tests;
