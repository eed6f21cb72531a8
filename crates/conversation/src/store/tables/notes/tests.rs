//! Tests of storing, removing and finding notes.

use super::*;
use crate::store::Store;
use crate::store::sqlite::SqliteStore;

fn store() -> SqliteStore {
    SqliteStore::in_memory().unwrap()
}

fn view(session: u64, message: u64, status: &str) -> NewNotes {
    let output = format!("notes on {message}");
    let (prompt, payload) = ("asked".to_owned(), "sent".to_owned());
    let provider = Some("p".to_owned());
    let status = status.to_owned();
    NewNotes { session, message, status, prompt, payload, output, provider, ..NewNotes::default() }
}

#[test]
fn the_last_notes_of_an_idle_session_outlive_the_sweeping() {
    let mut store = store();
    for message in [1, 3, 5] {
        store.change().unwrap().add_notes(&view(1, message, MADE)).unwrap();
    }
    store.change().unwrap().add_notes(&view(1, 7, "failed")).unwrap();
    for message in 0..NOTES_KEPT + 2 * SWEEP {
        store.change().unwrap().add_notes(&view(2, message, "disabled")).unwrap();
    }
    let left = NotesQuery { session: Some(1), limit: 9, ..NotesQuery::default() };
    let left: Vec<u64> =
        store.read().notes(&left).unwrap().iter().map(|row| row.made.message).collect();
    assert_eq!(left, [5]);
}

#[test]
fn notes_are_those_before_a_message_and_before_a_view() {
    let mut store = store();
    for message in (1..60).step_by(2) {
        store.change().unwrap().add_notes(&view(1, message, MADE)).unwrap();
    }
    store.change().unwrap().add_notes(&view(1, 9, "failed")).unwrap();
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
    let id = store.change().unwrap().add_notes(&made).unwrap();
    assert_eq!(store.read().notes_like(&made).unwrap().map(|row| row.id), Some(id));
    for other in [
        NewNotes { provider: Some("q".to_owned()), ..made.clone() },
        NewNotes { model: Some("m".to_owned()), ..made.clone() },
        NewNotes { prompt: "else".to_owned(), ..made.clone() },
        NewNotes { message: 4, ..made.clone() },
    ] {
        assert_eq!(store.read().notes_like(&other).unwrap(), None);
    }
}

#[test]
fn lists_leave_out_what_is_not_wanted() {
    let mut store = store();
    let ids = [(1, MADE), (2, MADE), (1, "failed")].map(|(session, status)| {
        store.change().unwrap().add_notes(&view(session, 1, status)).unwrap()
    });
    let mut found = |wanted: NotesQuery<'_>| -> Vec<u64> {
        store.read().notes(&wanted).unwrap().iter().map(|row| row.id).collect()
    };
    let all = NotesQuery { limit: 9, ..NotesQuery::default() };
    assert_eq!(found(all), [ids[2], ids[1], ids[0]]);
    assert_eq!(found(NotesQuery { limit: 1, ..all }), [ids[2]]);
    assert_eq!(found(NotesQuery { session: Some(1), ..all }), [ids[2], ids[0]]);
    assert_eq!(found(NotesQuery { status: Some(MADE), ..all }), [ids[1], ids[0]]);
    assert_eq!(found(NotesQuery { id: Some(ids[1]), ..all }), [ids[1]]);
    assert_eq!(found(NotesQuery { id: Some(ids[1]), session: Some(1), ..all }), [0; 0]);
    let brief = store.read().notes(&NotesQuery { brief: true, ..all }).unwrap();
    assert!(brief.iter().all(|row| row.made.prompt.is_empty() && row.made.output.is_empty()));
}

#[test]
fn every_field_reads_back() {
    let mut store = store();
    let text = |text: &str| Some(text.to_owned());
    let made = NewNotes {
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
    let id = store.change().unwrap().add_notes(&made).unwrap();
    let wanted = NotesQuery { id: Some(id), limit: 1, ..NotesQuery::default() };
    assert_eq!(store.read().notes(&wanted).unwrap(), [NotesRow { id, made: made.clone() }]);
    assert_eq!(store.read().notes_like(&made).unwrap().unwrap().made, made);
    let brief = store.read().notes(&NotesQuery { brief: true, ..wanted }).unwrap().remove(0).made;
    let (prompt, payload, output) = (String::new(), String::new(), String::new());
    assert_eq!(brief, NewNotes { prompt, payload, output, ..made });
}
