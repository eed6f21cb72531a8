//! One ranking of several: reciprocal rank fusion, which needs only places and no scores, so that
//! what is ranked by words and what by meaning can be joined without a common scale.

use std::collections::BTreeMap;

/// How little the very first places count more than those behind them; the constant of Cormack,
/// Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
/// Methods" (SIGIR 2009).
const FLATNESS: f64 = 60.0;

/// A ranking and how much it counts.
#[derive(Debug, Clone, Copy)]
pub struct Ranking<'a> {
    /// Documents by number, best first; one that is missing gets nothing from this ranking.
    pub best_first: &'a [usize],
    /// What its places are multiplied with, 1 for a plain fusion.
    pub weight: f64,
}

/// What each of `documents` documents gets from all the rankings together: the sum of
/// weight / (60 + place), places counted from 1. Numbers beyond `documents` are passed over.
pub fn fuse(rankings: &[Ranking<'_>], documents: usize) -> Vec<f64> {
    let mut scores = vec![0.0; documents];
    for ranking in rankings {
        for (place, document) in (1..).zip(ranking.best_first) {
            if let Some(score) = scores.get_mut(*document) {
                *score += ranking.weight / (FLATNESS + f64::from(place));
            }
        }
    }
    scores
}

/// The numbers of the documents whose score is above 0, best first; equal ones in their order.
pub fn best_first(scores: &[f64]) -> Vec<usize> {
    let mut found: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
    found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    found
}

/// Fuses rankings, each best first and without repetitions: what is in place r, from 1, of a
/// ranking gets 1/(60 + r), and the sums decide. Best first; of equal ones the smaller number.
/// A ranking that is given twice counts twice.
pub fn reciprocal_rank(ranks: &[&[u64]]) -> Vec<(u64, f64)> {
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
    fn check(rankings: &[(&[usize], f64)], expected: &[usize]) {
        let rankings: Vec<Ranking<'_>> =
            rankings.iter().map(|&(best_first, weight)| Ranking { best_first, weight }).collect();
        assert_eq!(best_first(&fuse(&rankings, 4)), expected);
    }

    #[test]
    fn what_several_rankings_like_comes_first() {
        check(&[(&[0, 1, 2], 1.0), (&[1, 3], 1.0)], &[1, 0, 3, 2]);
        check(&[(&[0, 1], 1.0), (&[1, 0], 1.0)], &[0, 1]);
    }

    #[test]
    fn a_ranking_counts_by_its_weight() {
        check(&[(&[0], 1.0), (&[1], 2.0)], &[1, 0]);
        check(&[(&[9], 1.0)], &[]);
    }

    #[test]
    fn the_score_is_one_of_sixty_and_the_place() {
        let ranking = Ranking { best_first: &[2, 0], weight: 1.0 };
        assert_eq!(fuse(&[ranking], 3), [1.0 / 62.0, 0.0, 1.0 / 61.0]);
    }

    #[track_caller]
    fn check_ids(ranks: &[&[u64]], expected: &[u64]) {
        let ids: Vec<u64> = reciprocal_rank(ranks).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn what_is_high_in_several_rankings_wins() {
        check_ids(&[&[1, 2, 3], &[4, 2, 5]], &[2, 1, 4, 3, 5]);
        check_ids(&[&[1, 2], &[2, 1], &[2, 1]], &[2, 1]);
        check_ids(&[&[7]], &[7]);
        check_ids(&[], &[]);
        assert_eq!(reciprocal_rank(&[&[9], &[9]]), [(9, 2.0 / 61.0)]);
    }
}
