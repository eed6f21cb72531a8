//! Tests of cases that the engine's tests cannot reach: a database that is damaged, has another
//! format, or cannot be written.

use std::path::Path;

use super::*;
use crate::context::change::Slot;
use crate::context::item::{Item, ItemId, Kind};
use crate::session::message::{Message, Role};
use crate::store::memory::{MemoryFilter, MemoryScope, NewMemory};
use crate::store::recovery::Files;
use crate::store::session::NewSession;
use crate::store::testing::{commit, message};

fn slot(number: u64) -> Slot {
    let item = Item {
        id: ItemId(number),
        kind: Kind::Code,
        content: "fn é() {}".into(),
        metadata: Default::default(),
        timestamp: 5,
        taken_ms: 6,
        tokens: 7,
        counted_by: "o200k",
        live: false,
    };
    Slot { rank: 1, pinned: true, version: number, item: item.into() }
}

/// Data that a store of the first format can hold.
fn fill_first_format(store: &mut SqliteStore) {
    let mut change = Change { method: "add".into(), ..Change::default() };
    change.enter(slot(1));
    store.record("m", &change).unwrap();
    let after = Some(store.change().unwrap().write_set(5, &[slot(1)]).unwrap());
    let set = Some(crate::context::change::SetChange { name: "s".into(), before: None, after });
    let named = Change { method: "save-set".into(), set, ..Change::default() };
    store.record("m", &named).unwrap();
    store.remember("key", "outcome").unwrap();
}

/// Returns everything in a database: its format, its tables, and their rows.
fn all_of(db: &Connection) -> Vec<String> {
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = db.prepare(sql).unwrap();
        let columns = statement.column_count();
        let row = |row: &rusqlite::Row| {
            let values = (0..columns).map(|i| row.get::<_, rusqlite::types::Value>(i));
            Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
        };
        statement.query_map([], row).unwrap().map(Result::unwrap).collect()
    };
    let mut all = rows("SELECT user_version FROM pragma_user_version");
    all.extend(rows("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid"));
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    for name in names.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        all.extend(rows(&format!("SELECT * FROM {}", name.unwrap())));
    }
    all
}

/// With `CONTEXTURE_WRITE_EMPTY` in the environment, this test writes the file anew, which is
/// needed after a new migration.
#[test]
fn an_empty_store_is_what_the_migrations_make() {
    let migrated = Connection::open_in_memory().unwrap();
    let mut migrated = SqliteStore::prepare(migrated, Path::new(":memory:")).unwrap();
    if std::env::var_os("CONTEXTURE_WRITE_EMPTY").is_some() {
        let image = migrated.db.serialize(rusqlite::MAIN_DB).unwrap();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/schema/empty.db.zst");
        std::fs::write(path, ruzstd::encoding::compress_to_vec(&*image, level)).unwrap();
    }
    let empty = SqliteStore::in_memory().unwrap();
    assert_eq!(all_of(&empty.db), all_of(&migrated.db), "CONTEXTURE_WRITE_EMPTY=1 makes it anew");
}

#[test]
fn the_first_format_is_brought_up_to_date_with_its_data() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let path = files.database();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(include_str!("../schema/001.sql")).unwrap();
    db.pragma_update(None, "user_version", 1).unwrap();
    drop(db);
    let mut in_memory = SqliteStore::in_memory().unwrap();
    in_memory.db = Connection::open(&path).unwrap();
    // Today's code needs only the name of this table to write.
    in_memory.db.execute_batch("CREATE TEMP TABLE undone (manager, seq, change)").unwrap();
    fill_first_format(&mut in_memory);
    let counters = Counters { next_item: 2, next_version: 2, last_timestamp: 5, burst: 3 };
    in_memory.keep().unwrap();
    in_memory.commit(counters).unwrap();
    drop(in_memory);

    let mut store = SqliteStore::open(&files, None).unwrap();
    // The manager got a version.
    assert_eq!(store.counters().unwrap(), Counters { next_version: 3, ..counters });
    assert_eq!(store.load("m").unwrap().unwrap().version, 2);
    assert_eq!(store.load("m").unwrap().unwrap().slots, [slot(1)]);
    assert_eq!(store.last_change("m", Way::Undo).unwrap().unwrap().method, "save-set");
    assert_eq!(store.read().sets().unwrap()[0].name, "s");
    assert_eq!(store.recall("key").unwrap().as_deref(), Some("outcome"));
    talk(&mut store, 3, "words");
    commit(&mut store);
    drop(store);
    SqliteStore::check(&path).unwrap();
    let mut store = SqliteStore::open(&files, None).unwrap();
    assert_eq!(store.read().search_sessions(None, "words", 9, false).unwrap().len(), 3);
    assert_eq!(store.load("m").unwrap().unwrap().slots, [slot(1)]);
}

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
    assert!(matches!(store.commit(counters), Err(StoreError::Lost)));
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
fn a_newer_database_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(dir.path());
    let db = Connection::open(files.database()).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    let error = SqliteStore::open(&files, None).err().unwrap().to_string();
    assert!(error.contains("has format 999") && error.contains("--state"), "{error}");
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
