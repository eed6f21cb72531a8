//! Rows for files from which sessions were imported.

use rusqlite::params;

use super::super::StoreError;
use super::super::session::RecordingRow;
use super::sql::{Columns, Statements, columns};
use super::{TableReading, Writing};

columns!(RecordingRow { session, mark });

impl TableReading<'_> {
    /// Returns the place up to which a file was imported; `None` if it was not imported.
    pub fn recording(&self, path: &str) -> Result<Option<RecordingRow>, StoreError> {
        let sql = "SELECT session, mark FROM recording WHERE path = ?1 AND sound";
        self.db.row(sql, [path], RecordingRow::of)
    }

    /// Returns how far each file was imported from which a session was imported.
    pub fn recordings_of(&self, session: u64) -> Result<Vec<RecordingRow>, StoreError> {
        let sql = "SELECT session, mark FROM recording WHERE session = ?1 AND sound ORDER BY path";
        self.db.rows(sql, [session], RecordingRow::of)
    }
}

impl Writing<'_> {
    /// Notes the place up to which a file was imported. If another session was in the file before,
    /// what was read of it stays known, under a name that no file has.
    pub fn note_recording(&self, path: &str, row: &RecordingRow) -> Result<(), StoreError> {
        let sql = "UPDATE OR REPLACE recording SET path = path || '//' || session
                   WHERE path = ?1 AND session <> ?2";
        self.db.change(sql, params![path, row.session])?;
        let sql = "INSERT OR REPLACE INTO recording (path, session, mark) VALUES (?1, ?2, ?3)";
        self.db.change(sql, params![path, row.session, row.mark]).map(drop)
    }
}
