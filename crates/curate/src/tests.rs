//! Tests of windows over histories of any shape.

use std::borrow::Cow;

use proptest::prelude::{prop, prop_assert, prop_oneof, proptest};
use proptest::strategy::Strategy as Strategy_;

use super::*;

/// A message of a program: its author, its text, the calls that it makes and those that it answers.
#[derive(Debug, Clone)]
struct Said {
    role: Role,
    text: String,
    calls: Vec<String>,
    answers: Vec<String>,
}

impl Message for Said {
    fn role(&self) -> Role {
        self.role
    }

    fn text(&self) -> Cow<'_, str> {
        (&self.text).into()
    }

    fn calls(&self) -> Vec<Call<'_>> {
        self.calls.iter().map(|id| Call::new(id, "look", "{}")).collect()
    }

    fn answers(&self) -> Vec<Cow<'_, str>> {
        self.answers.iter().map(Cow::from).collect()
    }
}

fn said(role: Role, text: impl Into<String>) -> Said {
    Said { role, text: text.into(), calls: Vec::new(), answers: Vec::new() }
}

fn calling(text: &str, ids: &[&str]) -> Said {
    let calls = ids.iter().map(|id| (*id).to_owned()).collect();
    Said { calls, ..said(Role::Assistant, text) }
}

fn result(text: &str, ids: &[&str]) -> Said {
    let answers = ids.iter().map(|id| (*id).to_owned()).collect();
    Said { answers, ..said(Role::User, text) }
}

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("line {line} has value_{line} = {}\n", line * 7)).collect()
}

#[test]
fn a_window_names_messages_by_their_index() {
    let mut history = vec![said(Role::System, "Be brief.")];
    for turn in 0..100 {
        history.push(said(Role::User, format!("What is in file_{turn}.rs?")));
        history.push(said(Role::Assistant, lines(3)));
    }
    history.push(said(Role::User, "and now?"));
    for strategy in Strategy::all() {
        let window = curate(&history, 900).strategy(strategy).query("file_7.rs").window().unwrap();
        assert_eq!(window.parts[0], Part::Message(0), "{strategy:?}");
        assert_eq!(window.parts.last(), Some(&Part::Message(201)), "{strategy:?}");
        assert_eq!(window.reasons[0], "a system prompt");
        assert!(window.tokens <= 900 && window.parts.len() < 202, "{strategy:?}");
        assert!(window.reasons.iter().all(|reason| !reason.is_empty()), "{strategy:?}");
    }
    let window = curate(&history, 900).window().unwrap();
    assert!(window.parts.iter().any(|part| matches!(part, Part::Note { role: Role::System, .. })));
}

#[test]
fn no_text_speaks_of_a_log_that_does_not_exist() {
    let mut history = vec![said(Role::User, "look at all files")];
    for turn in 0..40 {
        let id = format!("c{turn}");
        history.push(calling("", &[&id]));
        history.push(result(&lines(40), &[&id]));
    }
    history.push(calling("", &["big"]));
    history.push(result(&lines(400), &["big"]));
    let mut kinds = [false; 2];
    for strategy in Strategy::all() {
        for query in [None, Some("value_3")] {
            let mut asked = curate(&history, 1_500).strategy(strategy);
            if let Some(query) = query {
                asked = asked.query(query);
            }
            for part in asked.window().unwrap().parts {
                kinds[0] |= matches!(part, Part::Note { .. });
                kinds[1] |= matches!(part, Part::Shortened { .. });
                let text = part.text().unwrap_or_default();
                assert!(!text.contains("msg-") && !text.contains("`read`"), "{text}");
            }
        }
    }
    assert_eq!(kinds, [true; 2]);
}

#[test]
fn a_message_answers_several_calls() {
    let history = [
        said(Role::User, "go"),
        calling("", &["a", "b"]),
        result("both are done", &["a", "b"]),
        said(Role::User, "and now?"),
    ];
    let window = curate(&history, 100).window().unwrap();
    let all: Vec<Part> = (0..4).map(Part::Message).collect();
    assert_eq!(window.parts, all);
    assert_eq!(curate(&history, 100).normalized().window().unwrap().parts, all);
    // The calls have their results, so that they can be left out.
    let window = curate(&history, 12).window().unwrap();
    assert!(!window.parts.contains(&Part::Message(1)), "{window:?}");
}

#[test]
fn a_message_with_several_results_counts_once() {
    let mut history = vec![said(Role::User, "look at all files")];
    for turn in 0..40 {
        let ids = ["a", "b", "c"].map(|id| format!("{id}{turn}"));
        let ids = ids.each_ref().map(|id| &**id);
        history.push(calling("", &ids));
        history.push(result(&lines(20), &ids));
    }
    let count = |text: &str| text.len() as u64;
    let cost = |message: &Said| 4 + message.tokens(&count);
    let whole = history.iter().map(cost).sum();
    let window = curate(&history, whole).counter(count).last().window().unwrap();
    assert_eq!((window.tokens, window.parts.len()), (whole, history.len()));
    let window = curate(&history, whole / 4).counter(count).window().unwrap();
    let left_out = |part: &Part| match part {
        Part::Note { text, .. } => text[1..].split(' ').next().unwrap().parse().unwrap(),
        _ => 0,
    };
    let shown = window.parts.iter().filter_map(Part::index).count();
    let left_out = window.parts.iter().map(left_out).sum::<usize>();
    assert!(shown > 0 && left_out > 0, "{:?}", window.parts);
    assert_eq!(shown + left_out, history.len());
}

