//! Tests of crashes at every moment at which the log is written, through the engine.

use std::path::Path;

use super::*;
use crate::context::change::Settings;
use crate::context::item::{Kind, Metadata};
use crate::engine::{Engine, NewItem, Selection};
use crate::session::message::Role;
use crate::store::memory::{MemoryFilter, MemoryScope, NewMemory};
use crate::store::recovery::{self, Files, Opened};
use crate::store::session::NewSession;
use crate::store::sqlite::SqliteStore;
use crate::store::testing::message;
use crate::value::Value;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn store(&self) -> LoggedStore<SqliteStore> {
        self.open().store
    }

    fn open(&self) -> Opened {
        recovery::open(self.0.path(), Box::new(|| Ok(()))).unwrap()
    }

    fn log(&self) -> std::path::PathBuf {
        Files::new(self.0.path()).log()
    }

    fn engine(&self) -> Engine {
        Engine::new(Box::new(self.store()), Box::new(|| 7_000), Settings { max_items: 3 }).unwrap()
    }
}

fn add(engine: &mut Engine, content: &str) -> u64 {
    let mut metadata = Metadata::default();
    metadata.set("filename", Value::from("/a\n\"b"));
    let item = NewItem {
        kind: Kind::Code,
        content: content.into(),
        metadata,
        taken_ms: 1,
        tokens: 2,
        counted_by: "o200k",
        live: false,
        pinned: false,
    };
    let added =
        engine.run_alone(|e| e.once("add", Some(content), |e| e.add("add", "m", vec![item])));
    added.unwrap().ids[0]
}

#[track_caller]
fn check(engine: &mut Engine, expected: &[&str]) {
    let selection = Selection { managers: vec!["m".to_owned()], ..Selection::default() };
    let views = engine.select(&selection).unwrap();
    let contents: Vec<&str> = views.iter().map(|view| &*view.item.content).collect();
    assert_eq!(contents, expected);
    let names = views.iter().all(|view| view.item.metadata.filename() == Some("/a\n\"b"));
    assert!(names && views.iter().all(|view| view.item.counted_by == "o200k"));
}

#[test]
fn what_was_only_logged_is_there_after_a_crash_and_can_be_undone() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    for content in ["a", "b", "λ\u{1f600}\u{2028}", "d"] {
        add(&mut engine, content);
    }
    drop(engine);
    assert!(std::fs::metadata(folder.log()).unwrap().len() > 0);
    let mut engine = folder.engine();
    assert_eq!(std::fs::metadata(folder.log()).unwrap().len(), 0);
    check(&mut engine, &["b", "λ\u{1f600}\u{2028}", "d"]);
    assert_eq!(add(&mut engine, "d"), 4, "the key is known, so nothing is added");
    assert_eq!(add(&mut engine, "e"), 5);
    engine.run_alone(|e| e.undo("m")).unwrap();
    engine.run_alone(|e| e.undo("m")).unwrap();
    check(&mut engine, &["a", "b", "λ\u{1f600}\u{2028}"]);
    assert_eq!(add(&mut engine, "f"), 6);
}

#[test]
fn a_burst_in_both_is_applied_once() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    add(&mut engine, "a");
    add(&mut engine, "b");
    let log = std::fs::read(folder.log()).unwrap();
    engine.run_alone(|e| e.list_managers()).unwrap();
    engine.settle();
    drop(engine);
    assert_eq!(std::fs::read(folder.log()).unwrap(), b"", "all of it was moved");
    std::fs::write(folder.log(), &log).unwrap();
    let mut engine = folder.engine();
    check(&mut engine, &["a", "b"]);
    engine.run_alone(|e| e.undo("m")).unwrap();
    check(&mut engine, &["a"]);
}

#[test]
fn a_torn_or_foreign_end_is_passed_over() {
    for torn in [&b"0123"[..], b"xxxxxxxxxxxxxxxx {}\n", b"\xff\n\n"] {
        let folder = Folder::new();
        let mut engine = folder.engine();
        add(&mut engine, "a");
        drop(engine);
        let mut log = std::fs::read(folder.log()).unwrap();
        log.extend_from_slice(torn);
        std::fs::write(folder.log(), &log).unwrap();
        check(&mut folder.engine(), &["a"]);
    }
    let folder = Folder::new();
    let mut engine = folder.engine();
    add(&mut engine, "a");
    add(&mut engine, "b");
    drop(engine);
    let log = std::fs::read(folder.log()).unwrap();
    std::fs::write(folder.log(), &log[..log.len() - 5]).unwrap();
    check(&mut folder.engine(), &["a"]);
}

#[test]
fn a_log_that_is_damaged_in_the_middle_is_kept() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    for content in ["a", "b", "c"] {
        add(&mut engine, content);
    }
    drop(engine);
    let mut log = std::fs::read(folder.log()).unwrap();
    let second = log.iter().position(|byte| *byte == b'\n').unwrap() + 30;
    log[second] ^= 1;
    std::fs::write(folder.log(), &log).unwrap();
    let opened = folder.open();
    let told: Vec<&str> = opened.findings.iter().map(|finding| &*finding.text).collect();
    assert!(told.iter().any(|text| text.contains("1 write (number 2) is lost")), "{told:?}");
    let kept = told.iter().find_map(|text| text.split_once("are kept in ")).unwrap().1;
    assert_eq!(std::fs::read(Path::new(kept).join("contexture.log")).unwrap(), log);
    drop(opened.store);
    check(&mut folder.engine(), &["a", "c"]);
}

