//! Tests of the normal form: turns, notes, results and ids, and arbitrary logs.

use proptest::prelude::*;

use super::*;
use crate::provider::chat::KEPT;
use crate::session::message::ToolCall;

const STRICT: MessageForm = MessageForm { joins_results: false, takes_calls: true };
const JOINED: MessageForm = MessageForm { joins_results: true, takes_calls: true };

fn said(role: Role, content: &str) -> ChatMessage {
    ChatMessage::new(role, content)
}

fn calls(content: &str, ids: &[&str]) -> ChatMessage {
    let call = |id: &&str| ToolCall { id: (*id).into(), name: "f".into(), arguments: "{}".into() };
    ChatMessage { tool_calls: ids.iter().map(call).collect(), ..said(Role::Assistant, content) }
}

fn result(id: &str, content: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(id.into()), ..said(Role::Tool, content) }
}

fn request(messages: Vec<ChatMessage>, stable: usize) -> Request {
    Request { messages, stable, ..Request::default() }
}

/// Formats the messages as lines such as `user: text`. Instead of its id, a call shows its place.
fn lines(request: &Request) -> Vec<String> {
    let mut ids: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for said in &request.messages {
        ids.extend(said.tool_calls.iter().map(|call| &*call.id));
        let place = |id: &str| ids.iter().position(|known| *known == id).unwrap();
        let own: Vec<usize> = said.tool_calls.iter().map(|call| place(&call.id)).collect();
        let of = said.tool_call_id.as_deref().map(|id| format!(" of {}", place(id)));
        let own = if own.is_empty() { String::new() } else { format!(" {own:?}") };
        let content = said.content.replace('\n', "|");
        lines.push(format!("{}{}{own}: {content}", said.role.name(), of.unwrap_or_default()));
    }
    lines
}

#[track_caller]
fn check(messages: Vec<ChatMessage>, expected: &[&str]) {
    let normal = normal(&request(messages, 0), STRICT);
    assert_eq!(lines(&normal), expected);
    check_form(&normal, STRICT);
}

/// Checks the properties of every request in normal form.
#[track_caller]
fn check_form(request: &Request, form: MessageForm) {
    let shown = lines(request);
    let said = &request.messages;
    let first = usize::from(said[0].role == Role::System);
    assert_eq!(said[first].role, Role::User, "{shown:#?}");
    assert!(matches!(said.last().unwrap().role, Role::User | Role::Tool), "{shown:#?}");
    let mut waiting: Vec<&str> = Vec::new();
    for (before, said) in said.iter().zip(&said[1..]) {
        waiting.extend(before.tool_calls.iter().map(|call| &*call.id));
        let answered = waiting.is_empty();
        let fits = match said.role {
            Role::System => false,
            Role::User => match before.role {
                Role::System => true,
                Role::User => false,
                Role::Assistant => answered,
                Role::Tool => answered && form.joins_results,
            },
            Role::Assistant => answered && matches!(before.role, Role::User | Role::Tool),
            Role::Tool => said.tool_call_id.as_deref() == Some(waiting.remove(0)),
        };
        assert!(fits, "{said:?} in {shown:#?}");
    }
    let empty = |said: &ChatMessage| is_blank(&said.content) && said.tool_calls.is_empty();
    assert!(!said.iter().any(empty), "{shown:#?}");
    assert!(request.stable <= said.len());
}

#[test]
fn who_speaks_takes_turns() {
    use Role::{Assistant, System, User};
    check(vec![], &["user: …"]);
    check(vec![said(System, "s")], &["system: s", "user: …"]);
    check(
        vec![
            said(System, "s"),
            said(System, " "),
            said(System, "t"),
            said(User, "a"),
            said(User, "b"),
        ],
        &["system: s||t", "user: a||b"],
    );
    check(vec![said(Assistant, "a"), said(User, "b")], &["user: …", "assistant: a", "user: b"]);
    check(
        vec![said(User, "a"), said(Assistant, "b"), said(User, ""), said(Assistant, "c")],
        &["user: a", "assistant: b||c", "user: …"],
    );
}

