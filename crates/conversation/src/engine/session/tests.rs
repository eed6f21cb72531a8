//! Tests of sessions with a store in memory.

use std::cell::Cell;
use std::sync::Arc;

use super::*;
use crate::context::change::ContextSettings;
use crate::context::item::{Kind, Metadata};
use crate::curation::config::TurnConfig;
use crate::curation::summary::{Extractive, Prepared, Summarizer, SummaryError, SummarySource};
use crate::engine::NewItem;
use crate::session::message::Role;
use crate::session::state::Learned;
use crate::store::session::StateRow;
use crate::store::sqlite::SqliteStore;
use crate::store::testing::rows_read;
use crate::tokens::Estimate;

fn engine() -> Engine {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    Engine::new(store, Box::new(|| 1_000_000), ContextSettings { max_items: 50 }).unwrap()
}

fn open(engine: &mut Engine, name: &str) -> u64 {
    let new = NewSession { name: name.into(), settings: "{}".into(), ..NewSession::default() };
    engine.run_alone(|engine| engine.open_session(new)).unwrap().id
}

fn said(role: Role, content: &str) -> NewMessage {
    NewMessage { tokens: 1, ..NewMessage::counted(role, content, Vec::new(), &Estimate) }
}

/// Adds a turn: a user's message and the answer.
fn turn(engine: &mut Engine, id: u64, word: &str) {
    let messages = vec![said(Role::User, word), said(Role::Assistant, &format!("re {word}"))];
    engine.run_alone(|engine| engine.add_messages(id, messages)).unwrap();
}

fn item(engine: &mut Engine, id: u64, content: &str) {
    let manager = engine.row(id).unwrap().manager_name();
    let new = NewItem {
        kind: Kind::Code,
        content: Arc::from(content),
        metadata: Metadata::default(),
        taken_ms: 0,
        tokens: 1,
        counted_by: "estimate",
        live: false,
        pinned: false,
    };
    engine.run_alone(|engine| engine.add("add-item", &manager, vec![new])).unwrap();
}

#[test]
fn a_session_that_is_opened_aside_moves_nobody() {
    let mut engine = engine();
    let aside = |engine: &mut Engine, name: &str| {
        let new = NewSession { name: name.into(), settings: "{}".into(), ..NewSession::default() };
        engine.run_alone(|engine| engine.open_session_aside(new)).unwrap()
    };
    let current = |engine: &mut Engine| engine.find_session(None).map(|row| row.name).ok();
    // If no session is current, the one with the latest message counts.
    let first = aside(&mut engine, "first");
    assert_eq!((first.created, current(&mut engine).as_deref()), (true, Some("first")));
    open(&mut engine, "mine");
    let second = aside(&mut engine, "second");
    turn(&mut engine, second.id, "x");
    assert_eq!(current(&mut engine).as_deref(), Some("mine"));
    assert_eq!(aside(&mut engine, "first"), OpenedSession { id: first.id, created: false });
    assert_eq!(current(&mut engine).as_deref(), Some("mine"));
    // The same is true if that session was current only because it had the latest message.
    engine.run_alone(|engine| engine.delete_session("mine")).unwrap();
    assert_eq!(current(&mut engine).as_deref(), Some("second"));
    let third = aside(&mut engine, "third");
    turn(&mut engine, third.id, "x");
    assert_eq!(current(&mut engine).as_deref(), Some("second"));
}

#[track_caller]
fn check(engine: &mut Engine, id: u64, conversation: &str, items: &str) {
    let words: Vec<String> =
        engine.session(id).unwrap().in_view().map(|message| message.content.to_string()).collect();
    assert_eq!(words.join(", "), conversation);
    let manager = engine.row(id).unwrap().manager_name();
    let held: Vec<String> = engine
        .manager(&manager)
        .unwrap()
        .slots()
        .map(|slot| slot.item.content.to_string())
        .collect();
    assert_eq!(held.join(", "), items);
}

/// Builds the engine as it is after a restart.
fn reread(engine: &mut Engine) {
    engine.sessions = super::super::sessions::Sessions::default();
    engine.managers.clear();
}

