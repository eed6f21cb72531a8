//! Tests of cases that the engine's tests cannot reach: a database that is damaged, has another
//! format, or cannot be written.

use super::open::FORMAT;
use super::*;
use crate::session::message::{Message, Role};
use crate::store::memory::{MemoryFilter, MemoryScope, NewMemory};
use crate::store::recovery::Files;
use crate::store::session::NewSession;
use crate::store::testing::{commit, message};

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