#[test]
fn what_the_system_says_later_is_a_part_of_the_question() {
    use Role::{Assistant, System, User};
    let note = "<system-note>|n|</system-note>";
    check(vec![said(User, "a"), said(System, "n")], &[&format!("user: a||{note}")]);
    check(
        vec![said(User, "a"), said(Assistant, "b"), said(System, "n"), said(User, "c")],
        &["user: a", "assistant: b", &format!("user: {note}||c")],
    );
    check(
        vec![said(User, "a"), calls("", &["x"]), result("x", "r"), said(System, "n")],
        &[&format!("user: a||{note}"), "assistant [0]: ", "tool of 0: r"],
    );
}

#[test]
fn results_are_behind_their_calls() {
    use Role::User;
    let question = || said(User, "a");
    check(
        vec![
            question(),
            calls("b", &["x", "y"]),
            result("y", "2"),
            said(User, "c"),
            result("x", "1"),
        ],
        &[
            "user: a",
            "assistant [0, 1]: b",
            "tool of 0: 1",
            "tool of 1: 2",
            "assistant: …",
            "user: c",
        ],
    );
    // A call without a result, a result without a call, and a call with two results.
    check(
        vec![
            question(),
            calls("", &["x"]),
            result("z", "of nothing"),
            said(Role::Tool, "nor this"),
        ],
        &[
            "user: a",
            "assistant [0]: ",
            "tool of 0: (no result)",
            "assistant: …",
            "user: Result of a tool:|of nothing||Result of a tool:|nor this",
        ],
    );
    check(
        vec![
            question(),
            calls("", &["x"]),
            result("x", "1"),
            result("x", "2"),
            calls("", &["x"]),
            result("x", ""),
        ],
        &[
            "user: a",
            "assistant [0]: ",
            "tool of 0: 1||2",
            "assistant [1]: ",
            "tool of 1: (no output)",
        ],
    );
    // Servers without call ids.
    check(
        vec![question(), calls("", &["", ""]), result("", "1"), result("", "2")],
        &["user: a", "assistant [0, 1]: ", "tool of 0: 1", "tool of 1: 2"],
    );
    let joins = normal(
        &request(vec![question(), calls("", &["x"]), result("x", "1"), question()], 0),
        JOINED,
    );
    assert_eq!(lines(&joins), ["user: a", "assistant [0]: ", "tool of 0: 1", "user: a"]);
}

#[test]
fn what_must_go_back_as_it_came_does() {
    let message = serde_json::json!({"message": {"reasoning_content": "t"}});
    let opaque = || Some(serde_json::json!({KEPT: message, "ids": ["toolu_1"]}));
    let kept = ChatMessage { opaque: opaque(), ..calls("b", &["toolu_1"]) };
    let messages = vec![
        said(Role::User, "a"),
        said(Role::Assistant, "x"),
        kept.clone(),
        result("toolu_1", "r"),
    ];
    let whole = normal(&request(messages, 4), STRICT);
    assert_eq!(whole.messages[3], kept);
    assert_eq!(lines(&whole)[2], "user: …");
    assert_eq!(whole.stable, whole.messages.len());
    // Without what the server sent, the ids are made anew.
    let other = ChatMessage { opaque: None, ..kept };
    let messages = vec![said(Role::User, "a"), other, result("toolu_1", "r")];
    assert_ne!(normal(&request(messages, 0), JOINED).messages[1].tool_calls[0].id, "toolu_1");
}

const IDS: &[&str] = &["", "a", "call_1", "abcDEF123", "a b"];
const ARGUMENTS: &[&str] = &["", "{\"a\": 1}", "{\"a\":", "[]", "null", "text"];

