//! Tests of cases that the engine's tests cannot reach: a database that is damaged, has another
//! format, or cannot be written, and the end of the program at any moment.

use std::path::Path;

use super::open::{FORMAT, SCHEMA};
use super::*;
use crate::context::change::ContextSettings;
use crate::context::item::{Kind, Metadata};
use crate::engine::{Engine, NewItem, Selection};
use crate::session::message::{Message, Role};
use crate::store::memory::{MemoryFilter, MemoryScope, NewMemory};
use crate::store::recovery::{self, Files};
use crate::store::session::NewSession;
use crate::store::testing::{commit, message};
use crate::value::Value;

/// Writes a session with messages, a memory and a change, uncommitted.
fn talk(store: &mut SqliteStore, count: u64, content: &str) -> u64 {
    try_to_talk(store, count, content).unwrap()
}

fn try_to_talk(store: &mut SqliteStore, count: u64, content: &str) -> Result<u64, StoreError> {
    let name = format!("session of {count}");
    let session = store.change()?.create_session(&NewSession { name, ..NewSession::default() })?;
    let messages: Vec<Message> =
        (1..=count).map(|number| message(number, Role::User, content)).collect();
    store.change()?.append_messages(session, &messages)?;
    store.change()?.add_memory(&NewMemory {
        scope: MemoryScope::Everywhere,
        kind: "note".into(),
        origin: None,
        content: content.into(),
        created: 1,
    })?;
    Ok(session)
}

/// Returns the sessions, the hits for a word in their messages, and the memories.
fn held(store: &mut SqliteStore) -> (usize, usize, usize) {
    let sessions = store.read().sessions(true).unwrap();
    let messages: u64 = sessions.iter().map(|row| row.messages).sum();
    let read: usize =
        sessions.iter().map(|r| store.read().messages(r.id, 1, 99).unwrap().len()).sum();
    assert_eq!(read as u64, messages, "the figures fit the messages");
    let hits = store.read().search_sessions(None, "words", 1000, true).unwrap().len();
    let memories =
        store.read().search_memories("words", &MemoryFilter::default(), 1000).unwrap().len();
    (sessions.len(), hits, memories)
}

#[test]
fn a_request_that_fails_leaves_no_part_of_a_session() {
    let mut store = SqliteStore::in_memory().unwrap();
    talk(&mut store, 3, "words");
    store.keep().unwrap();
    talk(&mut store, 4, "words");
    store.abandon().unwrap();
    talk(&mut store, 5, "words");
    commit(&mut store);
    assert_eq!(held(&mut store), (2, 8, 2));
    talk(&mut store, 6, "words");
    store.abandon().unwrap();
    assert_eq!(held(&mut store), (2, 8, 2));
}

#[test]
fn a_full_store_keeps_no_half_of_a_session_and_works_afterwards() {
    let mut store = SqliteStore::in_memory().unwrap();
    talk(&mut store, 3, "words");
    commit(&mut store);
    let pages: i64 = store.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.db.pragma_update(None, "max_page_count", pages + 20).unwrap();
    let long = format!("words {}", "padding that is no use ".repeat(50_000));
    let error = try_to_talk(&mut store, 9, &long).unwrap_err();
    assert!(error.to_string().contains("could not be read or stored"), "{error}");
    store.abandon().unwrap();
    let counters = store.counters().unwrap();
    assert!(!store.commit(counters).unwrap(), "nothing else was to be stored");
    store.roll_back();
    assert_eq!(held(&mut store), (1, 3, 1));
    talk(&mut store, 4, "words");
    commit(&mut store);
    assert_eq!(held(&mut store), (2, 7, 2));
}

#[test]
fn a_store_that_is_not_to_be_written_can_be_read() {
    let mut store = SqliteStore::in_memory().unwrap();
    talk(&mut store, 3, "words");
    commit(&mut store);
    store.db.pragma_update(None, "query_only", true).unwrap();
    let error = try_to_talk(&mut store, 9, "words").unwrap_err();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
    store.abandon().unwrap();
    store.roll_back();
    assert_eq!(held(&mut store), (1, 3, 1));
    store.db.pragma_update(None, "query_only", false).unwrap();
    talk(&mut store, 4, "words");
    commit(&mut store);
    assert_eq!(held(&mut store), (2, 7, 2));
}

