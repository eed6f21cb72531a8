//! Words in full-text tables: how texts are indexed, and how free text becomes a query that is
//! never a syntax error.
//!
//! [`retrieval::words`] splits texts and queries into words. The words are joined by spaces, and
//! stemmed by FTS5.

use std::collections::{HashMap, HashSet};

use super::super::StoreError;
use super::TableReading;
use crate::retrieval;
use crate::retrieval::stop::is_stop_word;
pub use crate::retrieval::words::{LONGEST_RUN, MOST_READ};
use crate::retrieval::words::{each_word, ends};

/// Maximum number of distinct query words: half from the beginning, half from the end.
pub const MOST_WORDS: usize = 128;

/// Maximum number of bytes of a text that are indexed, from its beginning.
pub const MOST_INDEXED: usize = 256 << 10;

/// Number of times that each word of a long text is indexed at most. Repeated more often, it would hardly
/// change the rank of the text, but would make each search for it slower.
const MOST_REPEATED: usize = 16;

/// Maximum length of a text, in bytes, whose words are indexed without counting them.
const SHORT_TEXT: usize = 4 << 10;

/// Maximum number of words of a query that texts are searched for; of more words, only the rarest.
const MOST_SOUGHT: usize = 24;

/// Maximum number of matching texts that are ranked; of more texts, only the newest are ranked.
/// This bounds how long a search for frequent words keeps other requests waiting.
pub(super) const MOST_RANKED: usize = 4000;

/// Returns the words of a text as the full-text table stores them.
pub(super) fn indexed(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST_INDEXED)];
    let mut indexed = String::with_capacity(text.len());
    let mut counts = HashMap::<String, usize>::new();
    each_word(text, |word| {
        if text.len() > SHORT_TEXT {
            let count = match counts.get_mut(word) {
                Some(count) => count,
                None => counts.entry(word.to_owned()).or_default(),
            };
            *count += 1;
            if *count > MOST_REPEATED {
                return;
            }
        }
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

impl TableReading<'_> {
    /// Returns a query for texts in `table` with all of the words; if there are many words, with all
    /// of the rarest. `None` when a word does not occur in the table.
    pub(super) fn all_of(
        &self,
        table: &str,
        words: &[String],
    ) -> Result<Option<String>, StoreError> {
        let known = self.rarest(table, words)?;
        Ok((known.len() == words.len().min(MOST_SOUGHT)).then(|| joined(&known, " ")))
    }

    /// Returns a query for texts in `table` with any of the words; if there are many words, with any
    /// of the rarest. Leaves out words that do not occur in the table; `None` when no word occurs.
    ///
    /// Frequent words alone find no text if rarer ones do, so that all texts with rare words are
    /// ranked, however old.
    pub(super) fn some_of(
        &self,
        table: &str,
        words: &[String],
    ) -> Result<Option<String>, StoreError> {
        let known = self.rarest(table, words)?;
        let mut room = MOST_RANKED;
        let is_rare = |(count, _): &&(usize, &String)| {
            let fits = *count <= room;
            room = room.saturating_sub(*count);
            fits
        };
        let rare = known.iter().take_while(is_rare).count();
        let any = joined(&known, " OR ");
        Ok(match rare {
            0 if known.is_empty() => None,
            0 => Some(any),
            rare if rare == known.len() => Some(any),
            rare => Some(format!("({}) AND ({any})", joined(&known[..rare], " OR "))),
        })
    }

    /// Returns the rarest of the words that occur in `table`, each with the number of its texts, the
    /// rarest first. Counting stops when there are more texts than can be ranked.
    fn rarest<'a>(
        &self,
        table: &str,
        words: &'a [String],
    ) -> Result<Vec<(usize, &'a String)>, StoreError> {
        let mut query = self.db.prepare_cached(&format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 LIMIT ?2)"
        ))?;
        let mut known: Vec<(usize, &String)> = Vec::new();
        for word in words {
            let values = (joined(&[(0, word)], ""), MOST_RANKED + 1);
            let count = query.query_row(values, |row| row.get(0))?;
            if count > 0 {
                known.push((count, word));
            }
        }
        known.sort_by_key(|(count, _)| *count);
        known.truncate(MOST_SOUGHT);
        Ok(known)
    }
}

