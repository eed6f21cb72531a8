//! Ranks the units of a history for a query by their words, their meaning if embedding vectors are
//! known, their neighbours, their age, and whether they are a user's, mention an error or change a
//! file.

use super::{Fate, Score, Verdict};
use crate::curation::similarity::Similarity;
use crate::curation::unit::{History, KeptReason, Unit};
use crate::retrieval::scan;
use crate::retrieval::stop::is_stop_word;
use crate::retrieval::words::{ends, stems, words};
use crate::session::message::{Message, Role};

/// Minimum score of a unit, as a share of its direct neighbour's score: an answer often repeats no
/// word of the question before it. Taking the maximum, not a sum, keeps chatter beside a hit from
/// pushing out other hits.
const NEIGHBOUR: f64 = 0.6;
/// Minimum score of a unit, as a share of its second neighbour's score.
const SECOND_NEIGHBOUR: f64 = 0.36;
/// Share of the best score nearby that a unit gains: hits often occur close together.
const SURROUNDINGS: f64 = 0.2;
/// Number of units on each side that count as nearby.
const NEARBY: usize = 6;
/// Weight of meaning in the fit of a unit to the query, if vectors are known. Words have the rest
/// of the weight.
const MEANING: f64 = 0.4;
/// Bonus for the best passage by meaning: an answer is often found by the text around it.
const PASSAGE: f64 = 0.4;
/// Maximum number of bytes of a query that are read.
const MOST_READ: usize = 16 << 10;
/// Bonus of the newest unit over the oldest, where the best match by words scores 1. The bonus
/// decides only between units that fit about equally well: if a value was changed later, the later
/// value is shown.
const RECENCY: f64 = 0.05;
/// Bonus for mentioning an error, and again for changing a file.
const IMPORTANCE: f64 = 0.02;
/// Bonus for a message of the user: requests matter more than answers.
const FROM_USER: f64 = 0.02;

/// Reason for keeping a ranked unit.
pub(super) const FITS_QUERY: &str = "fits the query";
/// Reason for leaving out a ranked unit.
pub(super) const FITS_LESS: &str = "fits the query less than the messages shown";

/// Scores each unit: how well it fits the query, what its neighbours add, and the bonuses for
/// newness and importance. Without `similarity`, a unit fits only by words; the best match by words
/// gets 1.
pub(super) fn scores(
    history: &History<'_>,
    query: &str,
    similarity: Option<&Similarity>,
) -> Vec<Score> {
    let mut fits = by_words(history, query);
    let meant = similarity.and_then(|similarity| by_meaning(history, query, similarity));
    let mut parts: Vec<_> = fits.iter().map(|fit| vec![("words", *fit)]).collect();
    for (at, (own, passage)) in meant.into_iter().flatten().enumerate() {
        let (words, own) = ((1.0 - MEANING) * fits[at], MEANING * own);
        parts[at] = vec![("words", words), ("meaning", own + PASSAGE * passage)];
        fits[at] = words + own;
    }
    let last = history.units.len().saturating_sub(1).max(1) as f64;
    let score = |((at, unit), mut parts): ((usize, &Unit), Vec<_>)| {
        parts.extend([
            ("neighbours", by_neighbours(&fits, at)),
            ("recency", RECENCY * at as f64 / last),
            ("importance", importance(history, unit)),
        ]);
        Score { total: parts.iter().map(|(_, part)| part).sum(), parts }
    };
    history.units.iter().enumerate().zip(parts).map(score).collect()
}

/// Scores the units and the passages around them by meaning, each relative to the best. A unit that
/// has no vector, or only repeats the query, gets the mean of the others, so that missing vectors
/// decide nothing. Returns `None` if there are no others.
fn by_meaning(
    history: &History<'_>,
    query: &str,
    similarity: &Similarity,
) -> Option<Vec<(f64, f64)>> {
    let near = |unit: &Unit| {
        let near = unit.members.iter().filter_map(|index| similarity.at(*index));
        let near = near.map(|near| (near.own, near.passage));
        near.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))).filter(|_| !repeats(history, unit, query))
    };
    let units: Vec<Option<(f64, f64)>> = history.units.iter().map(near).collect();
    let own = relative(units.iter().map(|near| near.map(|near| near.0)))?;
    let passage = relative(units.iter().map(|near| near.map(|near| near.1)))?;
    Some(own.into_iter().zip(passage).collect())
}

