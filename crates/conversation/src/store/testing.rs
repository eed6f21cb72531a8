//! Helpers for the tests of stores: empty stores of each kind, and messages.

use std::cell::Cell;

use super::sqlite::SqliteStore;
use super::{Counters, Store};
use crate::session::message::{Message, Role};

/// Returns an empty store.
pub(super) fn store() -> Box<dyn Store> {
    Box::new(SqliteStore::in_memory().unwrap())
}

/// Ends the request and commits.
pub(super) fn commit(store: &mut dyn Store) {
    store.keep().unwrap();
    let counters: Counters = store.counters().unwrap();
    store.commit(counters).unwrap();
}

/// Returns a plain message.
pub(super) fn message(number: u64, role: Role, content: &str) -> Message {
    Message {
        number,
        role,
        content: content.into(),
        timestamp: 1000 + i64::try_from(number).unwrap(),
        phase: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        opaque: None,
        pinned: false,
        tokens: 10,
        counted_by: "o200k",
        signals: Default::default(),
    }
}

thread_local! {
    static ROWS_READ: Cell<u64> = const { Cell::new(0) };
}

/// Counts that a session's row was read on this thread.
pub(super) fn note_row_read() {
    ROWS_READ.set(ROWS_READ.get() + 1);
}

/// Returns how many rows of sessions were read on this thread.
pub fn rows_read() -> u64 {
    ROWS_READ.get()
}
