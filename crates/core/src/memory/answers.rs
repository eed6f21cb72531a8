//! Chooses, from ranked memories, those that answer a query.
//!
//! A text is worth the words that it adds to the query. An earlier message that only asks the same
//! question adds nothing, even if it matches well. If several texts add the same words, one of them
//! is enough.

use std::collections::BTreeSet;

use super::grounding::LONGEST;
use crate::retrieval::stop::is_stop_word;
use crate::retrieval::words::{MOST_READ, ends, stems_where};

/// Words that people use to ask, and that add nothing to the subject of a question.
const ASKING: &[&str] = &[
    "again", "anybody", "anyone", "exactly", "find", "give", "hey", "hi", "know", "look", "much",
    "now", "ok", "okay", "once", "question", "remember", "remind", "say", "show", "still", "tell",
    "thanks", "today", "want", "wonder", "yet",
];
/// Minimum share of a text's words that an earlier text must have, so that the text repeats it.
/// Words of the query do not count.
const SAME: f64 = 0.9;
/// Maximum number of words in an earlier text, as a multiple of the number of words in a text that
/// repeats it. Words of the query do not count.
const LARGER: usize = 2;
/// Minimum number of the query's words that a note must have to precede other texts, as a share of
/// the largest number that any text has.
const NOTED: f64 = 0.5;

/// A memory that may answer a query.
#[derive(Debug, Clone, Copy)]
pub struct AnswerText<'a> {
    /// Number of the memory.
    pub id: u64,
    /// The memory's text.
    pub content: &'a str,
    /// True if somebody asked to remember the text, false if it comes from a conversation.
    pub noted: bool,
}

/// The value of a text as an answer. The best value comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnswerWorth {
    /// Somebody asked to remember the text, and the text is about the query.
    Noted,
    /// The text states something, or somebody asked to remember the text.
    States,
    /// The text only asks, but has words that the query does not have.
    Asks,
    /// The text has only words of the query.
    Repeats,
}

/// The meaningful words of a text.
#[derive(Default)]
struct MeaningfulWords {
    id: u64,
    noted: bool,
    /// Number of the query's words that the text has.
    shared: usize,
    /// Words of the text that the query does not have.
    adds: BTreeSet<String>,
    /// True if some of the words in `adds` are in a sentence that is not a question.
    states: bool,
}

/// Returns the ids of at most `most` texts, in groups: notes about the query, then other notes and
/// texts that state something, then texts that only ask. Each group keeps the order of `ranked`. A
/// text that says the same as a chosen one is left out. At most one text that only repeats the
/// query is returned, as the last.
pub fn answers(query: &str, ranked: &[AnswerText<'_>], most: usize) -> Vec<u64> {
    let asked: BTreeSet<String> = ends(query, MOST_READ).into_iter().flat_map(terms).collect();
    let said: Vec<MeaningfulWords> =
        ranked.iter().map(|text| MeaningfulWords::of(text, &asked)).collect();
    let best = said.iter().map(|said| said.shared).max().unwrap_or(0);
    let mut order: Vec<(AnswerWorth, &MeaningfulWords)> =
        said.iter().map(|said| (said.worth(best), said)).collect();
    order.sort_by_key(|(worth, _)| *worth);
    let mut chosen: Vec<&MeaningfulWords> = Vec::new();
    for (_, said) in order {
        if chosen.len() == most {
            break;
        }
        if !chosen.iter().any(|earlier| said.repeats(earlier)) {
            chosen.push(said);
        }
    }
    chosen.into_iter().map(|said| said.id).collect()
}

impl MeaningfulWords {
    fn of(text: &AnswerText<'_>, asked: &BTreeSet<String>) -> Self {
        let shown: String = text.content.chars().take(LONGEST).collect();
        let mut said = Self { id: text.id, noted: text.noted, ..Self::default() };
        let mut shared = BTreeSet::new();
        for sentence in shown.split_inclusive(['.', '!', '?', '\n']) {
            for term in terms(sentence) {
                if asked.contains(&term) {
                    shared.insert(term);
                } else {
                    said.states |= !sentence.ends_with('?');
                    said.adds.insert(term);
                }
            }
        }
        said.shared = shared.len();
        said
    }

    fn worth(&self, best: usize) -> AnswerWorth {
        let about = self.shared > 0 && self.shared as f64 >= NOTED * best as f64;
        match (self.adds.is_empty(), self.noted, self.states) {
            (true, _, _) => AnswerWorth::Repeats,
            (false, true, _) if about => AnswerWorth::Noted,
            (false, false, false) => AnswerWorth::Asks,
            (false, _, _) => AnswerWorth::States,
        }
    }

    /// Returns whether an earlier text says nearly everything that this text says, and not much
    /// more. The earlier text must have every number that this text adds.
    fn repeats(&self, earlier: &Self) -> bool {
        let both = self.adds.intersection(&earlier.adds).count();
        let number = |term: &&String| term.starts_with(|c: char| c.is_ascii_digit());
        both as f64 >= SAME * self.adds.len() as f64
            && earlier.adds.len() <= LARGER * self.adds.len()
            && self.adds.iter().filter(number).all(|term| earlier.adds.contains(term))
    }
}

/// Returns the stems of the meaningful words of a text.
fn terms(text: &str) -> BTreeSet<String> {
    let is_meaningful = |word: &str| !is_stop_word(word) && ASKING.binary_search(&word).is_err();
    stems_where(text, is_meaningful).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "What of the database port?";

    /// Texts that begin with `!` are notes.
    #[track_caller]
    fn check(ranked: &[&str], most: usize, expected: &[u64]) {
        let texts: Vec<AnswerText<'_>> = (1..)
            .zip(ranked)
            .map(|(id, text)| {
                let content = text.trim_start_matches('!');
                AnswerText { id, content, noted: text.starts_with('!') }
            })
            .collect();
        assert_eq!(answers(QUERY, &texts, most), expected);
    }

    #[test]
    fn words_of_asking_can_be_looked_up() {
        assert!(ASKING.is_sorted());
    }

    #[test]
    fn the_query_itself_takes_one_place_and_the_last() {
        check(
            &[QUERY, "what of the database port", "And the DATABASE port?", "It is port 5433."],
            5,
            &[4, 1],
        );
        check(&[QUERY; 50], 5, &[1]);
        check(&["Please tell me the database port again!", "The port is 5433."], 1, &[2]);
    }

    #[test]
    fn notes_about_the_query_come_first() {
        check(
            &["We moved the database port to 5433.", "!the database listens on port 5433"],
            5,
            &[2, 1],
        );
        check(&["The database port is in db.toml.", "!the sea port of Trieste"], 5, &[2, 1]);
        check(&["The database port is in db.toml.", "!the cat is called Ada"], 5, &[1, 2]);
    }

    #[test]
    fn texts_that_say_the_same_take_one_place() {
        check(
            &["The port is 5433.", "port: 5433", "Port 5433, the database's.", "The port is 6000."],
            5,
            &[1, 4],
        );
    }

    #[test]
    fn a_statement_precedes_a_question() {
        check(&["Why has staging another database port?", "The port is 5433."], 5, &[2, 1]);
        check(&["Whose is it? The port belongs to staging."], 5, &[1]);
    }

    #[test]
    fn a_short_text_is_no_repetition_of_a_long_one() {
        let long = "The port was read from staging, and then we talked for long of other things.";
        check(&[long, "The port of staging."], 5, &[1, 2]);
    }
}
