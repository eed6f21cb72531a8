//! The strategy `query`: keeps the units that best fit a question.

use std::collections::HashMap;

use super::selection::UnitSelection;
use super::{Aim, Projection, Shown, Strategy, rank};
use crate::curation::unit::History;

/// The strategy that ranks the units by a query and keeps the best that fit, whole and in the order
/// of the log. Without a query, it uses the user's last message.
pub(super) struct QueryStrategy;

impl Strategy for QueryStrategy {
    fn name(&self) -> &'static str {
        "query"
    }

    fn keeps(&self) -> &'static str {
        "everything that fits; else what fits the query best, with its neighbours"
    }

    fn project(&self, history: &History<'_>, aim: &Aim<'_>) -> Projection {
        let mut selection = UnitSelection::new(history, history.room(aim.budget));
        if selection.everything_fits() {
            return selection.all();
        }
        let scores = rank::scores(history, rank::query(history, aim.query), aim.similarity);
        let order = rank::best_first(&scores);
        selection = selection.scored(scores);
        for unit in order {
            selection.keep(unit, rank::FITS_QUERY);
        }
        let left = selection.room();
        let projection = selection.finish(rank::FITS_LESS);
        Projection { shown: with_marks(history, &projection.shown, left), ..projection }
    }
}

/// Spends the rest of the budget on notes that mark the gaps between the chosen messages, the
/// longest gaps first. A mark therefore never costs a unit its place.
fn with_marks(history: &History<'_>, chosen: &[Shown], mut left: u64) -> Vec<Shown> {
    let mut shown = vec![false; history.messages.len()];
    for chosen in chosen {
        if let Shown::Whole(index) = chosen {
            shown[*index] = true;
        }
    }
    let mut gaps = gaps(&shown);
    gaps.sort_by_key(|(start, length)| (std::cmp::Reverse(*length), *start));
    let marks = gaps.into_iter().map_while(|(start, length)| {
        let content = mark(length);
        let tokens = history.measure.note(&content);
        left = left.checked_sub(tokens)?;
        Some((start, Shown::Note { content, tokens, lines: Vec::new() }))
    });
    let mut marks: HashMap<usize, Shown> = marks.collect();
    let mut result = Vec::new();
    for (index, shown) in shown.into_iter().enumerate() {
        result.extend(marks.remove(&index));
        if shown {
            result.push(Shown::Whole(index));
        }
    }
    result
}

/// Returns the start and length of each run of messages that are not shown, oldest first.
fn gaps(shown: &[bool]) -> Vec<(usize, usize)> {
    let mut gaps: Vec<(usize, usize)> = Vec::new();
    for index in (0..shown.len()).filter(|index| !shown[*index]) {
        match gaps.last_mut().filter(|(start, length)| start + length == index) {
            Some((_, length)) => *length += 1,
            None => gaps.push((index, 1)),
        }
    }
    gaps
}

fn mark(messages: usize) -> String {
    let plural = if messages == 1 { "message" } else { "messages" };
    format!("[{messages} {plural} omitted]")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::curation::similarity::Similarity;
    use crate::curation::testing::conversation as messages;
    use crate::tokens::{Estimate, Measure};

    #[track_caller]
    fn check(said: &[(&str, &str)], query: Option<&str>, budget: u64, expected: &str) {
        let messages = messages(said);
        let measure = Measure::plain(Arc::new(Estimate));
        let history = History::new(messages.iter().collect(), &measure);
        let projection = QueryStrategy.project(&history, &Aim { budget, query, ..Aim::default() });
        let mut tokens = 0;
        let show = |shown: &Shown| match shown {
            Shown::Whole(index) => {
                tokens += measure.message(messages[*index].tokens);
                index.to_string()
            }
            Shown::Note { content, tokens: cost, .. } => {
                tokens += cost;
                content.clone()
            }
            Shown::Shortened { .. } => unreachable!(),
        };
        let shown: Vec<String> = projection.shown.iter().map(show).collect();
        assert_eq!(shown.join(" "), expected);
        assert!(tokens <= budget);
        assert_eq!(projection.verdicts.len(), history.units.len());
    }

    const SAID: &[(&str, &str)] = &[
        ("u", "hello to all of you"),
        ("a", "the parser is in a bad way"),
        ("a", "it fails at the last line"),
        ("a", "cats sleep on warm roofs all day long until it gets dark"),
        ("a", "dogs bark at the post van"),
        ("u", "and what is next for us, if there is anything?"),
    ];

    #[test]
    fn the_best_units_and_their_neighbours_stay_in_order() {
        check(SAID, Some("where is the parser?"), 37, "0 1 2 [2 messages omitted] 5");
        check(SAID, Some("do dogs bark?"), 38, "0 3 4 5");
    }

    #[test]
    fn everything_stays_when_it_fits() {
        check(SAID, Some("cats"), 100, "0 1 2 3 4 5");
    }

    #[test]
    fn a_message_that_means_what_is_asked_is_kept_without_its_words() {
        let messages = messages(SAID);
        let measure = Measure::plain(Arc::new(Estimate));
        let history = History::new(messages.iter().collect(), &measure);
        let shown = |vectors: &[Option<[f32; 2]>]| {
            let vectors = (0..messages.len()).map(|at| vectors.get(at)?.as_ref());
            let similarity = Similarity::of(&[1.0, 0.0], vectors.map(|it| it.map(|it| &it[..])));
            let aim = Aim {
                budget: 30,
                query: Some("the parser"),
                similarity: Some(&similarity),
                once: false,
            };
            QueryStrategy.project(&history, &aim).shown
        };
        let by_words = shown(&[]);
        let aim = Aim { budget: 30, query: Some("the parser"), ..Aim::default() };
        assert_eq!(by_words, QueryStrategy.project(&history, &aim).shown);
        let mut vectors = [Some([0.0, 1.0]); 6];
        assert_eq!(by_words, shown(&vectors), "all others are alike");
        vectors[4] = Some([1.0, 0.0]);
        assert!(!by_words.contains(&Shown::Whole(4)) && shown(&vectors).contains(&Shown::Whole(4)));
    }

    #[test]
    fn the_last_user_message_is_the_default_query() {
        let mut said = SAID.to_vec();
        said.push(("u", "what of warm roofs"));
        check(&said, None, 30, "0 [2 messages omitted] 3 6");
    }

    #[test]
    fn calls_stay_with_their_results() {
        let said = [
            ("u", "start with the work"),
            ("a>1", "look at it"),
            ("u", "cats are fine with me"),
            ("t<1", "parser.rs has the parser"),
            ("u", "what now?"),
        ];
        check(&said, Some("parser"), 18, "0 1 3 4");
    }
}
