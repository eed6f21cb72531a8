//! Ranks memories for a query by fusing several rankings.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::strength::Life;
use crate::retrieval::cosine::{cosine, dot};
use crate::retrieval::fusion::reciprocal_rank;

/// Maximum number of messages between two memories that count as neighbours.
pub const MOST_BETWEEN: u64 = 2;

/// Minimum cosine similarity for a vector to count as found. Most unrelated texts have less.
pub(crate) const LEAST_SIMILARITY: f64 = 0.25;

/// Weight of each ranking by search results. The rankings by age and by strength have the weight 1,
/// so they only decide between nearly equal results.
const FOUND_WEIGHT: usize = 6;
/// Weight of the ranking of the neighbours of search results, on the same scale.
const NEIGHBOUR_WEIGHT: usize = 3;

/// A memory that may be useful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the memory.
    pub id: u64,
    /// Times at which the memory was made and used.
    pub life: Life,
    /// Numbers of the session, the first message and the last message that the memory was made
    /// from; `None` if it was not made from messages.
    pub origin: Option<(u64, u64, u64)>,
}

/// Search results, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankedMemories<'a> {
    /// Results of the search by words.
    pub by_words: &'a [u64],
    /// Results of the search by vectors. Empty without vectors.
    pub by_vectors: &'a [u64],
}

/// Ranks the candidates that were found or are neighbours of a found memory, best first; `now` is
/// in Unix seconds. Returns nothing if nothing was found. Ignores results that are not candidates.
pub fn best(candidates: &[Candidate], found: RankedMemories<'_>, now: i64) -> Vec<u64> {
    let known: BTreeMap<u64, &Candidate> = candidates.iter().map(|c| (c.id, c)).collect();
    let among = |ids: &[u64]| -> Vec<u64> {
        ids.iter().copied().filter(|id| known.contains_key(id)).collect()
    };
    let [words, vectors] = [found.by_words, found.by_vectors].map(among);
    let beside = neighbours_of(&known, &fused_ids(&[&words, &vectors]));
    let mut eligible: Vec<&Candidate> =
        fused_ids(&[&words, &vectors, &beside]).iter().map(|id| known[id]).collect();
    eligible.sort_by_key(|candidate| (Reverse(candidate.life.created), Reverse(candidate.id)));
    let newest: Vec<u64> = eligible.iter().map(|candidate| candidate.id).collect();
    eligible.sort_by(|a, b| b.life.strength(now).total_cmp(&a.life.strength(now)));
    let strongest: Vec<u64> = eligible.iter().map(|candidate| candidate.id).collect();
    let mut ranks: Vec<&[u64]> = vec![&newest, &strongest];
    ranks.extend([&words[..]; FOUND_WEIGHT]);
    ranks.extend([&vectors[..]; FOUND_WEIGHT]);
    ranks.extend([&beside[..]; NEIGHBOUR_WEIGHT]);
    fused_ids(&ranks)
}

/// Returns the memories whose vectors are similar to the query's, most similar first, without those
/// below [`LEAST_SIMILARITY`]. If memories are equally similar, the one with the smaller number
/// comes first. Vectors of a different length are ignored.
pub fn similar<'a>(query: &[f32], vectors: impl IntoIterator<Item = (u64, &'a [f32])>) -> Vec<u64> {
    let square = dot(query, query);
    let mut found: Vec<(u64, f64)> = vectors
        .into_iter()
        .filter_map(|(id, vector)| Some((id, cosine(query, square, vector)?)))
        .filter(|(_, cosine)| *cosine >= LEAST_SIMILARITY)
        .collect();
    found.sort_by(|(a, left), (b, right)| right.total_cmp(left).then(a.cmp(b)));
    found.into_iter().map(|(id, _)| id).collect()
}

/// Returns the neighbours of the found memories, in the order of the found memories.
fn neighbours_of(known: &BTreeMap<u64, &Candidate>, found: &[u64]) -> Vec<u64> {
    let mut by_place: Vec<(u64, u64, u64, u64)> = known
        .values()
        .filter_map(|c| c.origin.map(|(session, first, last)| (session, first, last, c.id)))
        .collect();
    by_place.sort_unstable();
    let mut neighbours: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for pair in by_place.windows(2) {
        let ((session, _, last, left), (other, first, _, right)) = (pair[0], pair[1]);
        if session == other && first <= last.saturating_add(MOST_BETWEEN + 1) {
            neighbours.entry(left).or_default().push(right);
            neighbours.entry(right).or_default().push(left);
        }
    }
    let mut beside = Vec::new();
    for id in found.iter().filter_map(|id| neighbours.get(id)).flatten() {
        if !beside.contains(id) {
            beside.push(*id);
        }
    }
    beside
}

fn fused_ids(ranks: &[&[u64]]) -> Vec<u64> {
    reciprocal_rank(ranks).into_iter().map(|(id, _)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn candidate(id: u64, age: i64, accesses: u64, origin: Option<(u64, u64, u64)>) -> Candidate {
        let created = NOW - age;
        Candidate { id, life: Life { created, accessed: created, accesses }, origin }
    }

    #[track_caller]
    fn check(candidates: &[Candidate], words: &[u64], vectors: &[u64], expected: &[u64]) {
        let found = RankedMemories { by_words: words, by_vectors: vectors };
        assert_eq!(best(candidates, found, NOW), expected);
    }

    #[test]
    fn memories_found_by_words_lead_and_their_neighbours_follow() {
        let pool = [
            candidate(1, 900, 0, Some((1, 1, 2))),
            candidate(2, 800, 0, Some((1, 3, 4))),
            candidate(3, 700, 0, Some((1, 5, 5))),
            candidate(4, 1, 9, Some((2, 6, 6))),
            candidate(5, 500, 0, Some((1, 9, 9))),
        ];
        check(&pool, &[2], &[], &[2, 3, 1]);
        check(&pool, &[], &[], &[]);
        check(&pool, &[77], &[78], &[]);
    }

    #[test]
    fn age_and_use_decide_between_equally_good_memories() {
        let old = candidate(1, 800_000, 0, None);
        check(&[old, candidate(2, 10, 0, None)], &[1, 2], &[2, 1], &[2, 1]);
        check(&[old, candidate(2, 800_000, 500, None)], &[1, 2], &[2, 1], &[2, 1]);
    }

    #[test]
    fn vectors_count_as_much_as_words() {
        let pool = [1, 2, 3].map(|id| candidate(id, 100, 0, None));
        check(&pool, &[1, 2], &[2, 3], &[2, 1, 3]);
        check(&pool, &[], &[3], &[3]);
    }

    #[test]
    fn similar_vectors_are_found() {
        let vectors = [
            (1, vec![0.0, 1.0]),
            (2, vec![2.0, 0.2]),
            (3, vec![5.0, 0.0]),
            (4, vec![1.0]),
            (5, vec![0.0, 0.0]),
            (6, vec![f32::NAN, 1.0]),
            (7, vec![-1.0, 0.0]),
        ];
        let vectors = || vectors.iter().map(|(id, vector): &(u64, Vec<f32>)| (*id, &**vector));
        assert_eq!(similar(&[1.0, 0.0], vectors()), [3, 2]);
        assert!(similar(&[], vectors()).is_empty());
    }
}