fn joined(words: &[(usize, &String)], operator: &str) -> String {
    // A word has no quotes, because it is made of letters and digits.
    words.iter().map(|(_, word)| format!("\"{word}\"")).collect::<Vec<_>>().join(operator)
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

    /// Returns a table `t` with these texts.
    fn table(texts: impl Iterator<Item = String>) -> rusqlite::Connection {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE VIRTUAL TABLE t USING fts5 (words); BEGIN").unwrap();
        let mut insert = db.prepare("INSERT INTO t VALUES (?1)").unwrap();
        for text in texts {
            insert.execute([text]).unwrap();
        }
        drop(insert);
        db
    }

    #[test]
    fn a_word_is_indexed_some_times_and_every_word_once() {
        assert_eq!(indexed("The parser parses, the PARSER"), "the parser parses the parser ");
        let text = "line of a file\n".repeat(1000) + "the last";
        let indexed = indexed(&text);
        assert_eq!(indexed.matches("line ").count(), MOST_REPEATED);
        assert_eq!(indexed.len(), MOST_REPEATED * "line of a file ".len() + "the last ".len());
    }

    #[test]
    fn a_query_has_only_quoted_words() {
        let text = "the parse_line\" OR NEAR(a*) -b:c ^ d' AND {x} \0";
        let sought = sought(text);
        let db = table([sought.join(" ")].into_iter());
        let expected = r#""parse" "line" "parseline" "near" "b" "c" "d" "x""#;
        assert_eq!(TableReading { db: &db }.all_of("t", &sought).unwrap().unwrap(), expected);
        assert_eq!(super::sought("to be or not"), ["to", "be", "or", "not"]);
        assert!(significant("To be, or not?").is_empty() && super::sought("!*\"").is_empty());
    }

    #[test]
    fn the_rarest_of_many_words_are_sought() {
        let text = |number| (number..40).map(|n| format!("w{n} ")).collect::<String>();
        let db = table((0..40).map(text));
        let reading = TableReading { db: &db };
        let words = |range: std::ops::Range<u64>| -> Vec<String> {
            range.map(|n| format!("w{n}")).collect()
        };
        let some = reading.some_of("t", &words(0..99)).unwrap().unwrap();
        assert!(some.starts_with(r#""w0" OR "w1" OR"#) && some.ends_with(r#"OR "w23""#), "{some}");
        assert_eq!(reading.some_of("t", &words(50..60)).unwrap(), None);
        let all = reading.all_of("t", &words(0..40)).unwrap().unwrap();
        assert!(all.starts_with(r#""w0" "w1" "#) && all.ends_with(r#" "w23""#), "{all}");
        assert_eq!(reading.all_of("t", &words(38..41)).unwrap(), None);
    }

    #[test]
    fn rare_words_choose_the_texts_and_frequent_words_count_too() {
        let often = || (0..=MOST_RANKED).map(|_| "let mut".to_owned());
        let db = table(["rare let".to_owned(), "odd".to_owned()].into_iter().chain(often()));
        let some = |text| TableReading { db: &db }.some_of("t", &words(text)).unwrap().unwrap();
        assert_eq!(some("let rare mut"), r#"("rare") AND ("rare" OR "let" OR "mut")"#);
        assert_eq!(some("mut odd let rare").matches(r#"("odd" OR "rare") AND"#).count(), 1);
        assert_eq!(some("mut let"), r#""mut" OR "let""#);
    }

    #[test]
    fn a_long_query_counts_from_both_ends() {
        let text: String = (1000..2000).map(|number| format!("{number} {number} ")).collect();
        let sought = sought(&text);
        let ends = [&sought[0], &sought[63], &sought[64], &sought[127]].map(String::as_str);
        assert_eq!((sought.len(), ends), (128, ["1000", "1063", "1936", "1999"]));
    }
}
