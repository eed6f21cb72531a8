//! Transactions of a store, and the numbers that are recorded with each commit.

use rusqlite::params;

use super::super::folder::marks::HighWaterMark;
use super::super::tables::{Columns, Statements};
use super::super::{Counters, SEQUENCES, StoreError};
use super::SqliteStore;
use super::open::FORMAT;

impl SqliteStore {
    /// Begins a transaction at the first write, and a savepoint for each request after the first.
    pub(super) fn writing(&mut self) -> Result<(), StoreError> {
        if !self.transaction {
            self.run("BEGIN IMMEDIATE")?;
            self.transaction = true;
        }
        if self.kept && !self.savepoint {
            self.run("SAVEPOINT request")?;
            self.savepoint = true;
        }
        Ok(())
    }

    /// Begins a change. A read-only store must first be reopened for writing.
    pub(super) fn changing(&mut self) -> Result<(), StoreError> {
        if self.refusal.is_some() {
            let opened = self.reopen.as_mut().map(|reopen| reopen(false));
            match opened {
                Some(Ok(opened)) => {
                    tracing::warn!("the state can be written again");
                    *self = opened.store;
                }
                Some(Err(error)) => {
                    let why = match error {
                        StoreError::ReadOnly(why) => why,
                        error => error.to_string(),
                    };
                    self.refusal = Some(why.clone());
                    return Err(StoreError::ReadOnly(why));
                }
                None => {}
            }
        }
        self.is_changing = true;
        self.writing()
    }

    pub(super) fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.db.change(sql, []).map(drop)
    }

    /// Returns the last id given in each table whose ids never repeat.
    fn sequences(&self) -> Result<[u64; SEQUENCES.len()], StoreError> {
        let mut sequences = [0; SEQUENCES.len()];
        let row = |row: &rusqlite::Row<'_>| <(String, u64)>::try_from(row);
        for (name, last) in self.db.rows("SELECT name, seq FROM sqlite_sequence", [], row)? {
            if let Some(place) = SEQUENCES.iter().position(|known| *known == name) {
                sequences[place] = last;
            }
        }
        Ok(sequences)
    }

    /// Raises the counters and the last ids of the tables to at least those of a mark, so that no
    /// number is given twice.
    pub(super) fn raise(&mut self, mark: &HighWaterMark) -> Result<(), StoreError> {
        let (now, to) = (self.counters, mark.counters);
        let raised = Counters {
            next_item: now.next_item.max(to.next_item),
            next_version: now.next_version.max(to.next_version),
            last_timestamp: now.last_timestamp.max(to.last_timestamp),
            changes: now.changes.max(to.changes),
        };
        let known = self.sequences()?;
        for ((name, last), known) in SEQUENCES.iter().zip(mark.sequences).zip(known) {
            if last > known {
                self.writing()?;
                self.db.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [name])?;
                let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
                self.db.execute(sql, params![name, last])?;
            }
        }
        if raised != now {
            self.writing()?;
        }
        self.store_transaction(raised)
    }

    /// Commits the transaction, if there is one, and writes the high-water mark.
    fn store_transaction(&mut self, counters: Counters) -> Result<(), StoreError> {
        if self.transaction {
            let sql = "UPDATE counter
                       SET next_item = ?1, next_version = ?2, last_timestamp = ?3, changes = ?4";
            self.db.change(sql, &*counters.values())?;
            self.run("COMMIT")?;
            self.is_unsettled = true;
        }
        (self.transaction, self.kept) = (false, false);
        self.counters = counters;
        self.note_mark(false);
        Ok(())
    }

    /// Writes the high-water mark.
    pub(super) fn note_mark(&mut self, is_damaged: bool) {
        let sequences = self.sequences().unwrap_or_default();
        if let Some(place) = &self.place {
            let counters = self.counters;
            place.note(&HighWaterMark { format: FORMAT, counters, sequences, is_damaged });
        }
    }

    pub(super) fn commit_requests(&mut self, counters: Counters) -> Result<bool, StoreError> {
        if self.lost {
            return Err(StoreError::Lost);
        }
        if !self.transaction {
            return Ok(false);
        }
        if let Some(place) = &self.place {
            place.refuse_removed()?;
        }
        self.store_transaction(counters).map(|()| true)
    }
}
