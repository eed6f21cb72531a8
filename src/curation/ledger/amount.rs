//! Brings amounts, which are numbers with their units, into a form in which they can be compared.

use super::lexicon::{dimension, short};

/// An amount in comparable form: `30 s` and `30 seconds` are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Amount {
    /// Dimension of the unit, such as `time`; empty for a bare number or an unknown unit.
    pub(super) dimension: &'static str,
    number: String,
    unit: String,
}

impl Amount {
    /// Parses an amount such as [`quantities`](super::number::quantities) returns.
    pub(super) fn of(text: &str) -> Self {
        let end = text.find(|c: char| !(c.is_ascii_digit() || ".,_$€".contains(c)));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim_start_matches(['-', ' ']).to_lowercase();
        let number = number.replace([',', '_', '$', '€'], "");
        Self { dimension: dimension(&unit).unwrap_or(""), number, unit: short(&unit).to_owned() }
    }

    /// Returns the unit if it names counted things, such as `workers`; otherwise an empty text.
    pub(super) fn counted(&self) -> &str {
        if self.dimension == "count" { &self.unit } else { "" }
    }
}
