//! BM25 for one query over texts that have no index.
//!
//! The formula needs only the number of words of each text and the number of words that share a
//! stem with the query. One pass over the bytes is enough, and most words are skipped quickly: a
//! stem begins with the letters of its word, so only words that begin like a word of the query are
//! stemmed, and each of those only once.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

use super::bm25::{self, Posting};
use super::split;

/// Scores every document against the stems of a query. A document is given as the texts that it
/// consists of.
pub fn scores<'a, D>(documents: impl IntoIterator<Item = D>, query: &[String]) -> Vec<f64>
where
    D: IntoIterator<Item = &'a str>,
{
    let mut wanted = WantedStems::new(query);
    let (times, postings) = (vec![0; wanted.len()], vec![Vec::new(); wanted.len()]);
    let mut tally = Tally { times, postings, ..Tally::default() };
    for texts in documents {
        for text in texts {
            split::each_word(text, |pieces| tally.count(wanted.stem(pieces)));
        }
        tally.end_document();
    }
    let of_word = |word: &String| wanted.find(word).map_or(&[][..], |stem| &*tally.postings[stem]);
    bm25::scores(&tally.lengths, query.iter().map(of_word))
}

/// The stems of a query, which are the wanted stems.
pub(super) struct WantedStems {
    stems: Vec<String>,
    /// Length of the shortest wanted stem, for each first byte.
    shortest: [usize; 256],
    /// Second letters of the wanted stems as bits, for each first byte.
    seconds: [u32; 256],
    stemmer: Stemmer,
    /// For each word that had to be stemmed, the index of its stem in `stems`; `None` if the stem
    /// is not wanted.
    known: HashMap<String, Option<u32>>,
    /// The current word in lower case.
    lower: String,
}

/// Returns the bit that stands for a word's second letter in [`WantedStems::seconds`].
fn second(word: &[u8]) -> u32 {
    match word.get(1).map(u8::to_ascii_lowercase) {
        None => 1 << 31,
        // The stem of "dying" is "die".
        Some(b'y') => 1 << (b'i' - b'a'),
        Some(letter @ b'a'..=b'z') => 1 << (letter - b'a'),
        Some(_) => 1 << 30,
    }
}

impl WantedStems {
    pub(super) fn new(query: &[String]) -> Self {
        let mut stems = query.to_vec();
        stems.sort_unstable();
        stems.dedup();
        let (mut shortest, mut seconds) = ([usize::MAX; 256], [0; 256]);
        for stem in &stems {
            let Some(first) = stem.bytes().next().map(usize::from) else { continue };
            shortest[first] = shortest[first].min(stem.len());
            seconds[first] |= if stem.len() == 1 { u32::MAX } else { second(stem.as_bytes()) };
        }
        Self {
            stems,
            shortest,
            seconds,
            stemmer: Stemmer::create(Algorithm::English),
            known: HashMap::new(),
            lower: String::new(),
        }
    }

    /// Returns the count of different wanted stems.
    pub(super) fn len(&self) -> usize {
        self.stems.len()
    }

    /// Returns the index of a stem; `None` if the stem is not wanted.
    pub(super) fn find(&self, stem: &str) -> Option<usize> {
        self.stems.binary_search_by(|other| other.as_str().cmp(stem)).ok()
    }

    /// Returns the index of the stem of a word; `None` if the stem is not wanted. The word is given
    /// in pieces.
    pub(super) fn stem(&mut self, pieces: &[&str]) -> Option<u32> {
        let head = pieces[0].as_bytes();
        let first = usize::from(head[0].to_ascii_lowercase());
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        // If the first piece is one letter, the next one has the second letter.
        let is_open = pieces.len() > 1 && head.len() == 1;
        if length < self.shortest[first] || !is_open && self.seconds[first] & second(head) == 0 {
            return None;
        }
        self.lower.clear();
        pieces.iter().for_each(|piece| self.lower.push_str(piece));
        self.lower.make_ascii_lowercase();
        if let Some(stem) = self.known.get(&self.lower) {
            return *stem;
        }
        let found = self.stemmer.stem(&self.lower);
        let stem = self.find(&found).map(|stem| stem as u32);
        self.known.insert(self.lower.clone(), stem);
        stem
    }
}

/// The counts of wanted stems in each document.
#[derive(Default)]
struct Tally {
    /// Occurrences of each stem in the current document.
    times: Vec<u32>,
    /// Indices of the stems that the current document has.
    found: Vec<u32>,
    /// Number of words of the current document.
    length: u32,
    postings: Vec<Vec<Posting>>,
    /// Number of words of each earlier document.
    lengths: Vec<u32>,
}

impl Tally {
    /// Counts a word of the current document.
    fn count(&mut self, stem: Option<u32>) {
        self.length += 1;
        if let Some(stem) = stem {
            let times = &mut self.times[stem as usize];
            if *times == 0 {
                self.found.push(stem);
            }
            *times += 1;
        }
    }

    fn end_document(&mut self) {
        let document = self.lengths.len() as u32;
        self.lengths.push(std::mem::take(&mut self.length));
        for stem in self.found.drain(..) {
            let times = std::mem::take(&mut self.times[stem as usize]);
            self.postings[stem as usize].push(Posting { document, times });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::Index;
    use super::super::words::stems;
    use super::*;

    #[track_caller]
    fn check(documents: &[&str], query: &str) {
        let query = stems(query);
        let index = Index::new(documents.iter().map(|text| stems(text)));
        let scanned = scores(documents.iter().map(|text| [*text]), &query);
        assert_eq!(scanned, index.scores(&query), "{documents:?} for {query:?}");
    }

    #[test]
    fn the_scores_equal_those_of_an_index() {
        check(&["the cat sat", "HTTPServer2_x parseLine", "", "a__b x_y Éa–b"], "parse the line");
        check(&["parsing parsed parses Parser", "parse_line PARSE"], "parse parsers parseline");
        check(&["he is dying", "die skies sky", "x9 9x _ __ a1b2"], "die sky 9 a1b2 x");
    }

    #[test]
    fn a_document_consists_of_all_its_texts() {
        let query = stems("line");
        let index = Index::new([stems("one line two lines"), stems("x")]);
        assert_eq!(
            scores([vec!["one line", "two lines"], vec!["x"]], &query),
            index.scores(&query)
        );
        assert!(scores(Vec::<[&str; 1]>::new(), &query).is_empty());
    }

    proptest! {
        #[test]
        fn the_scores_equal_those_of_an_index_for_any_texts(
            texts in prop::collection::vec("[a-eA-E_0-1 éß.–]{0,40}|[a-z]{1,4}(ing|ed|ies|ly|s)?", 1..8),
            query in "[a-eA-E_0-1 é]{0,20}|[a-z]{1,4}(ing|ed|ies|ly|s)?",
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            check(&texts, &query);
        }
    }
}
