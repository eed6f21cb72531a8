//! BM25 for one query over texts that have no index.
//!
//! The formula needs only the number of words of each text and the number of words that share a
//! stem with the query. One pass over the bytes is enough, and most words are skipped quickly: a
//! stem begins with the letters of its word, so only words that begin like a word of the query are
//! stemmed, and each of those only once.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

use super::bm25::{Collection, Posting};
use super::words;

/// Scores every document against the words of a query. A document is given as the texts that it
/// consists of.
pub fn scores<'a, D>(documents: impl IntoIterator<Item = D>, query: &[String]) -> Vec<f64>
where
    D: IntoIterator<Item = &'a str>,
{
    let mut wanted = Wanted::new(query);
    let mut postings: Vec<Vec<Posting>> = vec![Vec::new(); wanted.stems.len()];
    let mut lengths = Vec::new();
    for (document, texts) in (0..).zip(documents) {
        texts.into_iter().for_each(|text| wanted.read(text));
        lengths.push(std::mem::take(&mut wanted.length));
        for (times, postings) in wanted.times.iter_mut().zip(&mut postings) {
            match std::mem::take(times) {
                0 => {}
                times => postings.push(Posting { document, times }),
            }
        }
    }
    let of_word = |word: &String| {
        let stem = wanted.stems.iter().position(|stem| stem == word);
        stem.map_or(&[][..], |stem| &postings[stem])
    };
    Collection { lengths: &lengths }.scores(query.iter().map(of_word))
}

/// The stems of the query and the counts for the current document.
struct Wanted {
    stems: Vec<String>,
    /// Length of the shortest wanted stem, for each first byte.
    shortest: [usize; 256],
    /// Second letters of the wanted stems as bits, for each first byte.
    seconds: [u32; 256],
    stemmer: Stemmer,
    /// Index of the stem of each word that had to be stemmed; `None` for an unwanted stem.
    known: HashMap<String, Option<usize>>,
    /// The current word in lower case.
    lower: String,
    /// Byte ranges of the parts of the current identifier.
    parts: Vec<(usize, usize)>,
    length: u32,
    times: Vec<u32>,
}

/// Returns the bit of a second letter in [`Wanted::seconds`].
fn second(word: &[u8]) -> u32 {
    match word.get(1).map(u8::to_ascii_lowercase) {
        None => 1 << 31,
        // The stem of "dying" is "die".
        Some(b'y') => 1 << (b'i' - b'a'),
        Some(letter @ b'a'..=b'z') => 1 << (letter - b'a'),
        Some(_) => 1 << 30,
    }
}

const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const JOINT: u8 = 8;
const OTHER: u8 = 16;

/// Class of each byte. 0 stands for a byte between words.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => JOINT,
            0..=0x7f => 0,
            _ => OTHER,
        };
        byte += 1;
    }
    classes
}

impl Wanted {
    fn new(query: &[String]) -> Self {
        let mut stems = query.to_vec();
        stems.sort_unstable();
        stems.dedup();
        let (mut shortest, mut seconds) = ([usize::MAX; 256], [0; 256]);
        for stem in &stems {
            let Some(first) = stem.bytes().next().map(usize::from) else { continue };
            shortest[first] = shortest[first].min(stem.len());
            seconds[first] |= if stem.len() == 1 { u32::MAX } else { second(stem.as_bytes()) };
        }
        let times = vec![0; stems.len()];
        Self {
            stems,
            shortest,
            seconds,
            stemmer: Stemmer::create(Algorithm::English),
            known: HashMap::new(),
            lower: String::new(),
            parts: Vec::new(),
            length: 0,
            times,
        }
    }

    /// Counts the words of a text.
    fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            let mut seen = 0;
            while let Some(class) = bytes.get(at).map(|byte| CLASSES[usize::from(*byte)])
                && class != 0
            {
                seen |= class;
                at += 1;
            }
            if at > start {
                self.runs(&text[start..at], seen);
            }
            at += 1;
        }
    }

    /// Counts the words of a run of any length.
    fn runs(&mut self, run: &str, seen: u8) {
        // Characters outside ASCII may still separate words.
        match run.len() > words::LONGEST_RUN && seen & OTHER == 0 {
            true => words::runs(run).for_each(|piece| self.run(piece, seen)),
            false => self.run(run, seen),
        }
    }

    /// Counts the words of a run of bytes that are no ASCII separators, or of a piece of such a
    /// run. `seen` holds the classes of the whole run's bytes.
    fn run(&mut self, run: &str, seen: u8) {
        let bytes = run.as_bytes();
        let capital = || bytes[1..].iter().all(u8::is_ascii_lowercase);
        match seen {
            LOWER | UPPER | DIGIT => self.word(&[run]),
            _ if seen & OTHER != 0 => {
                words::each_word(run, |word| self.word(&[word]));
            }
            _ if seen == LOWER | UPPER && capital() => self.word(&[run]),
            _ => self.identifier(run),
        }
    }

    /// Counts the parts of an identifier and, if there are several, the whole joined from them.
    fn identifier(&mut self, run: &str) {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        ascii_parts(run.as_bytes(), &mut parts);
        for &(start, end) in &parts {
            self.word(&[&run[start..end]]);
        }
        if parts.len() > 1 {
            let joined: Vec<&str> = if self.may_be_wanted(run.as_bytes(), parts[0]) {
                parts.iter().map(|&(start, end)| &run[start..end]).collect()
            } else {
                Vec::new()
            };
            self.word(&joined);
        }
        self.parts = parts;
    }

    /// Returns whether the joined identifier can begin like a wanted word. If its first part is one
    /// letter, the next part supplies the second letter.
    fn may_be_wanted(&self, run: &[u8], (start, end): (usize, usize)) -> bool {
        let first = usize::from(run[start].to_ascii_lowercase());
        let fits = end - start == 1 || self.seconds[first] & second(&run[start..end]) != 0;
        self.shortest[first] <= run.len() && fits
    }

    /// Counts one word, given in pieces. No pieces stand for an unwanted word.
    fn word(&mut self, pieces: &[&str]) {
        self.length += 1;
        let Some(head) = pieces.first().map(|piece| piece.as_bytes()) else { return };
        if let [_] = pieces {
            let first = usize::from(head[0].to_ascii_lowercase());
            if head.len() < self.shortest[first] || self.seconds[first] & second(head) == 0 {
                return;
            }
        }
        self.lower.clear();
        pieces.iter().for_each(|piece| self.lower.push_str(piece));
        self.lower.make_ascii_lowercase();
        let stem = match self.known.get(&self.lower) {
            Some(stem) => *stem,
            None => {
                let found = self.stemmer.stem(&self.lower);
                let stem = self.stems.iter().position(|stem| *stem == found);
                self.known.insert(self.lower.clone(), stem);
                stem
            }
        };
        if let Some(stem) = stem {
            self.times[stem] += 1;
        }
    }
}

/// Finds the parts of an identifier of ASCII characters, cut as [`words::words`] cuts it.
fn ascii_parts(run: &[u8], parts: &mut Vec<(usize, usize)>) {
    let mut start = 0;
    for at in 1..=run.len() {
        let cut = run.get(at).is_none_or(|right| {
            let left = run[at - 1];
            let hump = left.is_ascii_lowercase() && right.is_ascii_uppercase();
            let acronym_ends = left.is_ascii_uppercase()
                && right.is_ascii_uppercase()
                && run.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let number = left.is_ascii_digit() != right.is_ascii_digit();
            left == b'_' || *right == b'_' || hump || acronym_ends || number
        });
        if cut {
            if run[start] != b'_' {
                parts.push((start, at));
            }
            start = at;
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
