//! Rows for the contents of pictures and PDFs.

use std::collections::HashSet;

use rusqlite::params;

use super::super::StoreError;
use super::sql::Statements;
use super::{TableReading, Writing};

/// Contents that nothing names are looked for after this number of new ones.
const SWEEP: u64 = 16;
/// The newest contents, which are kept in any case: their items may come in the next moment.
const NEWEST: u64 = 8;

impl TableReading<'_> {
    /// Returns the content of a picture, by its hash.
    pub fn picture(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT data FROM picture WHERE name = ?1 AND sound";
        self.db.row(sql, [name], |row| row.get(0))
    }
}

impl Writing<'_> {
    /// Keeps the content of a picture by its hash. From time to time, deletes the contents that no
    /// item has, whether it is shown, can come back by an undo, or is in a set.
    pub fn keep_picture(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        // A content that is kept already counts as new.
        let sql = "INSERT OR REPLACE INTO picture (name, data) VALUES (?1, ?2)";
        let number = self.db.insert(sql, params![name, content])?;
        if number.is_multiple_of(SWEEP) {
            self.sweep_pictures(number - NEWEST)?;
        }
        Ok(())
    }

    fn sweep_pictures(&self, up_to: u64) -> Result<(), StoreError> {
        let named = r#"SELECT metadata FROM version WHERE instr(metadata, '"picture"') UNION ALL
                     SELECT metadata FROM set_item WHERE instr(metadata, '"picture"')"#;
        let named: Vec<String> = self.db.rows(named, [], |row| row.get(0))?;
        let words = named.iter().flat_map(|metadata| metadata.split('"'));
        let named: HashSet<&str> = words.collect();
        let kept = "SELECT name FROM picture WHERE rowid <= ?1";
        let kept: Vec<String> = self.db.rows(kept, [up_to], |row| row.get(0))?;
        for name in kept.iter().filter(|name| !named.contains(name.as_str())) {
            self.db.change("DELETE FROM picture WHERE name = ?1", [name])?;
        }
        Ok(())
    }
}
