//! Rows for what sessions of agents were given.

use rusqlite::params;

use super::super::StoreError;
use super::super::session::{PushRow, PushState};
use super::sql::Statements;
use super::{Reading, Writing};

/// Number of sessions of agents whose record is kept.
const KEPT: u64 = 1_000;

impl Reading<'_> {
    /// Returns what a session of an agent was given, if anything.
    pub fn push(&self, agent: &str, session: &str) -> Result<Option<PushRow>, StoreError> {
        let sql = "SELECT number, items, earlier_number, earlier_items FROM push
                   WHERE agent = ?1 AND session = ?2";
        self.db.row(sql, [agent, session], |row| {
            Ok(PushRow {
                latest: PushState { number: row.get(0)?, items: row.get(1)? },
                earlier: PushState { number: row.get(2)?, items: row.get(3)? },
            })
        })
    }
}

impl Writing<'_> {
    /// Records what a session of an agent was given, and forgets the sessions that were given
    /// something the longest ago.
    pub fn note_push(&self, agent: &str, session: &str, row: &PushRow) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO push
                   (agent, session, number, items, earlier_number, earlier_items)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let PushRow { latest, earlier } = row;
        let (number, items) = (latest.number, &latest.items);
        self.db
            .change(sql, params![agent, session, number, items, earlier.number, earlier.items])?;
        let oldest = "DELETE FROM push WHERE rowid <=
                      (SELECT rowid FROM push ORDER BY rowid DESC LIMIT 1 OFFSET ?1)";
        self.db.change(oldest, [KEPT]).map(drop)
    }
}
