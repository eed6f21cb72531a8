//! The error for a datum that does not fit a Rust type, worded for the sender of the datum.

use std::fmt;

use serde::{de, ser};

use super::kebab;

/// A datum that does not fit: its place and the problem.
///
/// Path and message together read as one sentence: `metadata.start-line` and `must be an integer,
/// got "x"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Place of the problem: names and indices from the outside in, such as `types[2]`. Empty for
    /// the whole datum.
    pub path: String,
    /// Phrase that says what is wrong.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path} {}", self.message),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { path: String::new(), message: message.into() }
    }

    /// Creates the error `must be EXPECTED, got GOT`.
    pub(super) fn misfit(expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Self::new(format!("must be {expected}, got {got}"))
    }

    pub(super) fn under_key(mut self, key: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path.insert_str(0, joint);
        self.path.insert_str(0, &kebab(key));
        self
    }

    pub(super) fn under_index(mut self, index: usize) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path.insert_str(0, &format!("[{index}]{joint}"));
        self
    }
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::misfit(expected, unexpected)
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::misfit(expected, unexpected)
    }

    fn invalid_length(length: usize, expected: &dyn de::Expected) -> Self {
        Self::misfit(expected, format_args!("{length} elements"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::misfit(one_of(expected), variant)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = match expected {
            [] => "there are no parameters".to_owned(),
            [only] => format!("the only parameter is {}", kebab(only)),
            names => format!("the parameters are {}", kebab(&names.join(", "))),
        };
        Self {
            path: kebab(field).into_owned(),
            message: format!("is not a parameter here; {known}"),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { path: kebab(field).into_owned(), message: "is required".to_owned() }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self { path: field.to_owned(), message: "is given twice".to_owned() }
    }
}

impl ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

/// Joins names with plain commas, since `code, text or file` reads badly beyond three names.
pub(super) fn one_of(names: &[&str]) -> String {
    match names {
        [only] => (*only).to_owned(),
        _ => format!("one of {}", names.join(", ")),
    }
}
