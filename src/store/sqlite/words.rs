//! Words in full-text tables: how a text comes to be there, and how a user's free text becomes a
//! query that is never a syntax error.
//!
//! Both are split by [`words`], joined by spaces and stemmed by FTS5.

use std::collections::HashSet;

use crate::retrieval::words::words;

/// How many different words of a query count at most: half from its beginning, half from its end.
const MOST_WORDS: usize = 128;

/// English words without a subject, which are no reason to find something.
const EMPTY_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i",
    "if", "in", "is", "it", "its", "just", "let", "me", "my", "no", "not", "of", "on", "or", "our",
    "please", "s", "should", "so", "some", "t", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// What the full-text table gets of a text.
pub(super) fn indexed(text: &str) -> String {
    words(text).join(" ")
}

/// The different words of a query in their order: those that say something, or all when none does.
pub(super) fn sought(text: &str) -> Vec<String> {
    let telling = telling(text);
    if telling.is_empty() { distinct(words(text)) } else { telling }
}

/// The different words of a query that say something, in their order.
pub(super) fn telling(text: &str) -> Vec<String> {
    let empty = |word: &String| EMPTY_WORDS.binary_search(&word.as_str()).is_ok();
    distinct(words(text).into_iter().filter(|word| !empty(word)).collect())
}

/// A query for texts with each of the words.
pub(super) fn all_of(words: &[String]) -> String {
    joined(words, " ")
}

/// A query for texts with some of the words.
pub(super) fn some_of(words: &[String]) -> String {
    joined(words, " OR ")
}

fn joined(words: &[String], operator: &str) -> String {
    // A word has no quotes, because it is made of letters and digits.
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(operator)
}

fn distinct(words: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut words: Vec<String> =
        words.into_iter().filter(|word| seen.insert(word.clone())).collect();
    if words.len() > MOST_WORDS {
        words.drain(MOST_WORDS / 2..words.len() - MOST_WORDS / 2);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_words_can_be_looked_up() {
        assert!(EMPTY_WORDS.is_sorted());
    }

    #[test]
    fn a_query_has_only_quoted_words() {
        let text = "the parse_line\" OR NEAR(a*) -b:c ^ d' AND {x} \0";
        let expected = r#""parse" "line" "parseline" "near" "b" "c" "d" "x""#;
        assert_eq!(all_of(&sought(text)), expected);
        assert_eq!(some_of(&sought("to be or not")), r#""to" OR "be" OR "or" OR "not""#);
        assert!(telling("To be, or not?").is_empty() && sought("!*\"").is_empty());
    }

    #[test]
    fn a_long_query_counts_from_both_ends() {
        let text: String = (1000..2000).map(|number| format!("{number} {number} ")).collect();
        let sought = sought(&text);
        let ends = [&sought[0], &sought[63], &sought[64], &sought[127]].map(String::as_str);
        assert_eq!((sought.len(), ends), (128, ["1000", "1063", "1936", "1999"]));
    }
}