#[test]
fn a_session_is_opened_by_name_or_number() {
    let mut engine = engine();
    let first = open(&mut engine, "first");
    let second = open(&mut engine, "second");
    assert_eq!(open(&mut engine, "first"), first);
    assert_eq!(engine.find_session(None).unwrap().id, first);
    assert_eq!(engine.find_session(Some("ses-2")).unwrap().id, second);
    let error = engine.find_session(Some("third")).unwrap_err().to_string();
    assert_eq!(error, "no session \"third\"; the sessions are \"second\", \"first\"");
}

#[test]
fn a_deleted_session_is_found_again_when_it_is_restored() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "hello");
    engine.run_alone(|engine| engine.delete_session("a")).unwrap();
    assert!(engine.find_session(Some("a")).is_err());
    let other = open(&mut engine, "a");
    let taken = engine.run_alone(|engine| engine.restore_session("a")).unwrap_err();
    assert_eq!(taken.kind(), "session-exists");
    engine.run_alone(|engine| engine.rename_session("a", "b")).unwrap();
    let back = engine.run_alone(|engine| engine.restore_session("a")).unwrap().0;
    assert_eq!((back.id, other), (id, other));
    check(&mut engine, id, "hello, re hello", "");
}

#[test]
fn going_back_restores_view_and_items_and_can_be_undone() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "one");
    item(&mut engine, id, "early");
    engine.run_alone(|engine| engine.checkpoint(id, "before two")).unwrap();
    turn(&mut engine, id, "two");
    turn(&mut engine, id, "three");
    item(&mut engine, id, "late");
    let done = engine.run_alone(|engine| engine.rollback(id, None)).unwrap();
    assert_eq!((done.checkpoint, done.turns_lost, done.messages_lost), (1, 2, 4));
    reread(&mut engine);
    check(&mut engine, id, "one, re one", "early");
    turn(&mut engine, id, "other");
    check(&mut engine, id, "one, re one, other, re other", "early");
    let (_, undone) = engine.run_alone(|engine| engine.undo_session(id)).unwrap();
    assert_eq!((undone.turns_restored, undone.turns_lost), (2, 1));
    reread(&mut engine);
    check(&mut engine, id, "one, re one, two, re two, three, re three", "early, late");
    let again = engine.run_alone(|engine| engine.undo_session(id)).unwrap_err();
    assert_eq!(again.kind(), "nothing-to-undo");
    assert_eq!(engine.session(id).unwrap().length(), 8);
}

#[test]
fn without_a_checkpoint_nothing_is_gone_back_to() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    let error = engine.run_alone(|engine| engine.rollback(id, None)).unwrap_err();
    assert_eq!(error.kind(), "no-checkpoint");
    engine.run_alone(|engine| engine.checkpoint(id, "x")).unwrap();
    let error = engine.run_alone(|engine| engine.rollback(id, Some(9))).unwrap_err();
    assert!(error.to_string().ends_with("the only checkpoint is chk-1"), "{error}");
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "one");
    item(&mut engine, id, "early");
    engine.run_alone(|engine| engine.checkpoint(id, "x")).unwrap();
    turn(&mut engine, id, "two");
    let new = NewSession { name: "b".into(), settings: "{}".into(), ..NewSession::default() };
    let fork = engine.run_alone(|engine| engine.fork_session(id, Some(1), new)).unwrap().id;
    turn(&mut engine, fork, "else");
    item(&mut engine, fork, "more");
    reread(&mut engine);
    check(&mut engine, fork, "one, re one, else, re else", "early, more");
    check(&mut engine, id, "one, re one, two, re two", "early");
}

#[test]
fn a_pin_is_a_revision_that_can_be_taken_back() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "one");
    engine.run_alone(|engine| engine.pin_messages(id, &[2], true)).unwrap();
    reread(&mut engine);
    assert!(engine.session(id).unwrap().log()[1].pinned);
    engine.run_alone(|engine| engine.restore_view(id, 0)).unwrap();
    assert!(!engine.session(id).unwrap().log()[1].pinned);
    let error = engine.run_alone(|engine| engine.pin_messages(id, &[3], true)).unwrap_err();
    assert_eq!(error.to_string(), "no message msg-3; the log has msg-1 to msg-2");
}

