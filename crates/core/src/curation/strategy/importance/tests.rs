//! Tests of scores, and of the messages that they keep in small histories.

use super::*;
use crate::curation::strategy::Shown;
use crate::curation::testing::{history, messages, plain, said};

#[track_caller]
fn check_scores(messages: &[Message], expected: &[f64]) {
    let measure = plain();
    let scores = scores(&history(messages, &measure));
    let totals: Vec<f64> = scores.iter().map(|score| score.total).collect();
    assert_eq!(totals, expected);
    for score in scores {
        assert_eq!(score.parts.iter().map(|(_, points)| points).sum::<f64>(), score.total);
    }
}

#[test]
fn the_worked_example_scores_as_expected() {
    check_scores(&messages("s u a u a u"), &[70.0, 20.0, 18.0, 36.0, 34.0, 60.0]);
}

#[test]
fn a_unit_has_the_score_of_its_highest_message() {
    // Recency gives 0, 10, 20 and 40. Role and tool give 10 each, except for the users.
    check_scores(&messages("u a>1 t<1 u"), &[20.0, 40.0, 60.0]);
}

#[test]
fn keywords_are_capped_and_length_is_extra() {
    let text = format!("CREATE: a failed, but then completed {}", "x".repeat(1_000));
    let long = said(1, Role::User, &text);
    let scores = scores(&history(std::slice::from_ref(&long), &plain()));
    let expected = [
        ("recency", 40.0),
        ("role", 20.0),
        ("error", 15.0),
        ("success", 10.0),
        ("operation", 20.0),
        ("keyword-cap", -20.0),
        ("length", 5.0),
    ];
    assert_eq!((scores[0].total, &*scores[0].parts), (90.0, &expected[..]));
}

#[track_caller]
fn check(messages: &[Message], budget: u64, expected: &[usize]) {
    let measure = plain();
    let history = history(messages, &measure);
    let projection = Importance.project(&history, &Aim { budget, ..Aim::default() });
    let shown = projection.shown.iter().map(|shown| match shown {
        Shown::Whole(index) => index + 1,
        other => panic!("{other:?}"),
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected);
    assert_eq!(projection.verdicts.len(), history.units.len());
}

#[test]
fn the_highest_scores_are_kept_in_order() {
    // The first user message cannot be left out, so the fourth place goes to message 4, which
    // scores 36.
    check(&messages("s u a u a u"), 4, &[1, 2, 4, 6]);
    check(&messages("s u a u a u"), 5, &[1, 2, 4, 5, 6]);
    check(&messages("s u a u a u"), 6, &[1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_error_is_worth_keeping() {
    let messages = [
        said(1, Role::User, "hello"),
        said(2, Role::Assistant, "ERROR: Failed"),
        said(3, Role::Assistant, "all is well!!"),
        said(4, Role::User, "goodbye"),
    ];
    check(&messages, 8, &[1, 2, 4]);
}

#[test]
fn a_large_unit_makes_way_for_smaller_ones() {
    check(&messages("u a a=50 a u"), 4, &[1, 2, 4, 5]);
}

#[test]
fn the_last_message_goes_before_higher_scores() {
    check(&messages("u a>1=3 t<1=3 u a=6"), 9, &[1, 4, 5]);
}
