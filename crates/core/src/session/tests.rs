//! Tests of the visible part of a session of numbered messages.

use std::sync::Arc;

use super::message::Signals;
use super::spans::Spans;
use super::state::Summary;
use super::*;

fn session(length: u64) -> Session {
    let mut session = Session::default();
    append(&mut session, length);
    session
}

fn append(session: &mut Session, count: u64) {
    for _ in 0..count {
        let number = session.length() + 1;
        session.append(Message {
            number,
            role: if number % 2 == 1 { Role::User } else { Role::Assistant },
            content: Arc::from(format!("message {number}")),
            timestamp: 0,
            phase: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            opaque: None,
            pinned: false,
            tokens: 1,
            counted_by: "estimate",
            signals: Signals::default(),
        });
    }
}

#[track_caller]
fn check(session: &Session, active: &[u64], in_view: &[u64]) {
    let numbers = |messages: Vec<&Arc<Message>>| -> Vec<u64> {
        messages.iter().map(|message| message.number).collect()
    };
    assert_eq!(numbers(session.active().collect()), active);
    assert_eq!(numbers(session.in_view().collect()), in_view);
}

#[test]
fn an_appended_message_is_in_view() {
    let mut session = session(3);
    check(&session, &[1, 2, 3], &[1, 2, 3]);
    let mut state = session.state().rebased(3);
    state.pruned.insert(2, 2);
    session.set_state(state, 1);
    append(&mut session, 2);
    check(&session, &[1, 2, 3, 4, 5], &[1, 3, 4, 5]);
    assert_eq!(session.turns(), 3);
}

#[test]
fn going_back_keeps_later_messages_only_in_the_log() {
    let mut session = session(2);
    let early = session.state().clone();
    append(&mut session, 3);
    let late = session.state().clone();
    session.set_state(SessionState::back_at(&early, 2, session.length()), 1);
    check(&session, &[1, 2], &[1, 2]);
    append(&mut session, 1);
    check(&session, &[1, 2, 6], &[1, 2, 6]);
    session.set_state(SessionState::back_at(&late, 5, session.length()), 2);
    check(&session, &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]);
    assert_eq!(session.length(), 6);
}

#[test]
fn summarized_messages_are_out_of_view_unless_pinned() {
    let mut session = session(5);
    let covers = Spans::from_iter(1..=4);
    let source = serde_json::Value::Null;
    let summary = Summary { text: "s".into(), tokens: 1, covers, position: 0, source };
    let mut state = session.state().rebased(5);
    state.pinned.insert(3, 3);
    state.summary = Some(summary);
    session.set_state(state, 1);
    check(&session, &[1, 2, 3, 4, 5], &[3, 5]);
    assert!(session.log()[2].pinned);
}