/// Returns values relative to the best value. Negative values become 0, and missing values the mean
/// of the others. Returns `None` if all values are missing.
fn relative(values: impl Iterator<Item = Option<f64>> + Clone) -> Option<Vec<f64>> {
    let best = values.clone().flatten().fold(f64::MIN_POSITIVE, f64::max);
    let known = values.clone().flatten().map(|value| value.max(0.0) / best);
    let count = known.clone().count();
    let mean = known.sum::<f64>() / count as f64;
    let relative = |value: Option<f64>| value.map_or(mean, |value| value.max(0.0) / best);
    (count > 0).then(|| values.map(relative).collect())
}

/// Returns whether a unit only repeats the query, which is not an answer.
fn repeats(history: &History<'_>, unit: &Unit, query: &str) -> bool {
    history.members(unit).all(|message| *message.content == *query)
}

/// Returns what the neighbours of unit `at` add to its score. `fits` has the fit of each unit.
fn by_neighbours(fits: &[f64], at: usize) -> f64 {
    let near = |away: usize| {
        let before = at.checked_sub(away).map_or(0.0, |other| fits[other]);
        before.max(fits.get(at + away).copied().unwrap_or(0.0))
    };
    let lift = (NEIGHBOUR * near(1)).max(SECOND_NEIGHBOUR * near(2)) - fits[at];
    SURROUNDINGS * (1..=NEARBY).map(near).fold(0.0, f64::max) + lift.max(0.0)
}

pub(super) fn verdict(kept: Option<KeptReason>, fate: Fate, score: Score) -> Verdict {
    let ranked = if fate == Fate::Dropped { FITS_LESS } else { FITS_QUERY };
    Verdict { fate, reason: kept.map_or(ranked, KeptReason::reason), score: Some(score) }
}

/// Returns the indices of the units, best first; of units with the same score, the newer first.
pub(super) fn best_first(scores: &[Score]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total.total_cmp(&scores[*a].total).then(b.cmp(a)));
    order
}

/// Returns the given query, or the user's last message if none is given.
pub(super) fn query<'a>(history: &History<'a>, given: Option<&'a str>) -> &'a str {
    let last = || history.messages.iter().rev().find(|message| message.role == Role::User);
    given.or_else(|| last().map(|message| &*message.content)).unwrap_or("")
}

/// Scores the units by BM25, relative to the best. A unit that only repeats the query scores 0.
fn by_words(history: &History<'_>, query: &str) -> Vec<f64> {
    let query_stems = query_stems(query);
    let mut scores = indexed(history, &query_stems).unwrap_or_else(|| {
        let texts = |unit| history.members(unit).flat_map(texts);
        scan::scores(history.units.iter().map(texts), &query_stems)
    });
    for (unit, score) in history.units.iter().zip(&mut scores) {
        if *score > 0.0 && repeats(history, unit, query) {
            *score = 0.0;
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    if best > 0.0 {
        scores.iter_mut().for_each(|score| *score /= best);
    }
    scores
}

/// Returns the stems of a query, which may be a whole message. Reads only the beginning and the end
/// of a long query. Stop words count only if the query has no other words.
fn query_stems(query: &str) -> Vec<String> {
    let all = || ends(query, MOST_READ).into_iter().flat_map(words);
    let telling: Vec<String> = all().filter(|word| !is_stop_word(word)).collect();
    let words = if telling.is_empty() { all().collect() } else { telling };
    words.iter().flat_map(|word| stems(word)).collect()
}

/// Scores the units by the stored words of their messages, and stores the words that are missing.
/// `None` if the history stores no words or has no room for more.
fn indexed(history: &History<'_>, query: &[String]) -> Option<Vec<f64>> {
    let mut words = history.words?.index.lock().ok()?;
    let mut messages = history.messages.iter();
    let has_all = messages.all(|message| words.add(message.number, texts(message)));
    let numbers = |unit| history.members(unit).map(|message| message.number);
    has_all.then(|| words.scores(history.units.iter().map(numbers), query))
}

/// Returns the texts of a message, including the arguments of tool calls.
fn texts(message: &Message) -> impl Iterator<Item = &str> {
    let arguments = message.tool_calls.iter().map(|call| &*call.arguments);
    std::iter::once(&*message.content).chain(arguments)
}

fn importance(history: &History<'_>, unit: &Unit) -> f64 {
    let any = |is: fn(&Message) -> bool| history.members(unit).any(is);
    let error = f64::from(any(|message| message.signals.error));
    let operation = f64::from(any(|message| message.signals.operation));
    let user = f64::from(any(|message| message.role == Role::User));
    IMPORTANCE * (error + operation) + FROM_USER * user
}
