//! BM25: scores documents by the words that they share with a query.
//!
//! This is our own code because equal input must give equal results. The crates we looked at keep
//! their documents in hash maps, so that ties come out in any order, and compute in `f32`.

/// Saturation of repeated words (k1): the smaller it is, the less further repetitions matter.
/// Lucene's default. Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
/// Beyond" (2009), recommend 1.2 to 2.
const SATURATION: f64 = 1.2;
/// Penalty for long documents (b), from 0 to 1. Lucene's default. Robertson and Zaragoza recommend
/// 0.5 to 0.8.
const LENGTH: f64 = 0.75;

/// A document that contains a word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) document: u32,
    pub(super) times: u32,
}

/// Scores every document, given the number of words of each, and the postings of each word of the
/// query.
pub(super) fn scores<'a>(lengths: &[u32], query: impl Iterator<Item = &'a [Posting]>) -> Vec<f64> {
    let mut scores = vec![0.0; lengths.len()];
    let total: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
    let mean = (total as f64 / lengths.len().max(1) as f64).max(1.0);
    for postings in query {
        // The weight of a rare word, in Lucene's form, which is never negative.
        let (all, found) = (lengths.len() as f64, postings.len() as f64);
        let weight = (1.0 + (all - found + 0.5) / (found + 0.5)).ln();
        for posting in postings {
            let document = posting.document as usize;
            let length = f64::from(lengths[document]) / mean;
            let times = f64::from(posting.times);
            let damped = times + SATURATION * (1.0 - LENGTH + LENGTH * length);
            scores[document] += weight * times * (SATURATION + 1.0) / damped;
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::super::testing::Index;
    use super::super::words::stems;

    /// Checks which documents share a word with the query, best first.
    #[track_caller]
    fn check(documents: &[&str], query: &str, expected: &[usize]) {
        let index = Index::new(documents.iter().map(|text| stems(text)));
        let scores = index.scores(&stems(query));
        let mut found: Vec<usize> = (0..index.len()).filter(|at| scores[*at] > 0.0).collect();
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        assert_eq!(found, expected, "{query}: {scores:?}");
    }

    #[test]
    fn more_and_rarer_shared_words_are_better() {
        let documents = ["the cat sat", "the dog sat down", "the parser fails", "the parser"];
        check(&documents, "why does the parser fail?", &[2, 3, 0, 1]);
        check(&documents, "dog", &[1]);
        check(&documents, "bird", &[]);
    }

    #[test]
    fn the_shorter_of_two_equal_matches_wins() {
        check(&["window and many other words here", "window only"], "window", &[1, 0]);
    }

    #[test]
    fn the_score_follows_the_formula() {
        let index = Index::new([vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]]);
        let expected = 2f64.ln() * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / 1.5));
        assert!((index.scores(&["a".to_owned()])[0] - expected).abs() < 1e-12);
    }

    #[test]
    fn an_empty_index_and_an_empty_query_are_no_error() {
        assert!(Index::default().scores(&["a".to_owned()]).is_empty());
        assert_eq!(Index::new([Vec::new()]).scores(&[]), [0.0]);
    }
}
