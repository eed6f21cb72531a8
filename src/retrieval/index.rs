//! An index of the words of texts that are searched again and again, such as the messages of a
//! session.
//!
//! Words are kept as they are, not as stems, so that only words that begin like a word of a query
//! need to be stemmed. A text costs 4 bytes for each of its words, and each distinct word its
//! length and about 13 bytes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use string_interner::backend::StringBackend;
use string_interner::symbol::SymbolU32;
use string_interner::{StringInterner, Symbol};

use super::scan::{Tally, Wanted};
use super::split;

/// Maximum number of words of all texts together. With 4 bytes each, they take 96 MiB.
const MOST_WORDS: usize = 24 << 20;

/// The words of texts, each known by a number.
#[derive(Default)]
pub struct Index {
    vocabulary: StringInterner<StringBackend<SymbolU32>>,
    /// Words of all texts, one text after the other.
    words: Vec<u32>,
    /// Place of each text in `words`.
    places: HashMap<u64, Range<usize>>,
}

impl Index {
    /// Adds a text, given in parts, unless the index has it already. Returns false if there is no
    /// room for the text.
    pub fn add<'t>(&mut self, number: u64, parts: impl IntoIterator<Item = &'t str>) -> bool {
        let Entry::Vacant(place) = self.places.entry(number) else { return true };
        let start = self.words.len();
        if start >= MOST_WORDS {
            return false;
        }
        let mut lower = String::new();
        for part in parts {
            split::each_word(part, |pieces| {
                lower.clear();
                pieces.iter().for_each(|piece| lower.push_str(piece));
                lower.make_ascii_lowercase();
                self.words.push(self.vocabulary.get_or_intern(&lower).to_usize() as u32);
            });
        }
        place.insert(start..self.words.len());
        true
    }

    /// Scores every document against the words of a query. A document is given by the numbers of
    /// its texts, which the index must have.
    pub fn scores<D>(&self, documents: impl IntoIterator<Item = D>, query: &[String]) -> Vec<f64>
    where
        D: IntoIterator<Item = u64>,
    {
        let mut wanted = Wanted::new(query);
        let stems: Vec<Option<u32>> =
            self.vocabulary.iter().map(|(_, word)| wanted.stem(&[word])).collect();
        let mut tally = Tally::new(&wanted);
        for texts in documents {
            for number in texts {
                let place = self.places.get(&number).cloned().unwrap_or_default();
                self.words[place].iter().for_each(|word| tally.count(stems[*word as usize]));
            }
            tally.end_document();
        }
        tally.scores(&wanted, query)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scan;
    use super::super::words::stems;
    use super::*;

    /// Compares the scores with those of a scan, of documents of one text and then of two.
    #[track_caller]
    fn check(texts: &[&str], query: &str) {
        let (query, mut index) = (stems(query), Index::default());
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
        let mut index = Index::default();
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
