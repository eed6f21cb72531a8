//! Stores, thins out and finds views.

use super::super::SqliteStore;
use super::*;
use crate::store::Store;

fn store() -> SqliteStore {
    SqliteStore::in_memory().unwrap()
}

fn view(session: u64, message: u64, status: &str) -> NewView {
    let output = format!("notes on {message}");
    let (prompt, payload) = ("asked".to_owned(), "sent".to_owned());
    let provider = Some("p".to_owned());
    let status = status.to_owned();
    NewView { session, message, status, prompt, payload, output, provider, ..NewView::default() }
}

#[test]
fn the_last_notes_of_an_idle_session_outlive_the_sweeping() {
    let mut store = store();
    for message in [1, 3, 5] {
        store.change().unwrap().add_view(&view(1, message, MADE)).unwrap();
    }
    store.change().unwrap().add_view(&view(1, 7, "failed")).unwrap();
    for message in 0..VIEWS_KEPT + 2 * SWEEP {
        store.change().unwrap().add_view(&view(2, message, "disabled")).unwrap();
    }
    let left = ViewQuery { session: Some(1), limit: 9, ..ViewQuery::default() };
    let left: Vec<u64> =
        store.read().views(&left).unwrap().iter().map(|row| row.made.message).collect();
    assert_eq!(left, [5]);
}

#[test]
fn notes_are_those_before_a_message_and_before_a_view() {
    let mut store = store();
    for message in (1..60).step_by(2) {
        store.change().unwrap().add_view(&view(1, message, MADE)).unwrap();
    }
    store.change().unwrap().add_view(&view(1, 9, "failed")).unwrap();
    let mut before = |session, message, id| {
        store
            .read()
            .notes_before(session, message, id)
            .unwrap()
            .map(|notes| (notes.id, notes.message))
    };
    assert_eq!(before(1, 10, u64::MAX), Some((5, 9)));
    assert_eq!(before(1, 10, 5), Some((4, 7)));
    assert_eq!(before(1, 1, u64::MAX), None);
    assert_eq!(before(2, 10, u64::MAX), None);
}

#[test]
fn a_view_is_like_another_only_when_the_same_provider_made_it() {
    let mut store = store();
    let made = view(1, 3, MADE);
    let id = store.change().unwrap().add_view(&made).unwrap();
    assert_eq!(store.read().view_like(&made).unwrap().map(|row| row.id), Some(id));
    for other in [
        NewView { provider: Some("q".to_owned()), ..made.clone() },
        NewView { model: Some("m".to_owned()), ..made.clone() },
        NewView { prompt: "else".to_owned(), ..made.clone() },
        NewView { message: 4, ..made.clone() },
    ] {
        assert_eq!(store.read().view_like(&other).unwrap(), None);
    }
}

#[test]
fn lists_leave_out_what_is_not_wanted() {
    let mut store = store();
    let ids = [(1, MADE), (2, MADE), (1, "failed")].map(|(session, status)| {
        store.change().unwrap().add_view(&view(session, 1, status)).unwrap()
    });
    let mut found = |wanted: ViewQuery<'_>| -> Vec<u64> {
        store.read().views(&wanted).unwrap().iter().map(|row| row.id).collect()
    };
    let all = ViewQuery { limit: 9, ..ViewQuery::default() };
    assert_eq!(found(all), [ids[2], ids[1], ids[0]]);
    assert_eq!(found(ViewQuery { limit: 1, ..all }), [ids[2]]);
    assert_eq!(found(ViewQuery { session: Some(1), ..all }), [ids[2], ids[0]]);
    assert_eq!(found(ViewQuery { status: Some(MADE), ..all }), [ids[1], ids[0]]);
    assert_eq!(found(ViewQuery { id: Some(ids[1]), ..all }), [ids[1]]);
    assert_eq!(found(ViewQuery { id: Some(ids[1]), session: Some(1), ..all }), [0; 0]);
    let brief = store.read().views(&ViewQuery { brief: true, ..all }).unwrap();
    assert!(brief.iter().all(|row| row.made.prompt.is_empty() && row.made.output.is_empty()));
}

#[test]
fn every_field_reads_back() {
    let mut store = store();
    let text = |text: &str| Some(text.to_owned());
    let made = NewView {
        turn: 2,
        created: -5,
        step: text("answer"),
        reason: text("it's \"late\""),
        template: "größe".to_owned(),
        source: text("project"),
        path: text("/a b"),
        sha256: text("00"),
        model: text("m"),
        recent_runs: Some(3),
        passthrough_runs: Some(0),
        token_threshold: Some(4_000),
        runs_shown: Some(1),
        sections: "a b".to_owned(),
        budget: Some(1 << 40),
        prompt_tokens: Some(6),
        input_tokens: Some(7),
        output_tokens: Some(8),
        tokens_before: 9,
        tokens_after: 10,
        ..view(1, 4, MADE)
    };
    let id = store.change().unwrap().add_view(&made).unwrap();
    let wanted = ViewQuery { id: Some(id), limit: 1, ..ViewQuery::default() };
    assert_eq!(store.read().views(&wanted).unwrap(), [ViewRow { id, made: made.clone() }]);
    assert_eq!(store.read().view_like(&made).unwrap().unwrap().made, made);
    let brief = store.read().views(&ViewQuery { brief: true, ..wanted }).unwrap().remove(0).made;
    let (prompt, payload, output) = (String::new(), String::new(), String::new());
    assert_eq!(brief, NewView { prompt, payload, output, ..made });
}
