//! Words in full-text tables: how texts are indexed, and how free text becomes a query that is
//! never a syntax error.
//!
//! [`retrieval::words`] splits texts and queries into words. The words are joined by spaces, and
//! stemmed by FTS5.

use std::collections::HashSet;

use super::super::StoreError;
use super::TableReading;
use crate::retrieval;
use crate::retrieval::stop::is_stop_word;
pub(crate) use crate::retrieval::words::{LONGEST_RUN, MOST_READ};
use crate::retrieval::words::{each_word, ends};

/// Maximum number of distinct query words: half from the beginning, half from the end.
pub(crate) const MOST_WORDS: usize = 128;

/// Maximum number of bytes of a text that are indexed, from its beginning.
pub(crate) const MOST_INDEXED: usize = 256 << 10;

/// Maximum number of words to look for when one matching word is enough; of more words, only the
/// rarest are used.
const MOST_ALTERNATIVES: usize = 24;
/// Number of texts at which counting the texts with a word stops; all words in this many texts or
/// more count as equally frequent.
const FREQUENT: usize = 2000;

/// Maximum number of matching texts that are ranked; of more texts, only the newest are ranked.
/// This bounds how long a search for a frequent word keeps other requests waiting.
pub(super) const MOST_RANKED: usize = 20_000;

/// Returns the words of a text as the full-text table stores them.
pub(super) fn indexed(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST_INDEXED)];
    let mut indexed = String::with_capacity(text.len());
    each_word(text, |word| {
        indexed.push_str(word);
        indexed.push(' ');
    });
    indexed
}

/// Splits a query, which may be a whole message, into words.
fn words(text: &str) -> Vec<String> {
    ends(text, MOST_READ).into_iter().flat_map(retrieval::words::words).collect()
}

/// Returns the distinct significant words of a query in order, or all words if none is significant.
pub(super) fn sought(text: &str) -> Vec<String> {
    let significant = significant(text);
    if significant.is_empty() { distinct(words(text)) } else { significant }
}

/// Returns the distinct significant words of a query, in order.
pub(super) fn significant(text: &str) -> Vec<String> {
    distinct(words(text).into_iter().filter(|word| !is_stop_word(word)).collect())
}

/// Returns a query for texts with all of the words.
pub(super) fn all_of(words: &[String]) -> String {
    joined(&words.iter().collect::<Vec<_>>(), " ")
}

impl TableReading<'_> {
    /// Returns a query for texts in `table` with any of the words; if there are many words, with
    /// any of the rarest. Leaves out words that do not occur in the table; `None` when no word
    /// occurs.
    pub(super) fn some_of(
        &self,
        table: &str,
        words: Vec<String>,
    ) -> Result<Option<String>, StoreError> {
        let mut query = self.db.prepare_cached(&format!(
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
    fn a_query_has_only_quoted_words() {
        let text = "the parse_line\" OR NEAR(a*) -b:c ^ d' AND {x} \0";
        let expected = r#""parse" "line" "parseline" "near" "b" "c" "d" "x""#;
        assert_eq!(all_of(&sought(text)), expected);
        assert_eq!(all_of(&sought("to be or not")), r#""to" "be" "or" "not""#);
        assert!(significant("To be, or not?").is_empty() && sought("!*\"").is_empty());
    }

    #[test]
    fn the_rarest_of_many_words_are_the_alternatives() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE VIRTUAL TABLE t USING fts5 (words)").unwrap();
        for number in 0..40 {
            let text = (number..40).map(|n| format!("w{n} ")).collect::<String>();
            db.execute("INSERT INTO t VALUES (?1)", [text]).unwrap();
        }
        let words = |range: std::ops::Range<u64>| range.map(|n| format!("w{n}")).collect();
        let some = TableReading { db: &db }.some_of("t", words(0..99)).unwrap().unwrap();
        assert!(some.starts_with(r#""w0" OR "w1" OR"#) && some.ends_with(r#"OR "w23""#), "{some}");
        assert_eq!(TableReading { db: &db }.some_of("t", words(50..60)).unwrap(), None);
    }

    #[test]
    fn a_long_query_counts_from_both_ends() {
        let text: String = (1000..2000).map(|number| format!("{number} {number} ")).collect();
        let sought = sought(&text);
        let ends = [&sought[0], &sought[63], &sought[64], &sought[127]].map(String::as_str);
        assert_eq!((sought.len(), ends), (128, ["1000", "1063", "1936", "1999"]));
    }
}
