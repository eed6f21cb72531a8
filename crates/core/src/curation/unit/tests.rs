//! Tests of the units of short histories, written as words.

use super::*;
use crate::curation::testing::{conversation, history, messages, plain};

#[track_caller]
fn check(words: &str, expected: &str) {
    let (messages, measure) = (messages(words), plain());
    let history = history(&messages, &measure);
    let show = |unit: &Unit| {
        let members: Vec<String> = unit.members.iter().map(ToString::to_string).collect();
        let kept = unit.kept.map_or(String::new(), |kept| format!("={kept:?}"));
        format!("{}{}{}", members.join("+"), kept, if unit.orphan { "?" } else { "" })
    };
    let shown: Vec<String> = history.units.iter().map(show).collect();
    assert_eq!(shown.join(" "), expected, "{words}");
    assert_eq!(history.tokens(), messages.len() as u64);
}

#[test]
fn a_call_and_its_results_are_one_unit_however_far_apart() {
    check("u a>1 t<1 a u", "0=FirstUser 1+2 3 4=LastUser");
    check("u a>1>2 t<2 u t<1 u", "0=FirstUser 1+2+4 3 5=LastUser");
}

#[test]
fn calls_in_flight_pinned_messages_and_prompts_are_kept() {
    check("s u a>1>2 t<1", "0=System 1=FirstUser 2+3=InFlight");
    check("u a! u u", "0=FirstUser 1=Pinned 2 3=LastUser");
}

#[test]
fn a_result_without_its_call_is_a_unit_of_its_own() {
    check("t<9 u", "0? 1=FirstUser");
    check("u t<1 a>1 t<1 t<1", "0=FirstUser 1? 2+3 4?");
}

#[test]
fn a_repeated_call_id_is_answered_newest_first() {
    check("u a>1 a>1 t<1 t<1", "0=FirstUser 1+4 2+3");
}

#[test]
fn a_notice_of_the_users_program_is_no_message_of_the_user() {
    let kept = |said: &[&str]| {
        let said: Vec<_> = said.iter().map(|text| ("u", *text)).collect();
        let (messages, measure) = (conversation(&said), plain());
        let kept = history(&messages, &measure).units.into_iter().map(|unit| unit.kept);
        kept.collect::<Vec<_>>()
    };
    let model = "<command-name>/model</command-name>\n<command-args></command-args>";
    let review = "<command-message>review</command-message><command-args>#4</command-args>";
    let ended = "<task-notification>done</task-notification>";
    let (first, last) = (Some(KeptReason::FirstUser), Some(KeptReason::LastUser));
    assert_eq!(kept(&[model, "Fix it", "No", ended]), [None, first, last, None]);
    assert_eq!(kept(&[review, "[Request interrupted by user]"]), [first, None]);
    // Nobody else said anything.
    assert_eq!(kept(&[model, ended]), [first, last]);
}
