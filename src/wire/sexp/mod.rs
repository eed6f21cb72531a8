//! S-expressions as Emacs reads and prints them.
//!
//! [`read`] takes what `prin1` writes for data and refuses, by name, what is no data; [`print()`]
//! writes one line that `read` in Emacs turns into the same data. Nothing here knows a message.

mod character;
mod hash;
mod number;
mod printer;
mod reader;
mod string;
mod symbol;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::value;

pub(crate) use printer::print_str;
pub use printer::{print, print_into};
pub use reader::read;

/// The deepest nesting that is read: lists, vectors, records and quotes all count as a level.
/// `prin1` itself gives up at 200 unless told otherwise.
pub const MAX_DEPTH: usize = 512;

/// Why a text is not one datum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ReadError {
    /// What sort of failure it is, for programs.
    pub kind: ReadErrorKind,
    /// Where, in characters from the beginning of the text, counted from 1.
    pub column: usize,
    /// A phrase that says what is wrong.
    pub message: String,
}

/// The sorts of [`ReadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// There is nothing but white space and comments.
    Empty,
    /// The text ends inside a string.
    IncompleteString,
    /// The text ends inside a list, vector or record, or where a quoted datum should follow.
    IncompleteList,
    /// The text ends after a backslash in a symbol or character.
    IncompleteAtom,
    /// More levels than [`MAX_DEPTH`].
    TooDeep,
    /// Something that Emacs prints or reads, but that is no data: a buffer, byte-code, a circle.
    Unsupported,
    /// Something that Emacs would not read either.
    Syntax,
    /// Something follows the first datum.
    TrailingData,
}

/// Why a text does not give a `T`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FromStrError {
    /// The text is not one datum.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The datum does not fit the type.
    #[error(transparent)]
    Decode(#[from] value::Error),
}

/// Reads one s-expression as a `T`; see [`value::Value::decode`] for what fits what.
///
/// # Errors
/// The text is not one datum, or the datum is not a `T`.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, FromStrError> {
    Ok(read(text)?.decode()?)
}

/// Prints `value` as one s-expression; see [`value::to_value`] for what becomes what.
///
/// # Errors
/// Those of [`value::to_value`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, value::Error> {
    Ok(print(&value::to_value(value)?))
}

#[cfg(test)]
mod tests;
