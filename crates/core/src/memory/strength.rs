//! The strength of a memory, which fades with the memory's age and with the time since its last
//! use, and more slowly the more often the memory was used.

/// Lifetime of a memory that was never used, in hours, before [`LASTING`] applies: a week.
const FIRST_LIFE: f64 = 168.0;
/// Hours that each use adds to the lifetime, before [`LASTING`] applies.
const LIFE_PER_ACCESS: f64 = 0.1;
/// Factor on the lifetime of every memory.
const LASTING: f64 = 1.5;
/// Rate at which age alone weakens a memory, per hour.
const AGING: f64 = 0.01;
/// Minimum share of the strength that age alone leaves.
const LEAST_FRESHNESS: f64 = 0.1;
const SECONDS_PER_HOUR: f64 = 3600.0;

/// The times at which a memory was made and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Creation time, in Unix seconds.
    pub created: i64,
    /// Time of the last use, in Unix seconds. Equal to `created` before the first use.
    pub accessed: i64,
    /// Number of uses.
    pub accesses: u64,
}

impl Life {
    /// Returns the strength at the time `now` in Unix seconds, above 0 and at most 1:
    ///
    /// e^(−h/S) · max(0.1, min(1, e^(−0.01·age)))
    ///
    /// Here h is the number of hours since the last use, age the number of hours since the memory
    /// was made, and S = (168 + 0.1·accesses) · 1.5 hours. If `now` is before the last use or the
    /// creation, h or the age is 0.
    pub fn strength(&self, now: i64) -> f64 {
        let hours_since = |then: i64| (now.saturating_sub(then).max(0)) as f64 / SECONDS_PER_HOUR;
        let life = (FIRST_LIFE + LIFE_PER_ACCESS * self.accesses as f64) * LASTING;
        let retained = (-hours_since(self.accessed) / life).exp();
        let freshness = (-AGING * hours_since(self.created)).exp();
        (retained * freshness.clamp(LEAST_FRESHNESS, 1.0)).max(f64::MIN_POSITIVE)
    }
}

/// Returns the relevance, from 0 to 1, of the entry at `place` (from 0) in a ranking of `count`
/// entries: ((1 − place/count) + strength) / 2, or 0 if `count` is 0.
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
    fn strength_follows_the_formula() {
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
