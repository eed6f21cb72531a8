//! Tests of the operations with a store in memory.

use std::cell::Cell;

use super::*;
use crate::context::change::ContextSettings;
use crate::context::item::{ItemId, Kind, Metadata};
use crate::context::manager::{ItemPlace, ManagerError};
use crate::store::Store;
use crate::store::recovery::Files;
use crate::store::sqlite::SqliteStore;

thread_local! { static NOW: Cell<i64> = const { Cell::new(1_000_000) }; }

fn engine() -> Engine {
    engine_over(Box::new(SqliteStore::in_memory().unwrap()))
}

fn engine_over(store: Box<dyn Store>) -> Engine {
    let clock = Box::new(|| NOW.get());
    Engine::new(store, clock, ContextSettings { max_items: 3 }).unwrap()
}

fn new_item(content: &str) -> NewItem {
    NewItem {
        kind: Kind::Code,
        content: content.into(),
        metadata: Metadata::default(),
        taken_ms: 0,
        tokens: content.len() as u64,
        counted_by: "estimate",
        live: false,
        pinned: false,
    }
}

fn add(engine: &mut Engine, manager: &str, content: &str) -> Result<Added, EngineError> {
    engine.run_alone(|e| e.add("add-item", manager, vec![new_item(content)]))
}

#[track_caller]
fn check(engine: &mut Engine, manager: &str, expected: &[&str]) {
    let selection = Selection { managers: vec![manager.to_owned()], ..Selection::default() };
    let views = engine.select(&selection).unwrap();
    let contents: Vec<&str> = views.iter().map(|view| &*view.item.content).collect();
    assert_eq!(contents, expected);
    engine.managers.clear();
    let views = engine.select(&selection).unwrap();
    let stored: Vec<&str> = views.iter().map(|view| &*view.item.content).collect();
    assert_eq!(stored, expected, "as stored");
}

#[test]
fn the_ring_evicts_and_undo_brings_back() {
    let mut engine = engine();
    for content in ["a", "b", "c"] {
        add(&mut engine, "m", content).unwrap();
    }
    let added = add(&mut engine, "m", "d").unwrap();
    assert_eq!(added, Added { ids: vec![4], evicted: vec![1] });
    check(&mut engine, "m", &["b", "c", "d"]);
    assert_eq!(engine.undo("m").unwrap().undone, "add-item");
    check(&mut engine, "m", &["a", "b", "c"]);
}

#[test]
fn every_change_is_undone_in_turn() {
    let mut engine = engine();
    for content in ["a", "b", "c"] {
        add(&mut engine, "m", content).unwrap();
    }
    let pin = ItemChanges { pinned: Some(true), ..ItemChanges::default() };
    engine.run_alone(|e| e.update("pin-items", "m", vec![(ItemId(1), pin)])).unwrap();
    engine.run_alone(|e| e.move_item("m", ItemId(3), ItemPlace::Index(0))).unwrap();
    let content = Some(("B".into(), 1, "estimate", 5));
    let revision = ItemChanges { content, ..ItemChanges::default() };
    engine.run_alone(|e| e.update("update-items", "m", vec![(ItemId(2), revision)])).unwrap();
    engine.run_alone(|e| e.configure("m", ContextSettings { max_items: 2 })).unwrap();
    check(&mut engine, "m", &["a", "B"]);
    engine.run_alone(|e| e.save_set("m", "kept")).unwrap();
    engine.run_alone(|e| e.clear("m")).unwrap();
    engine.run_alone(|e| e.load_set("m", "kept")).unwrap();
    engine.run_alone(|e| e.remove("m", &[ItemId(4)])).unwrap();
    engine.run_alone(|e| e.drop_manager("m")).unwrap();
    check(&mut engine, "m", &[]);
    let mut undone = |expected: &str, contents: &[&str]| {
        assert_eq!(engine.undo("m").unwrap().undone, expected);
        check(&mut engine, "m", contents);
    };
    undone("drop-manager", &["B"]);
    undone("remove-items", &["a", "B"]);
    undone("load-set", &[]);
    undone("clear-manager", &["a", "B"]);
    undone("save-set", &["a", "B"]);
    undone("configure-manager", &["c", "a", "B"]);
    undone("update-items", &["c", "a", "b"]);
    undone("move-items", &["a", "b", "c"]);
    undone("pin-items", &["a", "b", "c"]);
    undone("add-item", &["a", "b"]);
    undone("add-item", &["a"]);
    undone("add-item", &[]);
    let error = engine.undo("m").unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        ("nothing-to-undo", "nothing to undo in \"m\"")
    );
    assert!(engine.read().sets().unwrap().is_empty());
}

