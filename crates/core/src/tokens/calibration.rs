//! Corrects the counts for a model by the usage that its provider reports.
//!
//! A calibration belongs to one model and one counter. The caller stores it.

use serde::{Deserialize, Serialize};

/// Weight of a new report, compared with all earlier reports. A changed tokenizer is learned within
/// a dozen reports, and a single odd report changes little.
pub(crate) const SMOOTHING: f64 = 0.2;

/// Smallest ratio that a calibration gives.
pub(crate) const LEAST: f64 = 0.8;

/// Largest ratio that a calibration gives.
pub const MOST: f64 = 2.0;

/// Minimum number of tokens of a request for learning from it. Smaller requests say more about how
/// a provider frames a request than about its tokenizer, and are ignored.
pub const TOO_FEW: u64 = 200;

/// The smoothed ratio of reported to counted tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Calibration {
    ratio: f64,
    reports: u64,
}

impl Default for Calibration {
    fn default() -> Self {
        Self { ratio: 1.0, reports: 0 }
    }
}

impl Calibration {
    /// Learns from one request. `counted` is our count of the request's tokens, scaled by the
    /// model's [`factor`](super::model::Model::factor) but not calibrated. `reported` is the number
    /// of input tokens that the provider reported.
    pub fn observe(&mut self, counted: u64, reported: u64) {
        if counted < TOO_FEW || reported < TOO_FEW {
            return;
        }
        let seen = bounded(reported as f64 / counted as f64);
        self.ratio = bounded(self.ratio() + SMOOTHING * (seen - self.ratio()));
        self.reports = self.reports.saturating_add(1);
    }

    /// Returns the factor by which to multiply counts that are already scaled by the model's
    /// factor: 1 before any report, and always from [`LEAST`] to [`MOST`].
    pub fn ratio(&self) -> f64 {
        bounded(self.ratio)
    }

    /// Returns the number of reports that the calibration has learned from.
    pub fn reports(&self) -> u64 {
        self.reports
    }
}

/// Brings a ratio within its bounds. Stored states come from outside, so the ratio may even be NaN,
/// which becomes 1.
fn bounded(ratio: f64) -> f64 {
    if ratio.is_nan() { 1.0 } else { ratio.clamp(LEAST, MOST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reports: &[(u64, u64)], ratio: f64) {
        let mut calibration = Calibration::default();
        for (counted, reported) in reports {
            calibration.observe(*counted, *reported);
        }
        assert!((calibration.ratio() - ratio).abs() < 1e-9, "{}", calibration.ratio());
    }

    #[test]
    fn reports_move_it_step_by_step() {
        check(&[], 1.0);
        check(&[(1_000, 1_500)], 1.1);
        check(&[(1_000, 1_500), (1_000, 1_100)], 1.1);
        check(&[(1_000, 1_500); 200], 1.5);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        check(&[(1_000, 1_000_000); 200], MOST);
        check(&[(1_000_000, 1_000); 200], LEAST);
        check(&[(1_000, 50_000)], 1.2);
    }

    #[test]
    fn small_reports_are_ignored() {
        check(&[(0, 0), (0, 9_000), (9_000, 0), (10, 40)], 1.0);
    }

    #[test]
    fn it_is_stored_as_text_and_read_with_care() {
        let mut calibration = Calibration::default();
        calibration.observe(1_000, 1_500);
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(text, r#"{"ratio":1.1,"reports":1}"#);
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
        let wild: Calibration = serde_json::from_str(r#"{"ratio":99.0,"reports":1}"#).unwrap();
        assert_eq!(wild.ratio(), MOST);
    }
}
