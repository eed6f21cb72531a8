//! JSON values of a recording.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gathered::Gathered;
use super::report::UNEXPECTED;

/// A JSON value of a recording, with the number of its line.
pub(super) type JsonRecord<'a> = (u64, &'a str);

/// Reads JSON values. Those that cannot be read are counted as left out.
pub(super) fn parsed<'a, T: Deserialize<'a>>(
    records: &[JsonRecord<'a>],
    into: &mut Gathered,
) -> Vec<(u64, T)> {
    let mut read = Vec::new();
    for (line, text) in records {
        // Two values may stand on one line, if a program was ended while it wrote.
        for value in serde_json::Deserializer::from_str(text).into_iter::<T>() {
            match value {
                Ok(value) => read.push((*line, value)),
                Err(error) => {
                    into.line = *line;
                    let is_json = error.classify() == serde_json::error::Category::Data;
                    into.leave_out("line", if is_json { UNEXPECTED } else { "not JSON" });
                }
            }
        }
    }
    read
}

/// Reads each of several JSON values by itself. Those that cannot be read are counted as left out, as
/// `kind`.
pub(super) fn each<'a, T: Deserialize<'a>>(
    values: &[&'a RawValue],
    kind: &str,
    into: &mut Gathered,
) -> Vec<T> {
    let mut read = Vec::new();
    for value in values {
        match serde_json::from_str(value.get()) {
            Ok(value) => read.push(value),
            Err(_) => into.leave_out(kind, UNEXPECTED),
        }
    }
    read
}
