//! Rows for the states of a session's view, and for the checkpoints that refer to some of them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::StoreError;
use super::super::session::{CheckpointRow, NewCheckpoint, StateRow, StateSummary};

const STATE_COLUMNS: &str = "number, kind, base, created, state";
const CHECKPOINT_COLUMNS: &str = "id, state, position, turn, message, automatic, created, items";

/// Inserts a state.
pub(super) fn append(db: &Connection, session: u64, row: &StateRow) -> Result<(), StoreError> {
    let StateRow { number, kind, base, created, state } = row;
    db.prepare_cached(&format!(
        "INSERT INTO session_state ({STATE_COLUMNS}, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
    ))?
    .execute(params![number, kind, base, created, state, session])?;
    Ok(())
}

/// Returns the state with the highest number.
pub(super) fn newest(db: &Connection, session: u64) -> Result<Option<StateRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {STATE_COLUMNS} FROM session_state
         WHERE session = ?1 ORDER BY number DESC LIMIT 1"
    ))?;
    Ok(query.query_row([session], state_of).optional()?)
}

/// Returns the state with this number.
pub(super) fn read(
    db: &Connection,
    session: u64,
    number: u64,
) -> Result<Option<StateRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {STATE_COLUMNS} FROM session_state WHERE session = ?1 AND number = ?2"
    ))?;
    Ok(query.query_row([session, number], state_of).optional()?)
}

/// Returns at most `limit` states, newest first.
pub(super) fn list(
    db: &Connection,
    session: u64,
    limit: u64,
) -> Result<Vec<StateSummary>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT number, kind, base, created FROM session_state
         WHERE session = ?1 ORDER BY number DESC LIMIT ?2",
    )?;
    let rows = query.query_map(params![session, super::limit(limit)], |row| {
        Ok(StateSummary {
            number: row.get(0)?,
            kind: row.get(1)?,
            base: row.get(2)?,
            created: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Inserts a checkpoint and returns its number.
pub(super) fn add_checkpoint(
    db: &Connection,
    session: u64,
    checkpoint: &NewCheckpoint,
) -> Result<u64, StoreError> {
    let NewCheckpoint { state, position, turn, message, automatic, created, items } = checkpoint;
    db.prepare_cached(&format!(
        "INSERT INTO checkpoint ({CHECKPOINT_COLUMNS}, session)
         VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    ))?
    .execute(params![state, position, turn, message, automatic, created, items, session])?;
    Ok(db.last_insert_rowid().unsigned_abs())
}

/// Returns the checkpoints of a session, oldest first.
pub(super) fn checkpoints(db: &Connection, session: u64) -> Result<Vec<CheckpointRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {CHECKPOINT_COLUMNS} FROM checkpoint WHERE session = ?1 ORDER BY id"
    ))?;
    Ok(query.query_map([session], checkpoint_of)?.collect::<Result<_, _>>()?)
}

/// Returns the checkpoint of this session with this id.
pub(super) fn checkpoint(
    db: &Connection,
    session: u64,
    id: u64,
) -> Result<Option<CheckpointRow>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {CHECKPOINT_COLUMNS} FROM checkpoint WHERE session = ?1 AND id = ?2"
    ))?;
    Ok(query.query_row([session, id], checkpoint_of).optional()?)
}

fn state_of(row: &Row<'_>) -> rusqlite::Result<StateRow> {
    Ok(StateRow {
        number: row.get(0)?,
        kind: row.get(1)?,
        base: row.get(2)?,
        created: row.get(3)?,
        state: row.get(4)?,
    })
}

fn checkpoint_of(row: &Row<'_>) -> rusqlite::Result<CheckpointRow> {
    let made = NewCheckpoint {
        state: row.get(1)?,
        position: row.get(2)?,
        turn: row.get(3)?,
        message: row.get(4)?,
        automatic: row.get(5)?,
        created: row.get(6)?,
        items: row.get(7)?,
    };
    Ok(CheckpointRow { id: row.get(0)?, made })
}