#[test]
fn time_never_goes_back_in_a_log() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    let at = |time| NewMessage { timestamp: Some(time), ..said(Role::User, "x") };
    engine.run_alone(|engine| engine.add_messages(id, vec![at(50), at(40), at(60)])).unwrap();
    let session = engine.session(id).unwrap();
    let times: Vec<i64> = session.log().iter().map(|message| message.timestamp).collect();
    assert_eq!(times, [50, 50, 60]);
}

#[test]
fn a_request_that_fails_leaves_the_log_as_it_was() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "one");
    let failed: Result<(), _> = engine.run_alone(|engine| {
        engine.add_messages(id, vec![said(Role::User, "lost")])?;
        Err(EngineError::NothingToUndo("x".into()))
    });
    assert!(failed.is_err());
    check(&mut engine, id, "one, re one", "");
    turn(&mut engine, id, "two");
    reread(&mut engine);
    check(&mut engine, id, "one, re one, two, re two", "");
}

/// A summarizer that records whether its input was the one that a model described.
struct Watched<'a>(&'a Prepared, Cell<Option<bool>>);

impl Summarizer for Watched<'_> {
    fn summarize(&self, source: &SummarySource<'_>) -> Result<String, SummaryError> {
        self.1.set(Some(self.0.description(source).is_some()));
        self.0.summarize(source)
    }
}

/// Builds a session of many turns that mention numbers, decisions and paths.
fn long_talk(engine: &mut Engine, name: &str) -> u64 {
    let id = open(engine, name);
    let said = (0..1200).map(|number| NewMessage {
        tokens: 20,
        ..said(
            if number % 2 == 0 { Role::User } else { Role::Assistant },
            &format!("We use a timeout of {number} s in src/p{number}.rs; never change it."),
        )
    });
    let said = said.collect();
    engine.run_alone(|engine| engine.add_messages(id, said)).unwrap();
    id
}

fn asked() -> NewTurn {
    let message = NewMessage { tokens: 20, ..said(Role::User, "and what of p3?") };
    NewTurn { method: "process-turn", message, coherence: None, vector: None }
}

fn context(engine: &mut Engine, id: u64) -> SessionContext {
    let row = engine.row(id).unwrap();
    let mut context = engine.context_of(row, None).unwrap();
    context.settings.turn = context.settings.turn.alone();
    context
}

#[track_caller]
fn check_turn(engine: &mut Engine, id: u64, prepared: &Prepared, expected: bool) {
    let watched = Watched(prepared, Cell::new(None));
    let context = context(engine, id);
    let done = engine.run_alone(|e| e.process_turn(&context, asked(), &watched)).unwrap();
    assert!(done.summarized.is_some(), "{:?}", done.not_summarized);
    assert_eq!(watched.1.get(), Some(expected));
}

#[test]
fn what_is_described_for_a_turn_is_what_its_summary_needs() {
    let mut engine = engine();
    let id = long_talk(&mut engine, "long");
    let context = context(&mut engine, id);
    let ahead = engine.turn_ahead(&context, &asked().message).unwrap().unwrap();
    check_turn(&mut engine, id, &ahead.described("Of timeouts.".to_owned()), true);
    // The next turn has little in view.
    assert!(engine.turn_ahead(&context, &asked().message).unwrap().is_none());

    // Equal message numbers of another session are other messages.
    let ahead = {
        let like = long_talk(&mut engine, "like");
        let context = self::context(&mut engine, like);
        engine.turn_ahead(&context, &asked().message).unwrap().unwrap()
    };
    let id = long_talk(&mut engine, "other");
    check_turn(&mut engine, id, &ahead.described("Of timeouts.".to_owned()), false);
}

