//! Rows for the states of a session's view, and for its checkpoints.

use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::session::{CheckpointRow, NewCheckpoint, StateRow, StateSummary};
use super::sql::{Columns, Statements, columns, limit};
use super::{TableReading, Writing};

columns!(StateRow { number, kind, base, created, state });
columns!(StateSummary { number, kind, base, created });
columns!(NewCheckpoint { state, position, turn, message, automatic, created, items });

impl TableReading<'_> {
    /// Returns the state with the highest number.
    pub fn newest_state(&self, session: u64) -> Result<Option<StateRow>, StoreError> {
        let sql = select::<StateRow>("ORDER BY number DESC LIMIT 1");
        self.db.row(&sql, [session], StateRow::of)
    }

    /// Returns the state with this number.
    pub fn state(&self, session: u64, number: u64) -> Result<Option<StateRow>, StoreError> {
        self.db.row(&select::<StateRow>("AND number = ?2"), [session, number], StateRow::of)
    }

    /// Returns at most `most` states, newest first.
    pub fn states(&self, session: u64, most: u64) -> Result<Vec<StateSummary>, StoreError> {
        let sql = select::<StateSummary>("ORDER BY number DESC LIMIT ?2");
        self.db.rows(&sql, params![session, limit(most)], StateSummary::of)
    }

    /// Returns the checkpoints of a session, oldest first.
    pub fn checkpoints(&self, session: u64) -> Result<Vec<CheckpointRow>, StoreError> {
        self.db.rows(&select_checkpoints("ORDER BY id"), [session], checkpoint_of)
    }

    /// Returns the session's checkpoint with the number `id`.
    pub fn checkpoint(&self, session: u64, id: u64) -> Result<Option<CheckpointRow>, StoreError> {
        self.db.row(&select_checkpoints("AND id = ?2"), [session, id], checkpoint_of)
    }
}

impl Writing<'_> {
    /// Adds a state of the session's view.
    pub fn append_state(&self, session: u64, state: &StateRow) -> Result<(), StoreError> {
        let mut values = state.values();
        values.push(&session);
        self.db.change(&StateRow::insertion("session_state", &["session"]), &*values).map(drop)
    }

    /// Adds a checkpoint and returns its number.
    pub fn add_checkpoint(
        &self,
        session: u64,
        checkpoint: &NewCheckpoint,
    ) -> Result<u64, StoreError> {
        let mut values = checkpoint.values();
        values.push(&session);
        self.db.insert(&NewCheckpoint::insertion("checkpoint", &["session"]), &*values)
    }
}

fn select<T: Columns>(which: &str) -> String {
    format!("SELECT {} FROM session_state WHERE session = ?1 AND sound {which}", T::list())
}

fn select_checkpoints(which: &str) -> String {
    format!(
        "SELECT {}, id FROM checkpoint WHERE session = ?1 AND sound {which}",
        NewCheckpoint::list()
    )
}

fn checkpoint_of(row: &Row<'_>) -> rusqlite::Result<CheckpointRow> {
    Ok(CheckpointRow { id: row.get("id")?, made: NewCheckpoint::of(row)? })
}
