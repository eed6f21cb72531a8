//! Rows for messages waiting to become memories.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::StoreError;
use super::super::memory::ToArchive;
use crate::session::spans::Spans;

/// Queues messages of a session.
pub(super) fn put_off(
    db: &Connection,
    session: u64,
    messages: &Spans,
    created: i64,
) -> Result<(), StoreError> {
    let messages = serde_json::to_string(messages).map_err(damaged)?;
    db.prepare_cached(
        "INSERT INTO to_archive (session, messages, done, created) VALUES (?1, ?2, 0, ?3)",
    )?
    .execute(params![session, messages, created])?;
    Ok(())
}

/// Returns the messages that were queued first.
pub(super) fn next(db: &Connection) -> Result<Option<ToArchive>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT id, session, messages, done, created FROM to_archive ORDER BY id LIMIT 1",
    )?;
    let found = query
        .query_row([], |row| {
            let messages: String = row.get(2)?;
            let empty = Spans::default();
            let (id, session, done, created) = (row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?);
            Ok((ToArchive { id, session, messages: empty, done, created }, messages))
        })
        .optional()?;
    let Some((found, messages)) = found else { return Ok(None) };
    let messages = serde_json::from_str(&messages).map_err(damaged)?;
    Ok(Some(ToArchive { messages, ..found }))
}

/// Records the last message that became a memory, or removes the row when all of them did.
pub(super) fn note(db: &Connection, id: u64, done: Option<u64>) -> Result<(), StoreError> {
    match done {
        Some(done) => db
            .prepare_cached("UPDATE to_archive SET done = ?2 WHERE id = ?1")?
            .execute(params![id, done])?,
        None => db.prepare_cached("DELETE FROM to_archive WHERE id = ?1")?.execute([id])?,
    };
    Ok(())
}

fn damaged(error: serde_json::Error) -> StoreError {
    StoreError::Damaged(format!("cannot parse the messages to archive: {error}"))
}
