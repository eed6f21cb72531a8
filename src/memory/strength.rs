//! How strong a memory is: it fades with the time since it was last of use, the slower the more
//! often it was.

/// How long a memory that was never of use lasts, in hours: a week.
const FIRST_LIFE: f64 = 168.0;
/// By how much each use prolongs that, in hours.
const LIFE_PER_ACCESS: f64 = 0.1;
/// By how much memories of conversations outlast others.
const LASTING: f64 = 1.5;
/// How fast the age alone counts, per hour.
const AGING: f64 = 0.01;
/// What age alone leaves at least.
const LEAST_FRESHNESS: f64 = 0.1;
const SECONDS_PER_HOUR: f64 = 3600.0;

/// When a memory was made and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// When it was made, Unix seconds.
    pub created: i64,
    /// When it was last of use, or else made, Unix seconds.
    pub accessed: i64,
    /// How often it was of use.
    pub accesses: u64,
}

impl Life {
    /// The strength at a time in Unix seconds, above 0 to 1:
    /// e^(−h/S) · max(0.1, min(1, e^(−0.01·age))), where h is the hours since the memory was last
    /// of use, age the hours since it was made, and S = (168 + 0.1·accesses) · 1.5 hours. Of a time
    /// before those it is that of the moment itself.
    pub fn strength(&self, now: i64) -> f64 {
        let hours_since = |then: i64| (now.saturating_sub(then).max(0)) as f64 / SECONDS_PER_HOUR;
        let life = (FIRST_LIFE + LIFE_PER_ACCESS * self.accesses as f64) * LASTING;
        let retained = (-hours_since(self.accessed) / life).exp();
        let freshness = (-AGING * hours_since(self.created)).exp();
        (retained * freshness.clamp(LEAST_FRESHNESS, 1.0)).max(f64::MIN_POSITIVE)
    }
}

/// The relevance, 0 to 1, of what is in place `place` of `count`, from 0:
/// ((1 − place/count) + strength) / 2. Of nothing it is 0.
pub fn relevance(place: usize, count: usize, strength: f64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    f64::midpoint(1.0 - place as f64 / count as f64, strength).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;

    #[track_caller]
    fn check((created, accessed, accesses): (i64, i64, u64), now: i64, expected: f64) {
        let life = Life { created: created * HOUR, accessed: accessed * HOUR, accesses };
        let strength = life.strength(now * HOUR);
        assert!((strength - expected).abs() < 1e-12, "{strength}, not {expected}");
    }

    #[test]
    fn strength_is_that_of_the_formula() {
        check((0, 0, 0), 0, 1.0);
        check((0, 0, 0), 24, (-24.0_f64 / 252.0).exp() * (-0.24_f64).exp());
        check((0, 100, 50), 100, (-1.0_f64).exp());
        check((0, 100, 50), 152, (-52.0_f64 / 259.5).exp() * (-1.52_f64).exp());
        check((0, 1000, 0), 1252, (-1.0_f64).exp() * 0.1);
    }

    #[test]
    fn strength_stays_between_0_and_1_whatever_the_clock_says() {
        check((10, 20, 3), 0, 1.0);
        for (created, accessed, accesses, now) in
            [(i64::MIN, i64::MIN, 0, i64::MAX), (0, 0, u64::MAX, i64::MAX), (i64::MAX, 0, 1, -1)]
        {
            let strength = Life { created, accessed, accesses }.strength(now);
            assert!(strength > 0.0 && strength <= 1.0, "{strength}");
        }
    }

    #[test]
    fn relevance_falls_with_the_place_and_the_strength() {
        assert_eq!(relevance(0, 4, 1.0), 1.0);
        assert_eq!(relevance(1, 4, 0.25), 0.5);
        assert_eq!(relevance(3, 4, 0.0), 0.125);
        assert_eq!(relevance(0, 0, 1.0), 0.0);
    }
}
