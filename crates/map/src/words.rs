//! Splits texts and names into words that can be compared.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};

/// Maximum length of a word in bytes. Longer runs of letters are data, such as Base64.
const MAX_WORD_BYTES: usize = 40;
/// Maximum length of a name in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 120;
/// Maximum number of names whose words are remembered.
const MAX_REMEMBERED: usize = 100_000;

/// Words of English that say nothing about a subject.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
    "me", "my", "no", "not", "of", "on", "or", "our", "should", "so", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "to", "was", "we", "were",
    "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Splits and stems names, and remembers what it has split.
pub(crate) struct Splitter {
    stemmer: Stemmer,
    known: HashMap<Box<str>, Vec<Box<str>>>,
}

impl Default for Splitter {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English), known: HashMap::new() }
    }
}

impl Splitter {
    /// Returns the stems of the parts of a name: `parseHeaders` has `pars` and `header`.
    pub(crate) fn stems(&mut self, name: &str) -> &[Box<str>] {
        if self.known.len() >= MAX_REMEMBERED {
            self.known.clear();
        }
        if !self.known.contains_key(name) {
            let mut stems = Vec::new();
            parts(name, &mut |part| {
                let word = part.to_lowercase();
                if word.len() >= 2 && word.len() <= MAX_WORD_BYTES {
                    stems.push(self.stemmer.stem(&word).into());
                }
            });
            self.known.insert(name.into(), stems);
        }
        &self.known[name]
    }

    /// Returns the stems of a question or message, without those that say nothing.
    pub(crate) fn question(&mut self, text: &str) -> Vec<Box<str>> {
        let mut stems = Vec::new();
        for token in tokens(text) {
            if !says_nothing(token) {
                stems.extend(self.stems(token).iter().cloned());
            }
        }
        stems
    }
}

/// Returns the names in a text: runs of letters, digits and underscores.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let found = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    found.filter(|token| token.len() >= 2 && token.len() <= MAX_NAME_BYTES)
}

/// Returns true for a word that says nothing about a subject.
fn says_nothing(word: &str) -> bool {
    STOP_WORDS.contains(&word.to_lowercase().as_str())
}

/// Returns what may be names of definitions in a question: also with `-`, `::`, `/` and the like.
pub(crate) fn symbols(text: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_alphanumeric() || "_-+*/<>=!?$%&:.#".contains(c);
    let found = text.split(move |c: char| !is_inside(c));
    let found = found.map(|found| found.trim_matches(|c: char| ".:,?!#".contains(c)));
    found.filter(|found| found.len() >= 2 && !says_nothing(found))
}

/// Calls `each` with the parts of a name: at changes of case, at signs, between letters and digits.
/// Runs of CJK have no spaces, so that each pair of characters is a part.
fn parts(name: &str, each: &mut dyn FnMut(&str)) {
    for run in name.split(|c: char| !c.is_alphanumeric()) {
        if run.chars().any(is_cjk) {
            let places: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
            for (index, from) in places.iter().enumerate() {
                let to = places.get(index + 2).copied().unwrap_or(run.len());
                each(&run[*from..to]);
            }
            continue;
        }
        let mut from = 0;
        let mut chars = run.char_indices().peekable();
        let mut before: Option<char> = None;
        while let Some((at, c)) = chars.next() {
            if let Some(before) = before {
                let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
                let humps = c.is_uppercase()
                    && (before.is_lowercase() || before.is_uppercase() && next_is_lower);
                let digits = c.is_ascii_digit() != before.is_ascii_digit();
                if (humps || digits) && at > from {
                    each(&run[from..at]);
                    from = at;
                }
            }
            before = Some(c);
        }
        if from < run.len() {
            each(&run[from..]);
        }
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &[&str]) {
        let mut found = Vec::new();
        parts(name, &mut |part| found.push(part.to_owned()));
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn names_are_split_at_case_signs_and_digits() {
        check("parse_http_header", &["parse", "http", "header"]);
        check("parseHTTPHeader", &["parse", "HTTP", "Header"]);
        check("HTTPServer2", &["HTTP", "Server", "2"]);
        check("cl-defmethod", &["cl", "defmethod"]);
        check("ns/name-of!", &["ns", "name", "of"]);
        check("été", &["été"]);
        check("検索する", &["検索", "索す", "する", "る"]);
        check("", &[]);
    }

    #[test]
    fn stems_join_forms_of_a_word() {
        let mut splitter = Splitter::default();
        let of_name = splitter.stems("parse_headers").to_vec();
        assert_eq!(of_name, splitter.question("Parsing of the header"));
    }

    #[test]
    fn symbols_keep_their_signs_and_are_no_common_words() {
        let found: Vec<_> = symbols("When not, see the `foo-bar`, (a::b c/d) x.y: Str.").collect();
        assert_eq!(found, ["see", "foo-bar", "a::b", "c/d", "x.y", "Str"]);
    }
}
