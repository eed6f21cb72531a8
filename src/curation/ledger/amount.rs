//! Compares amounts.

use super::lexicon::{dimension, short};

/// An amount in comparable form: `30 s` and `30 seconds` are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Amount {
    /// Dimension of the unit. Empty for a bare number.
    pub(super) dimension: &'static str,
    number: String,
    unit: String,
}

impl Amount {
    /// Parses an amount that [`quantities`](super::number::quantities) returned.
    pub(super) fn of(text: &str) -> Self {
        let end = text.find(|c: char| !(c.is_ascii_digit() || ".,_$€".contains(c)));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim_start_matches(['-', ' ']).to_lowercase();
        let number = number.replace([',', '_', '$', '€'], "");
        Self { dimension: dimension(&unit).unwrap_or(""), number, unit: short(&unit).to_owned() }
    }
}

impl Amount {
    /// Returns the unit if it names counted things, such as `workers`; otherwise an empty text.
    pub(super) fn counted(&self) -> &str {
        if self.dimension == "count" { &self.unit } else { "" }
    }
}