#[test]
fn what_is_described_for_a_summary_is_what_it_needs() {
    let mut engine = engine();
    let costs = engine.costs(None).unwrap();
    let id = long_talk(&mut engine, "long");
    for keep in [Keep::Messages(8), Keep::Turns(3)] {
        let ahead = engine.summary_ahead(id, keep, 8192, &costs).unwrap();
        let prepared = ahead.described("Of timeouts.".to_owned());
        let watched = Watched(&prepared, Cell::new(None));
        let made = engine.run_alone(|e| e.summarize_session(id, keep, 8192, &costs, &watched));
        made.unwrap();
        assert_eq!(watched.1.get(), Some(true));
        let more =
            (0..1200).map(|n| NewMessage { tokens: 20, ..said(Role::User, &format!("n {n}")) });
        let more = more.collect();
        engine.run_alone(|engine| engine.add_messages(id, more)).unwrap();
    }
    // A description of other messages is not used.
    let ahead = engine.summary_ahead(id, Keep::Turns(3), 8192, &costs).unwrap();
    let prepared = ahead.described("Of timeouts.".to_owned());
    let watched = Watched(&prepared, Cell::new(None));
    engine.run_alone(|e| e.summarize_session(id, Keep::Turns(5), 8192, &costs, &watched)).unwrap();
    assert_eq!(watched.1.get(), Some(false));
}

fn answer(content: &str) -> ModelAnswer {
    ModelAnswer { messages: vec![said(Role::Assistant, content)], asked: None }
}

#[test]
fn an_answer_is_stored_with_the_end_of_its_turn_or_not_at_all() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    let question = vec![said(Role::User, "why?")];
    let question = engine.run_alone(|engine| engine.add_messages(id, question)).unwrap().numbers[0];
    engine.begin_turn(Some("a")).unwrap();
    assert_eq!(engine.begin_turn(Some("a")).unwrap_err().kind(), "session-busy");
    let lost: Result<(), _> = engine.run_alone(|engine| {
        engine.end_turn_with(id, answer("lost"), Some("key"))?;
        Err(EngineError::Cancelled)
    });
    assert!(lost.is_err());
    reread(&mut engine);
    check(&mut engine, id, "why?", "");
    assert_eq!(engine.answered(id, question, "key").unwrap(), None);

    // If an answer lacks its end, the model is asked again for the whole answer.
    engine.run_alone(|engine| engine.add_answer(id, answer("beca"))).unwrap();
    assert_eq!(engine.run_alone(|e| e.answered(id, question, "key")).unwrap(), None);
    check(&mut engine, id, "why?", "");
    let ended = engine.run_alone(|e| e.end_turn_with(id, answer("because"), Some("key")));
    assert_eq!(ended.unwrap(), Some(3));
    reread(&mut engine);
    let whole = engine.answered(id, question, "key").unwrap().unwrap();
    assert_eq!((whole.number, &*whole.content), (3, "because"));
    assert!(engine.begin_turn(Some("a")).is_ok(), "the turn has ended");
}

/// Returns the number of rows of sessions that `operation` reads, and its outcome.
fn reads<T>(
    engine: &mut Engine,
    operation: impl FnOnce(&mut Engine) -> Result<T, EngineError>,
) -> (u64, T) {
    let before = rows_read();
    let outcome = engine.run_alone(operation).unwrap();
    (rows_read() - before, outcome)
}

/// Processes a turn as `process-turn` does.
fn process(engine: &mut Engine, coherence: f64) -> Result<TurnDone, EngineError> {
    let turn = NewTurn { coherence: Some(coherence), ..asked() };
    let done = engine.in_session(Some("a"), |engine, row| {
        let context = engine.context_of(row.clone(), None)?;
        engine.process_turn(&context, turn, &Extractive)
    });
    Ok(done?.1)
}

