//! Tests of undo and redo of a session's view.

use super::*;
use crate::context::change::ContextSettings;
use crate::engine::NewMessage;
use crate::session::message::Role;
use crate::store::session::NewSession;
use crate::store::sqlite::SqliteStore;
use crate::tokens::Estimate;

fn engine() -> (Engine, u64) {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    let mut engine =
        Engine::new(store, Box::new(|| 1_000_000), ContextSettings { max_items: 50 }).unwrap();
    let new = NewSession { name: "s".into(), settings: "{}".into(), ..NewSession::default() };
    let id = engine.run_alone(|engine| engine.open_session(new)).unwrap().id;
    (engine, id)
}

fn say(engine: &mut Engine, id: u64, word: &str) {
    let message = |role, content: &str| NewMessage {
        tokens: 1,
        ..NewMessage::counted(role, content, Vec::new(), &Estimate)
    };
    let messages = vec![message(Role::User, word), message(Role::Assistant, &format!("re {word}"))];
    engine.run_alone(|engine| engine.add_messages(id, messages)).unwrap();
}

/// Prunes one message, as a pruning does.
fn prune(engine: &mut Engine, id: u64, number: u64) {
    let pruned = engine.run_alone(|engine| {
        engine.operate(id, "prune-session", |state| state.pruned.insert(number, number))
    });
    pruned.unwrap();
}

fn undo(engine: &mut Engine, id: u64) -> Result<String, EngineError> {
    engine.run_alone(|engine| engine.undo_session(id)).map(|(method, _)| method)
}

fn redo(engine: &mut Engine, id: u64) -> Result<String, EngineError> {
    engine.run_alone(|engine| engine.redo_session(id)).map(|(method, _)| method)
}

#[track_caller]
fn check(engine: &mut Engine, id: u64, in_view: &[u64]) {
    engine.sessions.forget_all();
    let shown: Vec<u64> = engine.session(id).unwrap().in_view().map(|it| it.number).collect();
    assert_eq!(shown, in_view);
}

#[test]
fn prunings_are_undone_and_redone_in_turn() {
    let (mut engine, id) = engine();
    say(&mut engine, id, "one");
    say(&mut engine, id, "two");
    prune(&mut engine, id, 1);
    prune(&mut engine, id, 2);
    engine.run_alone(|engine| engine.pin_messages(id, &[4], true)).unwrap();
    check(&mut engine, id, &[3, 4]);
    undo(&mut engine, id).unwrap();
    check(&mut engine, id, &[2, 3, 4]);
    assert_eq!(undo(&mut engine, id).unwrap(), "prune-session");
    check(&mut engine, id, &[1, 2, 3, 4]);
    assert!(engine.session(id).unwrap().log()[3].pinned, "the pin stays");
    assert_eq!(undo(&mut engine, id).unwrap_err().kind(), "nothing-to-undo");
    redo(&mut engine, id).unwrap();
    check(&mut engine, id, &[2, 3, 4]);
    redo(&mut engine, id).unwrap();
    check(&mut engine, id, &[3, 4]);
    assert_eq!(redo(&mut engine, id).unwrap_err().kind(), "nothing-to-redo");
    undo(&mut engine, id).unwrap();
    let next = |engine: &mut Engine, way| engine.next_of_session(id, way).unwrap();
    assert_eq!(next(&mut engine, Way::Undo).unwrap().revision, 1);
    assert_eq!(next(&mut engine, Way::Redo).unwrap().method, "prune-session");
    // A message said meanwhile stays, and nothing can be redone any more.
    say(&mut engine, id, "three");
    assert_eq!(next(&mut engine, Way::Redo), None);
    undo(&mut engine, id).unwrap();
    check(&mut engine, id, &[1, 2, 3, 4, 5, 6]);
    redo(&mut engine, id).unwrap();
    check(&mut engine, id, &[2, 3, 4, 5, 6]);
    assert_eq!(redo(&mut engine, id).unwrap_err().kind(), "nothing-to-redo");
}

#[test]
fn a_change_is_found_behind_any_number_of_others() {
    let (mut engine, id) = engine();
    say(&mut engine, id, "one");
    prune(&mut engine, id, 1);
    for number in 0..1_200 {
        let pin = number % 2 == 0;
        engine.run_alone(|engine| engine.pin_messages(id, &[2], pin)).unwrap();
    }
    assert_eq!(undo(&mut engine, id).unwrap(), "prune-session");
    check(&mut engine, id, &[1, 2]);
}

#[test]
fn another_change_forgets_what_could_be_redone() {
    let (mut engine, id) = engine();
    say(&mut engine, id, "one");
    prune(&mut engine, id, 1);
    undo(&mut engine, id).unwrap();
    engine.run_alone(|engine| engine.checkpoint(id, "by hand")).unwrap();
    assert!(engine.next_of_session(id, Way::Redo).unwrap().is_some(), "a checkpoint prevents redo");
    prune(&mut engine, id, 2);
    assert_eq!(redo(&mut engine, id).unwrap_err().kind(), "nothing-to-redo");
    assert_eq!(undo(&mut engine, id).unwrap(), "prune-session");
    check(&mut engine, id, &[1, 2]);
    assert_eq!(undo(&mut engine, id).unwrap_err().kind(), "nothing-to-undo");
}

#[test]
fn a_rollback_is_undone_and_redone_with_what_came_before_it() {
    let (mut engine, id) = engine();
    say(&mut engine, id, "one");
    prune(&mut engine, id, 1);
    engine.run_alone(|engine| engine.checkpoint(id, "here")).unwrap();
    say(&mut engine, id, "two");
    engine.run_alone(|engine| engine.rollback(id, None)).unwrap();
    check(&mut engine, id, &[2]);
    assert_eq!(undo(&mut engine, id).unwrap(), "rollback");
    check(&mut engine, id, &[2, 3, 4]);
    assert_eq!(redo(&mut engine, id).unwrap(), "rollback");
    check(&mut engine, id, &[2]);
    prune(&mut engine, id, 2);
    for undone in ["prune-session", "rollback"] {
        assert_eq!(undo(&mut engine, id).unwrap(), undone);
    }
    check(&mut engine, id, &[2, 3, 4]);
    // The operation before the rollback is the first pruning.
    let next = engine.next_of_session(id, Way::Undo).unwrap().unwrap();
    assert_eq!((&*next.method, next.revision), ("prune-session", 1));
    for in_view in [&[2][..], &[]] {
        redo(&mut engine, id).unwrap();
        check(&mut engine, id, in_view);
    }
    for _ in 0..3 {
        undo(&mut engine, id).unwrap();
    }
    check(&mut engine, id, &[1, 2, 3, 4]);
    assert_eq!(undo(&mut engine, id).unwrap_err().kind(), "nothing-to-undo");
}

#[test]
fn an_operation_that_shows_the_same_is_none_to_undo() {
    let (mut engine, id) = engine();
    say(&mut engine, id, "one");
    prune(&mut engine, id, 1);
    prune(&mut engine, id, 1);
    assert_eq!(engine.next_of_session(id, Way::Undo).unwrap().unwrap().revision, 1);
    engine.run_alone(|engine| engine.restore_view(id, 0)).unwrap();
    check(&mut engine, id, &[1, 2]);
    for undone in ["restore", "prune-session"] {
        assert_eq!(undo(&mut engine, id).unwrap(), undone);
    }
    check(&mut engine, id, &[1, 2]);
}
