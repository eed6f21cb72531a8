//! Tests of windows that slide over histories written as words.

use super::*;
use crate::curation::strategy::{Fate, Shown};
use crate::curation::testing::{history, messages, plain};

/// Formats the shown messages as numbers, and notes in brackets.
pub(crate) fn show(projection: &Projection) -> String {
    let shown = projection.shown.iter().map(|shown| match shown {
        Shown::Whole(index) => (index + 1).to_string(),
        Shown::Shortened { index, .. } => format!("~{}", index + 1),
        Shown::Note { content, .. } => content.clone(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(words: &str, budget: u64, expected: &str) {
    let (messages, measure) = (messages(words), plain());
    let history = history(&messages, &measure);
    let projection = Sliding.project(&history, &Aim { budget, ..Aim::default() });
    assert_eq!(show(&projection), expected, "{words} in {budget}");
    assert_eq!(projection.verdicts.len(), history.units.len());
}

#[test]
fn fifty_messages_are_the_first_a_note_and_the_newest_four() {
    // 15,000 tokens hold the request of 1,000 and four messages of 3,400.
    let mut words = String::from("u=1000");
    for number in 2..=50 {
        words.push_str(if number % 2 == 0 { " a=3400" } else { " u=3400" });
    }
    check(&words, 15_000, "1 [45 earlier messages omitted for brevity] 47 48 49 50");
}

#[test]
fn a_history_that_fits_is_left_alone() {
    check("u a u a", 4, "1 2 3 4");
    check("", 0, "");
}

#[test]
fn a_unit_is_never_split_and_ends_the_window_when_it_does_not_fit() {
    check("u a>1=9 t<1=9 a u a", 21, "1 [2 earlier messages omitted for brevity] 4 5 6");
    check("u a=99 a>1=9 t<1=9 u a", 31, "1 [1 earlier messages omitted for brevity] 3 4 5 6");
}

#[test]
fn units_that_cannot_be_left_out_stay_wherever_they_are() {
    check("u a=9 a! a=9 u a", 14, "1 [2 earlier messages omitted for brevity] 3 5 6");
    check("s u a=9 a>1 a=9 u", 14, "1 2 [2 earlier messages omitted for brevity] 4 6");
}

#[test]
fn a_note_that_does_not_fit_is_left_out() {
    check("u a=9 a=9 a u a", 4, "1 4 5 6");
    check("u a=9 u", 2, "1 3");
}

#[test]
fn each_unit_has_its_verdict() {
    let (messages, measure) = (messages("u a=99 a=99 u a"), plain());
    let projection =
        Sliding.project(&history(&messages, &measure), &Aim { budget: 20, ..Aim::default() });
    let reasons: Vec<_> = projection.verdicts.iter().map(|v| (v.fate, v.reason)).collect();
    let expected = [
        (Fate::Kept, "the first user message"),
        (Fate::Dropped, OLDER),
        (Fate::Dropped, OLDER),
        (Fate::Kept, "the last user message"),
        (Fate::Kept, RECENT),
    ];
    assert_eq!(reasons, expected);
}