#[test]
fn a_database_of_another_format_is_refused_with_advice_and_copied() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let open = || crate::store::recovery::open(dir.path(), Box::new(|| Ok(())));
    let set_format = |format: i64| {
        let db = Connection::open(files.database()).unwrap();
        db.pragma_update(None, "user_version", format).unwrap();
    };
    for format in [1, FORMAT - 1, FORMAT + 1, 999] {
        set_format(format);
        let error = SqliteStore::open(&files, None).err().unwrap().to_string();
        assert!(error.contains(&format!("has format {format}, ")), "{error}");
        assert!(error.contains("--state"), "{error}");
        for _ in 0..2 {
            let copy = dir.path().join(format!("format-{format}"));
            let error = open().err().unwrap().to_string();
            assert!(error.contains(&copy.display().to_string()), "{error}");
            let [own, copied] = [files.database(), copy.join("contexture.db")].map(std::fs::read);
            assert_eq!(own.unwrap(), copied.unwrap());
        }
    }
    // The copy follows what the program of that format stores meanwhile.
    let db = Connection::open(files.database()).unwrap();
    db.execute_batch("CREATE TABLE later (it)").unwrap();
    drop(db);
    assert!(open().is_err());
    let [own, copied] = [files.database(), dir.path().join("format-999/contexture.db")];
    assert_eq!(std::fs::read(own).unwrap(), std::fs::read(copied).unwrap());
}

#[test]
fn the_copy_of_another_format_is_not_written_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let db = Connection::open(files.database()).unwrap();
    db.pragma_update(None, "user_version", 11).unwrap();
    drop(db);
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("format-11")).unwrap();
    let opened = crate::store::recovery::open(dir.path(), Box::new(|| Ok(())));
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("is a link"), "{error}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_full_store_fails_every_call_of_the_burst_and_works_afterwards() {
    let mut store = SqliteStore::in_memory().unwrap();
    let counters = store.counters().unwrap();
    let pages: i64 = store.db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.db.pragma_update(None, "max_page_count", pages + 10).unwrap();
    store.remember("a", "1").unwrap();
    store.keep().unwrap();
    let error = store.remember("b", &"x".repeat(10_000_000)).unwrap_err();
    assert!(matches!(error, StoreError::Write(_)));
    store.abandon().unwrap();
    store.remember("c", "3").unwrap();
    store.keep().unwrap();
    assert!(matches!(store.commit(counters), Err(StoreError::Lost)));
    store.roll_back();
    store.remember("d", "4").unwrap();
    store.keep().unwrap();
    store.commit(counters).unwrap();
    let kept = ["a", "b", "c", "d"].map(|key| store.recall(key).unwrap().is_some());
    assert_eq!(kept, [false, false, false, true]);
}

/// The files of a store as they are now, as if its program had ended.
struct Crashed(tempfile::TempDir);

impl Crashed {
    fn of(folder: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
            }
        }
        Self(dir)
    }

    fn store(&self) -> SqliteStore {
        let opened = recovery::open(self.0.path(), Box::new(|| Ok(()))).unwrap();
        assert_eq!(opened.findings, []);
        opened.store
    }

    fn engine(&self) -> Engine {
        engine_on(self.store())
    }
}

fn engine_on(store: SqliteStore) -> Engine {
    Engine::new(Box::new(store), Box::new(|| 7_000), ContextSettings { max_items: 3 }).unwrap()
}

fn store_in(folder: &Path) -> SqliteStore {
    recovery::open(folder, Box::new(|| Ok(()))).unwrap().store
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
fn what_was_stored_is_there_after_a_crash_and_can_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = engine_on(store_in(dir.path()));
    for content in ["a", "b", "λ\u{1f600}\u{2028}", "d"] {
        add(&mut engine, content);
    }
    let crashed = Crashed::of(dir.path());
    let mut engine = crashed.engine();
    check(&mut engine, &["b", "λ\u{1f600}\u{2028}", "d"]);
    assert_eq!(add(&mut engine, "d"), 4, "the key is known, so nothing is added");
    assert_eq!(add(&mut engine, "e"), 5);
    engine.run_alone(|e| e.undo("m")).unwrap();
    engine.run_alone(|e| e.undo("m")).unwrap();
    check(&mut engine, &["a", "b", "λ\u{1f600}\u{2028}"]);
    assert_eq!(add(&mut engine, "f"), 6);
}

#[test]
fn a_failed_request_of_an_engine_leaves_nothing_after_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = engine_on(store_in(dir.path()));
    add(&mut engine, "a");
    for lists in [false, true] {
        let failed = engine.run_alone(|e| {
            e.clear("m")?;
            if lists {
                e.list_managers()?;
            }
            e.load_set("m", "no such set")
        });
        assert!(failed.is_err());
        check(&mut engine, &["a"]);
        check(&mut Crashed::of(dir.path()).engine(), &["a"]);
    }
    let saved = |e: &mut Engine| {
        e.clear("m")?;
        e.undo("m")?;
        e.save_set("m", "s")
    };
    engine.run_alone(saved).unwrap();
    let mut engine = Crashed::of(dir.path()).engine();
    check(&mut engine, &["a"]);
    assert_eq!(engine.read().sets().unwrap().len(), 1);
}