#[test]
fn a_turn_reads_the_row_of_its_session_once_at_most() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    let interval = TurnConfig::default().checkpoint_interval;
    for _ in 0..interval + 2 {
        reread(&mut engine);
        assert_eq!(reads(&mut engine, |engine| process(engine, 0.9)).0, 1, "from the store");
        assert_eq!(reads(&mut engine, |engine| process(engine, 0.8)).0, 0, "in memory");
    }
    assert!(!engine.read().checkpoints(id).unwrap().is_empty());

    // As a chat does it: begin, process and collect, note the window, end with the answer.
    let (begun, (row, _)) = reads(&mut engine, |engine| engine.begin_turn(Some("a")));
    let (processed, _) = reads(&mut engine, |engine| {
        let context = engine.context_of(row, None)?;
        engine.process_turn(&context, asked(), &Extractive)?;
        engine.material(context)
    });
    let (ended, _) = reads(&mut engine, |e| e.end_turn_with(id, answer("so"), Some("key")));
    assert_eq!((begun, processed, ended), (0, 0, 0));
    let row = engine.row(id).unwrap();
    reread(&mut engine);
    assert_eq!(engine.row(id).unwrap(), row, "the row in memory is that of the store");
}

#[test]
fn a_turn_that_changes_only_figures_makes_no_revision() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    engine.run_alone(|engine| engine.pin_messages(id, &[], true)).unwrap();
    for coherence in [0.9, 0.4, 0.7] {
        engine.run_alone(|engine| process(engine, coherence)).unwrap();
        let session = engine.session(id).unwrap();
        assert_eq!((session.revision(), session.learned().coherence), (1, Some(coherence)));
        reread(&mut engine);
        assert_eq!(engine.session(id).unwrap().learned().coherence, Some(coherence));
    }
    let failed: Result<(), _> = engine.run_alone(|engine| {
        process(engine, 0.1)?;
        Err(EngineError::Cancelled)
    });
    assert!(failed.is_err());
    assert_eq!(engine.session(id).unwrap().learned().coherence, Some(0.7));
}

#[test]
fn going_back_brings_the_figures_of_then_back() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    engine.run_alone(|engine| process(engine, 0.9)).unwrap();
    engine.run_alone(|engine| engine.checkpoint(id, "good")).unwrap();
    engine.run_alone(|engine| process(engine, 0.2)).unwrap();
    let coherence = |engine: &mut Engine| {
        reread(engine);
        engine.session(id).unwrap().learned().coherence
    };
    engine.run_alone(|engine| engine.rollback(id, None)).unwrap();
    assert_eq!(coherence(&mut engine), Some(0.9));
    engine.run_alone(|engine| engine.undo_session(id)).unwrap();
    assert_eq!(coherence(&mut engine), Some(0.2));
    let new = NewSession { name: "b".into(), ..NewSession::default() };
    let fork = engine.run_alone(|engine| engine.fork_session(id, Some(1), new)).unwrap().id;
    reread(&mut engine);
    assert_eq!(engine.session(fork).unwrap().learned().coherence, Some(0.9));
}

#[test]
fn what_older_programs_learned_is_read_from_the_revision_that_had_it() {
    let mut engine = engine();
    let id = open(&mut engine, "a");
    turn(&mut engine, id, "one");
    let state = r#"{"base":2,"active":[[1,2]],"pruned":[],"summary":null,"pinned":[],"summaries":1,
        "futile":2,"tried-in-turn":1,"checkpoint-turn":0,"relevance":0.25,"coherence":0.5,
        "before-rollback":null}"#;
    let (kind, state) = ("process-turn".to_owned(), state.to_owned());
    engine
        .run_alone(|e| {
            Ok(e.store
                .change()
                .unwrap()
                .append_state(id, &StateRow { number: 1, kind, base: 2, created: 0, state })?)
        })
        .unwrap();
    reread(&mut engine);
    let session = engine.session(id).unwrap();
    let old = Learned { futile: 2, tried_in_turn: 1, relevance: 0.25, coherence: Some(0.5) };
    assert_eq!((session.learned(), session.state().summaries, session.revision()), (old, 1, 1));
    engine.run_alone(|engine| process(engine, 0.75)).unwrap();
    reread(&mut engine);
    let learned = engine.session(id).unwrap().learned();
    assert_eq!(learned, Learned { relevance: 0.0, coherence: Some(0.75), ..old });
}
