//! An index of documents for tests, which computes the same scores as the index and the scan of
//! this module in a simpler way.

use std::collections::HashMap;

use super::bm25::{self, Posting};

/// An index of documents by their words.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    words: HashMap<String, Vec<Posting>>,
    /// Number of words of each document.
    lengths: Vec<u32>,
}

impl Index {
    /// Builds an index of documents, each given as the stems of its words (see
    /// [`stems`](super::words::stems)).
    pub(super) fn new(documents: impl IntoIterator<Item = Vec<String>>) -> Self {
        let mut index = Self::default();
        for document in documents {
            index.add(document);
        }
        index
    }

    /// Adds a document. Its number is the count of documents before it.
    pub(super) fn add(&mut self, words: Vec<String>) {
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

    /// Returns the number of documents.
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Scores every document against the stems of a query. A document without any of the stems
    /// scores 0. A stem that is in the query several times counts as often.
    pub(super) fn scores(&self, query: &[String]) -> Vec<f64> {
        let postings = query.iter().map(|word| self.words.get(word).map_or(&[][..], Vec::as_slice));
        bm25::scores(&self.lengths, postings)
    }
}
