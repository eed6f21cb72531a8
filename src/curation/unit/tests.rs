//! Units of short histories, written as words.

use std::sync::Arc;

use super::*;
use crate::session::message::{Role, Signals, ToolCall};
use crate::tokens::Estimate;

/// A message from a word: `s`, `u`, `a`, `t` for the role, then `>x` for each call and `<x` for
/// the call that it answers, then `!` when it is pinned.
fn message(number: u64, word: &str) -> Message {
    let role = match word.as_bytes()[0] {
        b's' => Role::System,
        b'u' => Role::User,
        b'a' => Role::Assistant,
        _ => Role::Tool,
    };
    let call = |id: &str| ToolCall { id: id[..1].into(), name: "run".into(), arguments: "".into() };
    Message {
        number,
        role,
        content: Arc::from("1234"),
        timestamp: 0,
        phase: None,
        tool_calls: word.split('>').skip(1).map(call).collect(),
        tool_call_id: word.split('<').nth(1).map(|id| id[..1].into()),
        pinned: word.ends_with('!'),
        tokens: 1,
        counted_by: "estimate",
        signals: Signals::default(),
    }
}

#[track_caller]
fn check(words: &str, expected: &str) {
    let messages: Vec<Message> =
        words.split(' ').enumerate().map(|(n, word)| message(n as u64 + 1, word)).collect();
    let measure = Measure::plain(Arc::new(Estimate));
    let history = History::new(messages.iter().collect(), &measure);
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
fn what_is_in_flight_pinned_or_a_prompt_is_kept() {
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
