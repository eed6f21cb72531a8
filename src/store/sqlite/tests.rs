//! What the engine's tests cannot see: files that are no sound database.

use super::*;

#[test]
fn a_newer_database_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    let error = SqliteStore::open(&path).err().unwrap().to_string();
    assert!(error.contains("has format 999") && error.contains("--state"), "{error}");
}

#[test]
fn a_damaged_database_is_moved_aside_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    for number in 1..=2 {
        std::fs::write(&path, "this is no database, and long enough to be looked at").unwrap();
        let opened = SqliteStore::open(&path).unwrap();
        let aside = opened.moved_aside.unwrap();
        assert!(aside.to_string_lossy().ends_with(&format!("s.db.damaged-{number}")));
        assert!(std::fs::read_to_string(&aside).unwrap().starts_with("this is no database"));
        drop(opened.store);
        std::fs::remove_file(&path).unwrap();
    }
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