#[test]
fn at_least_fifty_steps_can_be_undone_after_hundreds() {
    let mut engine = engine();
    for number in 0..400 {
        add(&mut engine, "m", &number.to_string()).unwrap();
    }
    for number in (350..400).rev() {
        engine.undo("m").unwrap();
        let last = (number - 1).to_string();
        let contents = [(number - 3).to_string(), (number - 2).to_string(), last];
        check(&mut engine, "m", &contents.each_ref().map(String::as_str));
    }
}

#[test]
fn what_can_no_longer_be_undone_leaves_no_content_behind() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let path = files.database();
    let mut engine = engine_over(Box::new(SqliteStore::open(&files, None).unwrap()));
    for number in 0..2000 {
        add(&mut engine, "m", &number.to_string()).unwrap();
    }
    drop(engine);
    let db = rusqlite::Connection::open(&path).unwrap();
    let versions: i64 = db.query_row("SELECT count(*) FROM version", [], |r| r.get(0)).unwrap();
    assert!((203..=240).contains(&versions), "{versions} versions");
}

#[test]
fn a_repeated_request_is_answered_and_not_applied_again() {
    let mut engine = engine();
    let mut add =
        || engine.request(|e| e.once("add", Some("k"), |e| e.add("add", "m", vec![new_item("a")])));
    let first = add().unwrap();
    assert_eq!(add().unwrap(), first);
    check(&mut engine, "m", &["a"]);
}

#[test]
fn a_panic_takes_its_own_request_back_and_no_other() {
    let mut engine = engine();
    engine.request(|e| e.add("add", "m", vec![new_item("kept")])).unwrap();
    let outcome: Result<(), _> = engine.request(|e| {
        e.add("add", "m", vec![new_item("lost")])?;
        panic!("on purpose")
    });
    assert!(matches!(outcome, Err(EngineError::Panicked(text)) if text == "on purpose"));
    engine.commit().unwrap();
    check(&mut engine, "m", &["kept"]);
}

#[test]
fn ids_never_repeat_after_a_restart_and_time_never_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let open = || engine_over(Box::new(SqliteStore::open(&files, None).unwrap()));
    let mut engine = open();
    add(&mut engine, "m", "a").unwrap();
    engine.clear("m").unwrap();
    engine.request(|e| e.clear("m")).unwrap();
    engine.commit().unwrap();
    let before = NOW.get();
    drop(engine);
    let mut engine = open();
    NOW.set(before - 60_000);
    assert_eq!(add(&mut engine, "m", "b").unwrap().ids, [2]);
    NOW.set(before);
    let item = engine.view("m", ItemId(2)).unwrap().item;
    assert_eq!(item.timestamp, before / 1000);
}

#[test]
fn errors_say_where_an_item_is_and_which_sets_there_are() {
    let mut engine = engine();
    add(&mut engine, "m", "a").unwrap();
    let error = engine.remove("other", &[ItemId(1)]).unwrap_err();
    assert_eq!(error.to_string(), "no item ctx-1 in \"other\"; it is in \"m\"");
    let error = engine.load_set("m", "x").unwrap_err();
    assert_eq!(error.to_string(), "no set \"x\"; there are no sets; call save-set to create one");
    engine.save_set("m", "kept").unwrap();
    let error = engine.load_set("m", "x").unwrap_err();
    assert_eq!(error.to_string(), "no set \"x\"; the only set is \"kept\"");
}

#[test]
fn items_that_do_not_fit_are_refused_as_a_whole() {
    let mut engine = engine();
    add(&mut engine, "m", "a").unwrap();
    let many = ["b", "c", "d", "e"].map(new_item).to_vec();
    let error = engine.request(|e| e.add("add-tree", "m", many)).unwrap_err();
    let full = ManagerError::CapacityFull { adding: 4, capacity: 3, pinned: 0 };
    assert!(matches!(error, EngineError::Manager { source, .. } if source == full));
    check(&mut engine, "m", &["a"]);
}

#[test]
fn several_managers_merge_by_time() {
    let mut engine = engine();
    let start = NOW.get();
    for (step, (manager, content)) in [("x", "1"), ("y", "2"), ("x", "3")].into_iter().enumerate() {
        NOW.set(start + 1000 * step as i64);
        add(&mut engine, manager, content).unwrap();
    }
    NOW.set(start);
    let managers = vec!["y".to_owned(), "x".to_owned()];
    let views =
        engine.select(&Selection { managers, limit: Some(2), ..Selection::default() }).unwrap();
    let contents: Vec<&str> = views.iter().map(|view| &*view.item.content).collect();
    assert_eq!(contents, ["2", "3"]);
}
