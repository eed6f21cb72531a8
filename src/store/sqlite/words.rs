//! Words in full-text tables: how a text comes to be there, and how a user's free text becomes a
//! query that is never a syntax error.
//!
//! Both are split by [`words`], joined by spaces and stemmed by FTS5.

use std::collections::HashSet;

use rusqlite::Connection;

use super::super::StoreError;
use crate::retrieval;
use crate::retrieval::words::{each_word, ends};

/// How many different words of a query count at most: half from its beginning, half from its end.
const MOST_WORDS: usize = 128;

/// How much of a query is read, in bytes: half from its beginning, half from its end.
const MOST_READ: usize = 64 << 10;

/// How much of a text is found by its words, in bytes from its beginning.
const MOST_INDEXED: usize = 256 << 10;

/// Of how many words some have to be in a text at most: of more, the rarest.
const MOST_ALTERNATIVES: usize = 24;
/// From how many texts on a word is simply frequent.
const FREQUENT: usize = 2000;

/// How many texts are ranked at most: of more that fit, the newest. This bounds how long a search
/// for a frequent word keeps everybody waiting.
pub(super) const MOST_RANKED: usize = 20_000;

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
    let text = &text[..text.floor_char_boundary(MOST_INDEXED)];
    let mut indexed = String::with_capacity(text.len());
    each_word(text, |word| {
        indexed.push_str(word);
        indexed.push(' ');
    });
    indexed
}

/// The words of a query, which may be a whole message.
fn words(text: &str) -> Vec<String> {
    ends(text, MOST_READ).into_iter().flat_map(retrieval::words::words).collect()
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
    joined(&words.iter().collect::<Vec<_>>(), " ")
}

/// A query for texts in `table` with some of the words, as far as they are anywhere in it; `None`
/// when none is.
pub(super) fn some_of(
    db: &Connection,
    table: &str,
    words: Vec<String>,
) -> Result<Option<String>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 LIMIT {FREQUENT})"
    ))?;
    let mut known: Vec<(usize, String)> = Vec::new();
    for word in words {
        let count = query.query_row([joined(&[&word], "")], |row| row.get(0))?;
        if count > 0 {
            known.push((count, word));
        }
    }
    known.sort_by_key(|(count, _)| *count);
    known.truncate(MOST_ALTERNATIVES);
    let words: Vec<&String> = known.iter().map(|(_, word)| word).collect();
    Ok((!words.is_empty()).then(|| joined(&words, " OR ")))
}

fn joined(words: &[&String], operator: &str) -> String {
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
        assert_eq!(all_of(&sought("to be or not")), r#""to" "be" "or" "not""#);
        assert!(telling("To be, or not?").is_empty() && sought("!*\"").is_empty());
    }

    #[test]
    fn the_rarest_of_many_words_are_the_alternatives() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE VIRTUAL TABLE t USING fts5 (words)").unwrap();
        for number in 0..40 {
            let text = (number..40).map(|n| format!("w{n} ")).collect::<String>();
            db.execute("INSERT INTO t VALUES (?1)", [text]).unwrap();
        }
        let words = |range: std::ops::Range<u64>| range.map(|n| format!("w{n}")).collect();
        let some = some_of(&db, "t", words(0..99)).unwrap().unwrap();
        assert!(some.starts_with(r#""w0" OR "w1" OR"#) && some.ends_with(r#"OR "w23""#), "{some}");
        assert_eq!(some_of(&db, "t", words(50..60)).unwrap(), None);
    }

    #[test]
    fn a_long_query_counts_from_both_ends() {
        let text: String = (1000..2000).map(|number| format!("{number} {number} ")).collect();
        let sought = sought(&text);
        let ends = [&sought[0], &sought[63], &sought[64], &sought[127]].map(String::as_str);
        assert_eq!((sought.len(), ends), (128, ["1000", "1063", "1936", "1999"]));
    }
}
