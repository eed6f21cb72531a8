//! How far the counts for a model are off, learned from the usage that its provider reports.
//!
//! One calibration belongs to one model and one counter; who keeps it where is not known here.

use serde::{Deserialize, Serialize};

/// The weight of a new report against all before it: a change of the tokenizer is followed within
/// a dozen reports, and one odd report moves little.
pub const SMOOTHING: f64 = 0.2;

/// A calibration never says less than this share of the table's factor …
pub const LEAST: f64 = 0.8;

/// … nor more than this.
pub const MOST: f64 = 2.0;

/// Reports on fewer tokens than this say more about how a provider frames a request than about
/// its tokenizer, and are left out.
pub const TOO_FEW: u64 = 200;

/// The ratio of reported to counted tokens, smoothed.
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
    /// Learns from a request that was counted as `counted` tokens with the table's factor, not yet
    /// calibrated, and for which the provider reported `reported` tokens of input.
    pub fn observe(&mut self, counted: u64, reported: u64) {
        if counted < TOO_FEW || reported < TOO_FEW {
            return;
        }
        let seen = bounded(reported as f64 / counted as f64);
        self.ratio = bounded(self.ratio() + SMOOTHING * (seen - self.ratio()));
        self.reports = self.reports.saturating_add(1);
    }

    /// By how much the table's factor is to be multiplied: 1 before any report, always within
    /// [`LEAST`] and [`MOST`].
    pub fn ratio(&self) -> f64 {
        bounded(self.ratio)
    }

    /// How many reports it has learned from.
    pub fn reports(&self) -> u64 {
        self.reports
    }
}

/// Stored states are read from outside, so even a ratio that is no number is put right.
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
    fn small_reports_and_none_say_nothing() {
        check(&[(0, 0), (0, 9_000), (9_000, 0), (10, 40)], 1.0);
    }

    #[test]
    fn it_is_kept_as_text_and_read_carefully() {
        let mut calibration = Calibration::default();
        calibration.observe(1_000, 1_500);
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(text, r#"{"ratio":1.1,"reports":1}"#);
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration);
        let wild: Calibration = serde_json::from_str(r#"{"ratio":99.0,"reports":1}"#).unwrap();
        assert_eq!(wild.ratio(), MOST);
    }
}
