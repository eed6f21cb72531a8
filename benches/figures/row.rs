//! One line of the table, and the few statistics that the measures share.

use std::fmt;

/// A measure beside its target.
pub(crate) struct Row {
    /// Name of the measure.
    pub(crate) measure: String,
    /// Our figure, with its unit.
    pub(crate) ours: String,
    /// Figure it is compared with: the limit, or another measure.
    pub(crate) peer: String,
    /// Ratio of the two figures.
    pub(crate) ratio: f64,
    /// Required ratio.
    pub(crate) target: Target,
}

/// The required range of a ratio.
pub(crate) enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// From the first to the second.
    Within(f64, f64),
}

impl Row {
    /// Creates a measure that must not exceed `limit`, both in `unit`.
    pub(crate) fn at_most(measure: &str, value: f64, limit: f64, unit: &str) -> Self {
        Self { target: Target::AtMost(1.0), ..Self::at_least(measure, value, limit, unit) }
    }

    /// Creates a measure that must reach `limit`, both in `unit`.
    pub(crate) fn at_least(measure: &str, value: f64, limit: f64, unit: &str) -> Self {
        Self {
            measure: measure.to_owned(),
            ours: format!("{} {unit}", figure(value)),
            peer: format!("{} {unit}", figure(limit)),
            ratio: value / limit,
            target: Target::AtLeast(1.0),
        }
    }

    fn met(&self) -> bool {
        match self.target {
            Target::AtLeast(least) => self.ratio >= least,
            Target::AtMost(most) => self.ratio <= most,
            Target::Within(least, most) => (least..=most).contains(&self.ratio),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measure, ours, peer, ratio, target } = self;
        let verdict = if self.met() { "yes" } else { "NO" };
        write!(f, "{measure}\t{ours}\t{peer}\t{ratio:.2}\t{target}\t{verdict}")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::Within(least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// Formats a number with about three significant digits.
fn figure(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Returns the median of `values`, which must not be empty.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the 95th percentile of `values`, which must not be empty.
pub(crate) fn p95(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * 95).div_ceil(100) - 1]
}

/// Returns the least of `values`: the cost when nothing else runs on the machine.
pub(crate) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
