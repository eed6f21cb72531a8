//! An index of the words of texts that are searched again and again, such as the messages of a
//! session.
//!
//! Words are kept whole, not as stems, so that only words that begin like a word of a query need to
//! be stemmed. For each word, the index keeps its places: the texts that have it. A query goes
//! through all words, but reads only the places of its own words. A place costs 8 to 16 bytes, even
//! if a text has the word many times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use string_interner::backend::StringBackend;
use string_interner::symbol::SymbolU32;
use string_interner::{StringInterner, Symbol};

use super::bm25::{self, Posting};
use super::scan::WantedStems;
use super::split;

/// Maximum number of places of all words together. With 8 bytes each, and room to grow, they
/// take 64 to 128 MiB.
const MOST_PLACES: usize = 8 << 20;
/// Marks a text that is in no document.
const NOWHERE: u32 = u32::MAX;

/// The words of texts. Each text is known by a number.
#[derive(Default)]
pub struct WordIndex {
    vocabulary: StringInterner<StringBackend<SymbolU32>>,
    /// For each word of the vocabulary, the texts that have it, in the order in which they were
    /// added.
    places: Vec<Vec<Posting>>,
    /// Total number of places of all words.
    size: usize,
    /// Number of words of each text.
    lengths: Vec<u32>,
    /// Index of each text in `lengths`.
    texts: HashMap<u64, u32>,
}

impl WordIndex {
    /// Adds a text, given in parts, unless the index already has it. Returns false if there is no
    /// room for the text.
    pub fn add<'t>(&mut self, number: u64, parts: impl IntoIterator<Item = &'t str>) -> bool {
        let Entry::Vacant(text) = self.texts.entry(number) else { return true };
        if self.size >= MOST_PLACES {
            return false;
        }
        let mut words = Vec::new();
        let mut lower = String::new();
        for part in parts {
            split::each_word(part, |pieces| {
                lower.clear();
                pieces.iter().for_each(|piece| lower.push_str(piece));
                lower.make_ascii_lowercase();
                words.push(self.vocabulary.get_or_intern(&lower).to_usize());
            });
        }
        let document = *text.insert(self.lengths.len() as u32);
        self.lengths.push(words.len() as u32);
        self.places.resize_with(self.vocabulary.len(), Vec::new);
        words.sort_unstable();
        for same in words.chunk_by(|word, next| word == next) {
            self.places[same[0]].push(Posting { document, times: same.len() as u32 });
            self.size += 1;
        }
        true
    }

    /// Scores every document against the stems of a query. A document is given by the numbers of
    /// its texts, which the index must have. No text may be in two documents.
    pub fn scores<D>(&self, documents: impl IntoIterator<Item = D>, query: &[String]) -> Vec<f64>
    where
        D: IntoIterator<Item = u64>,
    {
        let mut lengths = Vec::new();
        let mut document_of = vec![NOWHERE; self.lengths.len()];
        for (document, texts) in documents.into_iter().enumerate() {
            let texts = texts.into_iter().filter_map(|number| self.texts.get(&number));
            let length = texts.map(|text| {
                document_of[*text as usize] = document as u32;
                self.lengths[*text as usize]
            });
            lengths.push(length.sum());
        }
        let mut wanted = WantedStems::new(query);
        let mut postings = vec![Vec::new(); wanted.len()];
        for (word, places) in self.vocabulary.iter().map(|(_, word)| word).zip(&self.places) {
            let Some(stem) = wanted.stem(&[word]) else { continue };
            let places = places.iter().map(|place| Posting {
                document: document_of[place.document as usize],
                times: place.times,
            });
            postings[stem as usize].extend(places.filter(|place| place.document != NOWHERE));
        }
        let postings: Vec<Vec<Posting>> = postings.into_iter().map(joined).collect();
        let of_word = |word: &String| wanted.find(word).map_or(&[][..], |stem| &*postings[stem]);
        bm25::scores(&lengths, query.iter().map(of_word))
    }
}

/// Joins the postings of the same document, in the order of the documents.
fn joined(mut postings: Vec<Posting>) -> Vec<Posting> {
    postings.sort_unstable_by_key(|posting| posting.document);
    postings.dedup_by(|next, kept| {
        let same = next.document == kept.document;
        kept.times += if same { next.times } else { 0 };
        same
    });
    postings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan;
    use super::super::words::stems;
    use super::*;

    /// Compares the scores with those of a scan, first with one text in each document and then with
    /// two.
    #[track_caller]
    fn check(texts: &[&str], query: &str) {
        let (query, mut index) = (stems(query), WordIndex::default());
        for (number, text) in (0..).zip(texts) {
            assert!(index.add(number, [*text]) && index.add(number, ["ignored"]));
        }
        let numbers: Vec<u64> = (0..texts.len() as u64).collect();
        for size in [1, 2] {
            let scanned =
                scan::scores(texts.chunks(size).map(|texts| texts.iter().copied()), &query);
            let indexed = index.scores(numbers.chunks(size).map(|it| it.iter().copied()), &query);
            assert_eq!(indexed, scanned, "{texts:?} for {query:?}");
        }
    }

    #[test]
    fn the_scores_equal_those_of_a_scan() {
        check(&["the cat sat", "HTTPServer2_x parseLine", "", "a__b x_y Éa–b"], "parse the line");
        check(&["parsing parsed parses Parser", "parse_line PARSE"], "parse parsers parse");
        check(&["he is dying", "die skies sky", "x9 9x _ __ a1b2"], "die sky 9 a1b2 x");
        check(&[&"long".repeat(200)], &"long".repeat(64));
        check(&["a"], "");
        check(&[], "a");
    }

    #[test]
    fn a_part_of_the_texts_can_be_asked() {
        let mut index = WordIndex::default();
        (0..).zip(["one line", "two", "lines of three"]).for_each(|(number, text)| {
            index.add(number, [text]);
        });
        let query = stems("line");
        let scanned = scan::scores([["two"], ["lines of three"]], &query);
        assert_eq!(index.scores([[1], [2]], &query), scanned);
    }

    proptest! {
        #[test]
        fn the_scores_equal_those_of_a_scan_for_any_texts(
            texts in prop::collection::vec("[a-eA-E_0-1 éß.–]{0,40}|[a-z]{1,4}(ing|ed|ies|ly|s)?", 1..8),
            query in "[a-eA-E_0-1 é]{0,20}|[a-z]{1,4}(ing|ed|ies|ly|s)?",
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            check(&texts, &query);
        }
    }
}
