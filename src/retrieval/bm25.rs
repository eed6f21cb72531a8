//! How well documents fit a query by the words that they share.
//!
//! Our own because equal input must give equal results: the crates looked at keep their documents
//! in hash maps, so that ties come out in any order, and count in `f32`.

use std::collections::HashMap;

/// How soon more of the same word stops to matter; Lucene's default, from Robertson and Zaragoza,
/// "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), who find 1.2 to 2 good.
const SATURATION: f64 = 1.2;
/// How much a long document's words count less, from 0 to 1; Lucene's default, by the same source.
const LENGTH: f64 = 0.75;

/// Documents by the words in them.
#[derive(Debug, Clone, Default)]
pub struct Index {
    words: HashMap<String, Vec<Posting>>,
    /// How many words each document has.
    lengths: Vec<u32>,
}

/// A document in which a word is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) document: u32,
    pub(super) times: u32,
}

/// Documents of which only the lengths are known.
pub(super) struct Collection<'a> {
    /// How many words each document has.
    pub(super) lengths: &'a [u32],
}

impl Index {
    /// An index of documents, each given as its words (see [`stems`](super::words::stems)).
    pub fn new(documents: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut index = Self::default();
        for document in documents {
            index.add(document);
        }
        index
    }

    /// Adds a document, whose number is how many there were before.
    pub fn add(&mut self, words: Vec<String>) {
        let document = self.lengths.len() as u32;
        self.lengths.push(words.len() as u32);
        for word in words {
            let postings = self.words.entry(word).or_default();
            match postings.last_mut().filter(|last| last.document == document) {
                Some(last) => last.times += 1,
                None => postings.push(Posting { document, times: 1 }),
            }
        }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The score of every document for the words of a query; 0 where they have none in common.
    /// The more often a word is in the query, the more it counts.
    pub fn scores(&self, query: &[String]) -> Vec<f64> {
        let postings = query.iter().map(|word| self.words.get(word).map_or(&[][..], Vec::as_slice));
        Collection { lengths: &self.lengths }.scores(postings)
    }
}

impl Collection<'_> {
    /// The score of every document, given where each word of the query is.
    pub(super) fn scores<'a>(&self, query: impl Iterator<Item = &'a [Posting]>) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let total: u64 = self.lengths.iter().map(|length| u64::from(*length)).sum();
        let mean = (total as f64 / self.lengths.len().max(1) as f64).max(1.0);
        for postings in query {
            let weight = self.rarity(postings.len());
            for posting in postings {
                let document = posting.document as usize;
                let length = f64::from(self.lengths[document]) / mean;
                let times = f64::from(posting.times);
                let damped = times + SATURATION * (1.0 - LENGTH + LENGTH * length);
                scores[document] += weight * times * (SATURATION + 1.0) / damped;
            }
        }
        scores
    }

    /// What a word is worth that is in `found` documents: Lucene's form, which is never negative.
    fn rarity(&self, found: usize) -> f64 {
        let (all, found) = (self.lengths.len() as f64, found as f64);
        (1.0 + (all - found + 0.5) / (found + 0.5)).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::stems;
    use super::*;

    /// The documents that share a word with the query, best first.
    #[track_caller]
    fn check(documents: &[&str], query: &str, expected: &[usize]) {
        let index = Index::new(documents.iter().map(|text| stems(text)));
        let scores = index.scores(&stems(query));
        let mut found: Vec<usize> = (0..index.len()).filter(|at| scores[*at] > 0.0).collect();
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        assert_eq!(found, expected, "{query}: {scores:?}");
    }

    #[test]
    fn what_shares_more_and_rarer_words_is_better() {
        let documents = ["the cat sat", "the dog sat down", "the parser fails", "the parser"];
        check(&documents, "why does the parser fail?", &[2, 3, 0, 1]);
        check(&documents, "dog", &[1]);
        check(&documents, "bird", &[]);
    }

    #[test]
    fn of_equal_words_the_shorter_document_wins() {
        check(&["window and many other words here", "window only"], "window", &[1, 0]);
    }

    #[test]
    fn the_score_is_that_of_the_formula() {
        let index = Index::new([vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]]);
        let expected = 2f64.ln() * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * 2.0 / 1.5));
        assert!((index.scores(&["a".to_owned()])[0] - expected).abs() < 1e-12);
    }

    #[test]
    fn nothing_indexed_and_nothing_asked_are_no_error() {
        assert!(Index::default().scores(&["a".to_owned()]).is_empty());
        assert_eq!(Index::new([Vec::new()]).scores(&[]), [0.0]);
    }
}
