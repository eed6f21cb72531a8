//! Reciprocal rank fusion: joins several rankings into one. The method needs only places and no
//! scores, so a ranking by words and a ranking by meaning can be joined without a common scale.

use std::collections::BTreeMap;

/// Constant that keeps the first places from counting much more than later places. From Cormack,
/// Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
/// Methods" (SIGIR 2009).
const FLATNESS: f64 = 60.0;

/// Fuses rankings of ids, each best first and without repetitions. The id at place r (from 1) of a
/// ranking scores 1/(60 + r), and the sum of an id's scores decides. Returns each id with its sum,
/// best first; of ids with the same sum, the smallest first. A ranking that is given twice counts
/// twice.
pub(crate) fn reciprocal_rank(ranks: &[&[u64]]) -> Vec<(u64, f64)> {
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for rank in ranks {
        for (place, id) in rank.iter().enumerate() {
            *sums.entry(*id).or_default() += 1.0 / (FLATNESS + 1.0 + place as f64);
        }
    }
    let mut fused: Vec<(u64, f64)> = sums.into_iter().collect();
    fused.sort_by(|(_, left), (_, right)| right.total_cmp(left));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ranks: &[&[u64]], expected: &[u64]) {
        let ids: Vec<u64> = reciprocal_rank(ranks).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn a_high_place_in_several_rankings_wins() {
        check(&[&[1, 2, 3], &[4, 2, 5]], &[2, 1, 4, 3, 5]);
        check(&[&[1, 2], &[2, 1], &[2, 1]], &[2, 1]);
        check(&[&[7]], &[7]);
        check(&[], &[]);
        assert_eq!(reciprocal_rank(&[&[9], &[9]]), [(9, 2.0 / 61.0)]);
    }
}
