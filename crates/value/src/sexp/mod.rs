//! S-expressions as Emacs reads and prints them.
//!
//! [`read`] accepts data in Emacs's syntax, written by `prin1` or by a person. It refuses objects
//! that are not data, such as buffers, byte-code and records, with an error that names them, and
//! drops the text properties of strings. [`print()`] writes one line
//! that `read` in Emacs turns into the same data. This module knows nothing of the protocol's
//! messages.

mod character;
mod hash;
mod number;
mod printer;
mod reader;
mod string;
mod symbol;

use crate::MAX_DATA;

pub use printer::{into_text, print_items};
pub use printer::{print, print_into};
pub use reader::read;
pub use reader::{END_OF_RECORD, column_of, read_beginning, read_stored};
pub use string::print_str;

/// Maximum nesting. Lists, vectors and quotes all count as a level. `prin1` itself stops
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
    /// The text ends inside a list or vector, or before the datum that a quote needs.
    IncompleteList,
    /// The text ends inside a character, or after a backslash in a symbol.
    IncompleteAtom,
    /// The text nests deeper than [`MAX_DEPTH`].
    TooDeep,
    /// The text has more data than [`MAX_DATA`].
    TooMany,
    /// The text has something that Emacs prints or reads, but that is not data: a buffer,
    /// byte-code, a record, a circle.
    Unsupported,
    /// The text is not valid in Emacs either, except for huge integers in a radix other than 10.
    Syntax,
    /// Something follows the first datum.
    TrailingData,
}

#[cfg(test)]
mod tests;