#[test]
fn strict_servers_get_the_normal_form() {
    let history = [
        said(Role::System, "Be brief."),
        said(Role::User, "go"),
        calling("I look.", &["a", "b"]),
        said(Role::System, "The user is away."),
        result("of a", &["a"]),
        result("of nothing", &["z"]),
        said(Role::User, "and now?"),
    ];
    let window = curate(&history, 1_000).normalized().window().unwrap();
    let as_user = |index, text: &str| Part::AsUser { index, text: text.to_owned() };
    let expected = [
        Part::Message(0),
        Part::Message(1),
        Part::Message(2),
        Part::Message(4),
        Part::NoResult { call: "b".to_owned(), text: "(no result)".to_owned() },
        as_user(3, "<system-note>\nThe user is away.\n</system-note>"),
        as_user(5, "Result of a tool:\nof nothing"),
        Part::Message(6),
    ];
    assert_eq!(window.parts, expected);
    let plain: Vec<Part> = (0..7).map(Part::Message).collect();
    assert_eq!(curate(&history, 1_000).window().unwrap().parts, plain);
}

#[test]
fn a_budget_that_is_too_small_says_what_is_needed() {
    let history = [said(Role::System, "x".repeat(400)), said(Role::User, "hello")];
    let error = curate(&history, 10).window().unwrap_err();
    assert_eq!(
        error.to_string(),
        "a budget of 10 tokens is too small: the messages that cannot be left out need 110: \
         message 0 (a system prompt), message 1 (the first user message)"
    );
    assert_eq!(curate(&history, error.needed).window().unwrap().tokens, error.needed);
}

#[test]
fn a_program_counts_in_its_own_way() {
    let history = [said(Role::User, "a b c"), said(Role::Assistant, "d e")];
    let words = |text: &str| text.split_whitespace().count() as u64;
    let window = curate(&history, 100).counter(words).window().unwrap();
    assert_eq!(window.tokens, 3 + 2 + 2 * 4);
    // By default, a quarter of the characters.
    assert_eq!(curate(&history, 100).window().unwrap().tokens, 2 + 1 + 2 * 4);
}

fn messages() -> impl Strategy_<Value = Vec<Said>> {
    let ids = || prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..3);
    let text = prop_oneof!["[a-z ]{0,30}", (0usize..60).prop_map(lines)];
    let role = prop::sample::select(Role::ALL.to_vec());
    let message = (role, text, ids(), ids()).prop_map(|(role, text, calls, answers)| {
        let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect();
        match role {
            Role::Assistant => Said { calls: owned(calls), ..said(role, text) },
            Role::Tool | Role::User => Said { answers: owned(answers), ..said(role, text) },
            Role::System => said(role, text),
        }
    });
    prop::collection::vec(message, 0..30)
}

proptest! {
    #[test]
    fn any_history_fits_and_keeps_its_order(history in messages(), budget in 0u64..3_000) {
        let window = curate(&history, budget).window();
        if let Ok(window) = window {
            prop_assert!(window.tokens <= budget);
            let shown: Vec<usize> = window.parts.iter().filter_map(Part::index).collect();
            prop_assert!(shown.is_sorted_by(|one, next| one < next), "{shown:?}");
            prop_assert!(!window.reasons.contains(&""));
        }
    }

    #[test]
    fn any_history_gets_the_normal_form(history in messages(), budget in 0u64..3_000) {
        let Ok(window) = curate(&history, budget).normalized().window() else { return Ok(()) };
        prop_assert!(window.tokens <= budget);
        let mut open: Vec<String> = Vec::new();
        let mut has_spoken = false;
        for part in &window.parts {
            match part {
                Part::NoResult { call, .. } => {
                    let at = open.iter().position(|id| id == call);
                    prop_assert!(at.is_some(), "{:?}", window.parts);
                    open.remove(at.unwrap());
                    continue;
                }
                Part::Message(index) | Part::Shortened { index, .. } => {
                    let message = &history[*index];
                    if !message.answers.is_empty() {
                        let before = open.len();
                        for id in &message.answers {
                            let at = open.iter().position(|open| open == id);
                            at.map(|at| open.remove(at));
                        }
                        prop_assert!(open.len() < before, "{:?}", window.parts);
                        continue;
                    }
                    prop_assert!(message.role != Role::Tool);
                    prop_assert!(message.role != Role::System || !has_spoken);
                    has_spoken |= message.role != Role::System;
                    prop_assert!(open.is_empty(), "{:?}", window.parts);
                    open.extend(message.calls.iter().cloned());
                }
                Part::AsUser { .. } | Part::Note { .. } => {
                    prop_assert!(open.is_empty(), "{:?}", window.parts);
                }
            }
        }
        prop_assert!(open.is_empty(), "{:?}", window.parts);
    }
}