/// An arbitrary log in any order. Each text occurs once.
fn any_history() -> impl Strategy<Value = Vec<ChatMessage>> {
    let id = || proptest::sample::select(IDS);
    let call =
        (id(), id(), proptest::sample::select(ARGUMENTS)).prop_map(|(id, name, arguments)| {
            ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
        });
    let message = (0..8_u8, any::<u8>(), proptest::collection::vec(call, 1..3), id());
    let message = message.prop_map(|(kind, more, calls, id)| {
        let content = if more % 5 == 0 { " " } else { "x" };
        match kind {
            0 => said(Role::System, content),
            1 | 2 => said(Role::User, content),
            3 => said(Role::Assistant, content),
            4 | 5 => {
                let opaque = (more % 3 == 0).then(|| serde_json::json!({KEPT: {}}));
                ChatMessage { tool_calls: calls, opaque, ..said(Role::Assistant, content) }
            }
            6 => said(Role::Tool, content),
            _ => result(id, content),
        }
    });
    proptest::collection::vec(message, 0..24).prop_map(|mut said| {
        for (at, said) in said.iter_mut().enumerate().filter(|(_, said)| &*said.content == "x") {
            said.content = format!("<{at}>").into();
        }
        said
    })
}

/// A log as turns produce it: questions, rounds of calls, system notes, and answers.
fn orderly_history() -> impl Strategy<Value = Vec<ChatMessage>> {
    let turn = (0..3_usize, any::<bool>(), any::<bool>(), any::<bool>());
    proptest::collection::vec(turn, 1..6).prop_map(|turns| {
        let mut history = vec![said(Role::System, "be brief")];
        for (n, (rounds, notes, answers, twice)) in turns.into_iter().enumerate() {
            history.push(said(Role::User, &format!("question {n}")));
            if notes {
                history.push(said(Role::System, &format!("note {n}")));
            }
            if twice {
                history.push(said(Role::User, &format!("again {n}")));
            }
            for round in 0..rounds {
                history.push(calls("", &["call_1", "call_2"]));
                history.push(result("call_1", &format!("one {round}")));
                history.push(result("call_2", &format!("two {round}")));
            }
            if answers {
                history.push(said(Role::Assistant, &format!("answer {n}")));
            }
        }
        history
    })
}

proptest! {
    #[test]
    fn every_history_has_a_normal_form(history in any_history(), stable in 0..24_usize) {
        let stable = stable.min(history.len());
        for form in [STRICT, JOINED] {
            let whole = request(history.clone(), stable);
            let made = normal(&whole, form);
            check_form(&made, form);
            prop_assert_eq!(&made, &normal(&whole, form));
            // Nothing is lost or repeated.
            let texts: String = made.messages.iter().map(|said| &*said.content).collect();
            for said in history.iter().filter(|said| !is_blank(&said.content)) {
                prop_assert_eq!(texts.matches(&*said.content).count(), 1, "{}", said.content);
            }
            let calls = |said: &[ChatMessage]| said.iter().map(|said| said.tool_calls.len()).sum::<usize>();
            prop_assert_eq!(calls(&made.messages), calls(&history));
            // The stable part stays the same, whatever messages follow; only its last message may
            // grow.
            let mut other = history[..stable].to_vec();
            other.push(said(Role::User, "something else"));
            let other = normal(&request(other, stable), form);
            if let Some((last, before)) = made.messages[..made.stable].split_last() {
                prop_assert_eq!(&other.messages[..before.len()], before);
                prop_assert!(other.messages[before.len()].content.starts_with(&*last.content));
            }
        }
    }

    #[test]
    fn a_conversation_that_goes_on_begins_as_it_did(history in orderly_history()) {
        for form in [STRICT, JOINED] {
            let whole = normal(&request(history.clone(), 0), form);
            for cut in 1..history.len() {
                if history[cut].role != Role::User || history[cut - 1].role == Role::System {
                    continue;
                }
                let before = normal(&request(history[..cut].to_vec(), 0), form);
                let last = before.messages.iter().rposition(|said| said.role == Role::User);
                let begun = &before.messages[..last.unwrap()];
                prop_assert_eq!(begun, &whole.messages[..begun.len()]);
            }
        }
    }
}
