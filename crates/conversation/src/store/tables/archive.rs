//! Rows for messages waiting to become memories.

use rusqlite::params;
use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};

use super::super::StoreError;
use super::super::memory::ToArchive;
use super::sql::{Column, Columns, Statements, StoredInColumn, columns, damaged};
use super::{TableReading, Writing};
use crate::session::spans::Spans;

columns!(ToArchive { id, session, done, created, ..Self::default() });

impl TableReading<'_> {
    /// Returns the messages that were queued first; `None` when none are queued.
    pub fn next_to_archive(&self) -> Result<Option<ToArchive>, StoreError> {
        let columns = ToArchive::list();
        let sql =
            format!("SELECT {columns}, messages FROM to_archive WHERE sound ORDER BY id LIMIT 1");
        self.db.row(&sql, [], |row| {
            Ok(ToArchive {
                messages: row.get::<_, Column<_>>("messages")?.0,
                ..ToArchive::of(row)?
            })
        })
    }
}

impl Writing<'_> {
    /// Queues messages of a session to become memories. `created` is the creation time of these
    /// memories, in Unix seconds.
    pub fn put_off_archive(
        &self,
        session: u64,
        messages: &Spans,
        created: i64,
    ) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO to_archive (session, messages, done, created) VALUES (?1, ?2, 0, ?3)";
        self.db.change(sql, params![session, Column(messages), created]).map(drop)
    }

    /// Records that the messages of the queue's entry `id` have become memories, up to message
    /// number `done`. `None` means all of them, and removes the entry.
    pub fn note_archived(&self, id: u64, done: Option<u64>) -> Result<(), StoreError> {
        match done {
            Some(done) => {
                let sql = "UPDATE to_archive SET done = ?2 WHERE id = ?1";
                self.db.change(sql, [id, done]).map(drop)
            }
            None => self.db.change("DELETE FROM to_archive WHERE id = ?1", [id]).map(drop),
        }
    }
}

/// Stores message numbers as JSON.
impl StoredInColumn for Spans {
    fn store(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(self);
        Ok(text.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?.into())
    }

    fn restore(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?)
            .map_err(|error| damaged(format!("cannot parse the messages to archive: {error}")))
    }
}
