//! How well each unit of a history answers a query: its words, its neighbours' words, how new it
//! is and what it speaks of.

use super::Score;
use crate::curation::unit::{History, Unit};
use crate::retrieval::scan;
use crate::retrieval::words::stems;
use crate::session::message::Role;

/// How much of its neighbour's score a unit gets beside its own: an answer often names nothing
/// that the question before it named. The shares are those that keep the most evidence in
/// `make bench-curation`.
const NEIGHBOUR: f64 = 0.85;
/// The same of the neighbour's neighbour.
const SECOND_NEIGHBOUR: f64 = 0.1;
/// What the newest unit gets more than the oldest, where the best match has 1. Small, so that it
/// decides between units that fit alike: of two values the later one is the one that holds.
const RECENCY: f64 = 0.05;
/// What a unit gets for speaking of an error or changing a file, and for each of them.
const IMPORTANCE: f64 = 0.02;
/// What a unit of the user gets: what is asked for counts more than what is told.
const FROM_USER: f64 = 0.02;

/// The score of each unit; the best match by words alone has 1 for them.
pub(super) fn scores(history: &History<'_>, query: &str) -> Vec<Score> {
    let words = by_words(history, query);
    let last = history.units.len().saturating_sub(1).max(1) as f64;
    let near = |at: usize, away: usize| {
        let before = at.checked_sub(away).map_or(0.0, |other| words[other]);
        before.max(words.get(at + away).copied().unwrap_or(0.0))
    };
    let score = |(at, unit): (usize, &Unit)| {
        let parts = vec![
            ("words", words[at]),
            ("neighbours", NEIGHBOUR * near(at, 1) + SECOND_NEIGHBOUR * near(at, 2)),
            ("recency", RECENCY * at as f64 / last),
            ("importance", importance(history, unit)),
        ];
        Score { total: parts.iter().map(|(_, part)| part).sum(), parts }
    };
    history.units.iter().enumerate().map(score).collect()
}

/// The units' numbers, best first; of equal ones the newer.
pub(super) fn best_first(scores: &[Score]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total.total_cmp(&scores[*a].total).then(b.cmp(a)));
    order
}

/// What is asked when nothing is given: what the user said last.
pub(super) fn query<'a>(history: &History<'a>, given: Option<&'a str>) -> &'a str {
    let last = || history.messages.iter().rev().find(|message| message.role == Role::User);
    given.or_else(|| last().map(|message| &*message.content)).unwrap_or("")
}

/// BM25 as shares of the best. A unit that says no more than the query itself is no answer.
fn by_words(history: &History<'_>, query: &str) -> Vec<f64> {
    let texts = history.units.iter().map(|unit| texts(history, unit));
    let mut scores = scan::scores(texts, &stems(query));
    for (unit, score) in history.units.iter().zip(&mut scores) {
        if *score > 0.0 && history.members(unit).all(|message| *message.content == *query) {
            *score = 0.0;
        }
    }
    let best = scores.iter().copied().fold(0.0, f64::max);
    if best > 0.0 {
        scores.iter_mut().for_each(|score| *score /= best);
    }
    scores
}

/// What a unit says, calls of tools among it.
fn texts<'a, 'b>(
    history: &'b History<'a>,
    unit: &'b Unit,
) -> impl Iterator<Item = &'a str> + use<'a, 'b> {
    history.members(unit).flat_map(|message| {
        let arguments = message.tool_calls.iter().map(|call| &*call.arguments);
        std::iter::once(&*message.content).chain(arguments)
    })
}

fn importance(history: &History<'_>, unit: &Unit) -> f64 {
    let any = |is: fn(&crate::session::message::Message) -> bool| history.members(unit).any(is);
    let error = f64::from(any(|message| message.signals.error));
    let operation = f64::from(any(|message| message.signals.operation));
    let user = f64::from(any(|message| message.role == Role::User));
    IMPORTANCE * (error + operation) + FROM_USER * user
}