#[test]
fn a_burst_may_turn_direct_in_the_middle() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    add(&mut engine, "a");
    engine
        .run_alone(|e| {
            e.clear("m")?;
            e.undo("m")?;
            let pin = crate::engine::Revision { pinned: Some(true), ..Default::default() };
            e.update("pin-items", "m", vec![(crate::context::item::ItemId(1), pin)])?;
            e.save_set("m", "s")
        })
        .unwrap();
    add(&mut engine, "b");
    drop(engine);
    let mut engine = folder.engine();
    check(&mut engine, &["a", "b"]);
    assert_eq!(engine.read().sets().unwrap().len(), 1);
}

#[test]
fn a_failed_request_leaves_neither_log_nor_database_changed() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    add(&mut engine, "a");
    let before = std::fs::read(folder.log()).unwrap();
    let failed = engine.run_alone(|e| {
        e.clear("m")?;
        e.load_set("m", "no such set")
    });
    assert!(failed.is_err());
    check(&mut engine, &["a"]);
    assert_eq!(std::fs::read(folder.log()).unwrap(), before);
    let failed = engine.run_alone(|e| {
        e.clear("m")?;
        e.list_managers()?;
        e.load_set("m", "no such set")
    });
    assert!(failed.is_err());
    check(&mut engine, &["a"]);
}

#[test]
fn hundreds_of_bursts_move_by_themselves() {
    let folder = Folder::new();
    let mut engine = folder.engine();
    for number in 0..700 {
        add(&mut engine, &number.to_string());
    }
    drop(engine);
    let image = std::fs::read(Files::new(folder.0.path()).wal()).unwrap();
    assert!(image.len() > 100_000, "most of it was moved");
    check(&mut folder.engine(), &["697", "698", "699"]);
}

/// Writes a burst: outcomes of requests with keys, which are logged, and a session and a memory,
/// which are not.
fn burst(store: &mut LoggedStore<SqliteStore>, number: u64) -> Result<(), StoreError> {
    store.remember(&format!("before {number}"), "1")?;
    store.keep()?;
    store.remember(&format!("first {number}"), "1")?;
    let name = format!("s{number}");
    let session =
        store.change().unwrap().create_session(&NewSession { name, ..NewSession::default() })?;
    store.change().unwrap().append_messages(session, &[message(1, Role::User, "words")])?;
    store.remember(&format!("then {number}"), "1")?;
    store.keep()?;
    store.change().unwrap().add_memory(&NewMemory {
        scope: MemoryScope::Everywhere,
        kind: "note".into(),
        origin: None,
        content: "words".into(),
        created: 1,
    })?;
    store.remember(&format!("after {number}"), "1")?;
    store.keep()
}

/// Counts the answers, sessions, messages and memories of a burst that exist.
fn held(store: &mut LoggedStore<SqliteStore>, number: u64) -> [usize; 4] {
    let answers = ["before", "first", "then", "after"].map(|part| format!("{part} {number}"));
    let answers = answers.iter().filter(|key| store.recall(key).unwrap().is_some()).count();
    [
        answers,
        store.read().sessions(true).unwrap().len(),
        store.read().search_sessions(None, "words", 99, true).unwrap().len(),
        store.read().memories(&MemoryFilter::default(), 99).unwrap().len(),
    ]
}

fn commit(store: &mut LoggedStore<SqliteStore>) {
    let counters = store.counters().unwrap();
    store.commit(counters).unwrap();
}

#[test]
fn a_burst_with_logged_and_direct_writes_is_kept_whole_or_not_at_all() {
    let folder = Folder::new();
    let mut store = folder.store();
    store.remember("logged", "0").unwrap();
    store.keep().unwrap();
    commit(&mut store);
    let log = std::fs::read(folder.log()).unwrap();
    assert!(!log.is_empty());
    burst(&mut store, 1).unwrap();
    drop(store);
    assert_eq!(std::fs::read(folder.log()).unwrap(), log, "a crash before the commit");

    let mut store = folder.store();
    assert_eq!(held(&mut store, 1), [0, 0, 0, 0]);
    assert_eq!(store.recall("logged").unwrap().as_deref(), Some("0"));
    store.remember("logged too", "0").unwrap();
    store.keep().unwrap();
    commit(&mut store);
    let log = std::fs::read(folder.log()).unwrap();
    burst(&mut store, 2).unwrap();
    commit(&mut store);
    store.settle().unwrap();
    drop(store);
    assert!(std::fs::read(folder.log()).unwrap().is_empty());
    std::fs::write(folder.log(), &log).unwrap();

    let mut store = folder.store();
    assert_eq!(held(&mut store, 2), [4, 1, 1, 1], "a crash between the commit and the log's end");
    assert_eq!(store.recall("logged too").unwrap().as_deref(), Some("0"));
    store.remember("logged again", "0").unwrap();
    store.keep().unwrap();
    commit(&mut store);
    drop(store);
    assert_eq!(folder.store().recall("logged again").unwrap().as_deref(), Some("0"));
}

#[test]
fn a_failed_request_takes_only_its_own_session_along() {
    let folder = Folder::new();
    let mut store = folder.store();
    burst(&mut store, 1).unwrap();
    assert!(burst(&mut store, 1).is_err(), "the name and the keys are taken");
    store.abandon().unwrap();
    store
        .change()
        .unwrap()
        .create_session(&NewSession { name: "x".into(), ..NewSession::default() })
        .unwrap();
    store.abandon().unwrap();
    commit(&mut store);
    assert_eq!(held(&mut store, 1), [4, 1, 1, 1]);
    assert_eq!(held(&mut folder_again(store, &folder), 1), [4, 1, 1, 1]);
}

fn folder_again(store: LoggedStore<SqliteStore>, folder: &Folder) -> LoggedStore<SqliteStore> {
    drop(store);
    folder.store()
}
