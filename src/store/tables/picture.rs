//! Rows for the contents of pictures and PDFs.

use rusqlite::params;

use super::super::StoreError;
use super::sql::Statements;
use super::{Reading, Writing};

impl Reading<'_> {
    /// Returns the content of a picture, by its hash.
    pub fn picture(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT data FROM picture WHERE name = ?1 AND sound";
        self.db.row(sql, [name], |row| row.get(0))
    }
}

impl Writing<'_> {
    /// Keeps the content of a picture by its hash, unless it is kept already.
    pub fn keep_picture(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO picture (name, data) VALUES (?1, ?2)";
        self.db.change(sql, params![name, content]).map(drop)
    }
}