/// Writes requests of one commit: outcomes with keys, a session and a memory.
fn burst(store: &mut SqliteStore, number: u64) -> Result<(), StoreError> {
    store.remember(&format!("before {number}"), "1")?;
    store.keep()?;
    store.remember(&format!("first {number}"), "1")?;
    try_to_talk(store, number, "words")?;
    store.remember(&format!("then {number}"), "1")?;
    store.keep()
}

/// Counts the answers of a burst, and what is held of all bursts.
fn held_of(store: &mut SqliteStore, number: u64) -> (usize, (usize, usize, usize)) {
    let answers = ["before", "first", "then"].map(|part| format!("{part} {number}"));
    let answers = answers.iter().filter(|key| store.recall(key).unwrap().is_some()).count();
    (answers, held(store))
}

#[test]
fn a_burst_is_kept_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store_in(dir.path());
    burst(&mut store, 1).unwrap();
    let mut early = Crashed::of(dir.path()).store();
    assert_eq!(held_of(&mut early, 1), (0, (0, 0, 0)), "a crash before the commit");
    assert_eq!(early.counters().unwrap().changes, 0);
    commit(&mut store);
    assert!(burst(&mut store, 1).is_err(), "the name and the keys are taken");
    store.abandon().unwrap();
    commit(&mut store);
    let crashed = Crashed::of(dir.path());
    let mut late = crashed.store();
    assert_eq!(held_of(&mut late, 1), (3, (1, 1, 1)), "a crash after the commit");
    assert_eq!(late.counters().unwrap().changes, 2, "two requests changed something");
    burst(&mut late, 2).unwrap();
    commit(&mut late);
    drop(late);
    assert_eq!(held_of(&mut crashed.store(), 2), (3, (2, 3, 2)));
}

#[test]
fn each_column_of_each_table_is_hashed() {
    let store = SqliteStore::in_memory().unwrap();
    let sql = "SELECT name FROM pragma_table_list
               WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'";
    let tables: Vec<String> = store.db.rows(sql, [], |row| row.get(0)).unwrap();
    assert!(tables.len() > 20, "{tables:?}");
    for table in tables {
        let sql = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0";
        let columns: Vec<String> = store.db.rows(sql, [&table], |row| row.get(0)).unwrap();
        let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
        let made: String = store.db.value(sql, [&table]).unwrap().unwrap();
        let hashed = format!("row_hash({})", columns.join(", "));
        assert_eq!(made.matches(&hashed).count(), 2, "{table}: {hashed}");
    }
}

/// A backup may come from somebody else, and so may a state.
#[test]
fn what_a_schema_says_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let mut store = SqliteStore::open(&files, None).unwrap();
    talk(&mut store, 1, "words");
    commit(&mut store);
    let tables: Vec<String> = store
        .db
        .rows("SELECT name FROM sqlite_schema WHERE sql LIKE '%intact%'", [], |row| row.get(0))
        .unwrap();
    drop(store);
    assert!(tables.len() > 20, "{tables:?}");
    let whole = std::fs::read(files.database()).unwrap();
    let mut all = vec!["CREATE VIEW other AS SELECT 1".to_owned()];
    for table in &tables {
        all.extend(["BEFORE INSERT", "AFTER INSERT", "BEFORE UPDATE", "AFTER DELETE"].map(
            |when| {
                format!(
                    "CREATE TRIGGER other {when} ON {table} BEGIN
                 SELECT RAISE(ABORT, 'a trigger ran'); DELETE FROM message; END"
                )
            },
        ));
    }
    for sql in &all {
        std::fs::write(files.database(), &whole).unwrap();
        let db = Connection::open(files.database()).unwrap();
        hashes::define(&db, &Damage::default()).unwrap();
        db.execute_batch(sql).unwrap();
        // Whoever adds it can also write the number by which a change is found.
        db.pragma_update(None, "application_id", schema_number(&db).unwrap()).unwrap();
        drop(db);
        let checked = Image::open(&files.database()).and_then(|image| image.check_whole());
        assert!(matches!(checked, Err(StoreError::Damaged(_))), "{sql}: {checked:?}");
        // It does nothing even where nobody looks.
        let mut store = SqliteStore::open(&files, None).unwrap();
        talk(&mut store, 2, "words");
        commit(&mut store);
        assert_eq!(held(&mut store), (2, 3, 2), "{sql}");
    }
}

/// A schema under the number of another one would be opened, and fail at some later time.
#[test]
fn each_schema_has_a_number_of_its_own() {
    let code = SCHEMA.lines().filter_map(|line| line.split("--").next());
    let words: Vec<&str> = code.flat_map(str::split_whitespace).collect();
    let hash = blake3::hash(words.join(" ").as_bytes()).to_hex();
    let known = (17, "ce0786cc5690657f");
    assert_eq!((FORMAT, &hash[..16]), known, "raise FORMAT, and put both here");
}
