//! S-expressions as Emacs reads and prints them.
//!
//! [`read`] accepts data in Emacs's syntax, written by `prin1` or by a person. It refuses objects
//! that are not data, such as buffers, with an error that names them. [`print()`] writes one line
//! that `read` in Emacs turns into the same data. This module knows nothing of the protocol's
//! messages.

mod character;
mod hash;
mod number;
mod printer;
mod reader;
mod string;
mod symbol;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value::{self, MAX_DATA};

pub(crate) use printer::{into_text, print_str};
pub use printer::{print, print_into};
pub use reader::read;
pub(crate) use reader::read_beginning;

/// Maximum nesting. Lists, vectors, records and quotes all count as a level. `prin1` itself stops
/// at 200 by default.
pub const MAX_DEPTH: usize = 512;

/// The reason why a text cannot be read as one datum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ReadError {
    /// Kind of the failure, for programs.
    pub kind: ReadErrorKind,
    /// Place in characters from the beginning of the text, counted from 1.
    pub column: usize,
    /// Phrase that says what is wrong.
    pub message: String,
}

/// The kinds of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// The text has only white space and comments.
    Empty,
    /// The text ends inside a string.
    IncompleteString,
    /// The text ends inside a list, vector or record, or before the datum that a quote needs.
    IncompleteList,
    /// The text ends inside a character, or after a backslash in a symbol.
    IncompleteAtom,
    /// The text nests deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The text has more data than [`MAX_DATA`].
    TooMany,
    /// The text has something that Emacs prints or reads, but that is not data: a buffer,
    /// byte-code, a circle.
    Unsupported,
    /// The text is not valid in Emacs either, except for huge integers in a radix other than 10.
    Syntax,
    /// Something follows the first datum.
    TrailingData,
}

/// The reason why [`from_str`] fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FromStrError {
    /// The text is not one datum.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The datum does not fit the type.
    #[error(transparent)]
    Decode(#[from] value::Error),
}

/// Reads one s-expression as a `T`; see [`value::Value::decode`] for the conversion.
///
/// # Errors
/// [`FromStrError`] if the text is not one datum, or the datum is not a `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, FromStrError> {
    Ok(read(text)?.decode()?)
}

/// Prints `value` as one s-expression; see [`value::to_value`] for the conversion.
///
/// # Errors
/// Same as those of [`value::to_value`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, value::Error> {
    Ok(print(&value::to_value(value)?))
}

#[cfg(test)]
mod tests;
