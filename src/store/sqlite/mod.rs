//! The store in an SQLite database: a file in the state folder, or memory for an ephemeral server.
//!
//! SQLite runs in WAL mode with `synchronous = NORMAL`: a commit writes to SQLite's write-ahead log
//! without waiting for the disk. Commits survive the end of the process, however it ends; a power
//! failure may lose the last moments but does not damage the database.

mod journal;
mod keeper;
mod open;

use std::collections::HashMap;

use rusqlite::{Connection, params};

use self::keeper::Keeper;
pub(super) use self::open::refuse_other;
use super::folder::Snapshot;
use super::tables::{Columns, ITEM_COLUMNS, Statements, columns, slot_of};
use super::{
    Counters, Extent, REMEMBERED_REQUESTS, Reading, SEQUENCES, Store, StoreError, StoredManager,
    Told, Way, Writing,
};
use crate::context::change::{Change, Settings};

/// Number of remembered requests between two removals of the oldest ones.
const REQUEST_SWEEP: i64 = 256;
/// Size of the write-ahead log, in bytes, above which a checkpoint follows the commit: 1000 pages,
/// SQLite's own default.
const LONGEST_WAL: u64 = 1000 * 4096;

/// A [`Store`] in SQLite.
pub struct SqliteStore {
    db: Connection,
    /// `None` for a store without a file. Must be dropped after `db`.
    keeper: Option<Keeper>,
    /// Set when the write-ahead log may have pages that the database lacks.
    unsettled: bool,
    managers: HashMap<String, Known>,
    next_request: i64,
    transaction: bool,
    /// Set when the transaction has writes of finished requests.
    kept: bool,
    /// Set when the running request has its own savepoint.
    savepoint: bool,
    /// Set when SQLite rolled back the transaction on its own, for example because the disk is
    /// full. The writes of earlier requests are then gone too, so the commit must fail.
    lost: bool,
}

columns!(Counters { next_item, next_version, last_timestamp, burst });

/// Facts about a manager that are cached between requests.
#[derive(Clone, Copy)]
struct Known {
    id: i64,
    /// Number of the newest change in its journal. If the journal is empty, one less than the
    /// number of the next change.
    last_change: u64,
    /// Step of the newest change.
    step: u64,
    /// Set when changes can be redone.
    has_undone: bool,
}

impl SqliteStore {
    /// Begins a transaction at the first write, and a savepoint for each request after the first.
    fn writing(&mut self) -> Result<(), StoreError> {
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

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.db.change(sql, []).map(drop)
    }

    fn known(&mut self, name: &str) -> Result<Option<Known>, StoreError> {
        if let Some(known) = self.managers.get(name) {
            return Ok(Some(*known));
        }
        let id = self.db.value("SELECT id FROM manager WHERE name = ?1", [name])?;
        let Some(id) = id else { return Ok(None) };
        let last_change = journal::last_number(&self.db, id)?;
        let step = journal::step_of(&self.db, id, last_change)?;
        let known = Known { id, last_change, step, has_undone: journal::has_undone(&self.db, id)? };
        self.managers.insert(name.to_owned(), known);
        Ok(Some(known))
    }

    fn known_or_new(&mut self, name: &str) -> Result<Known, StoreError> {
        if let Some(known) = self.known(name)? {
            return Ok(known);
        }
        self.db.change("INSERT INTO manager (name) VALUES (?1)", [name])?;
        Ok(Known { id: self.db.last_insert_rowid(), last_change: 0, step: 0, has_undone: false })
    }
}

impl Store for SqliteStore {
    fn read(&mut self) -> Reading<'_> {
        Reading { db: &self.db }
    }

    fn read_all(&mut self) -> Result<Reading<'_>, StoreError> {
        Ok(self.read())
    }

    fn change(&mut self) -> Result<Writing<'_>, StoreError> {
        self.writing()?;
        Ok(Writing(Reading { db: &self.db }))
    }

    fn note(&mut self) -> Result<Option<Writing<'_>>, StoreError> {
        self.change().map(Some)
    }

    fn counters(&mut self) -> Result<Counters, StoreError> {
        let sql = format!("SELECT {} FROM counter", Counters::list());
        Ok(self.db.query_row(&sql, [], Counters::of)?)
    }

    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError> {
        let Some(Known { id, .. }) = self.known(manager)? else { return Ok(None) };
        let sql = "SELECT max_items, version FROM manager WHERE id = ?1";
        let row = |row: &rusqlite::Row<'_>| <(Option<usize>, u64)>::try_from(row);
        let (max_items, version) = self.db.row(sql, [id], row)?.unwrap_or_default();
        let sql = format!(
            "SELECT {ITEM_COLUMNS}, slot.rank, slot.pinned, version
             FROM slot JOIN version USING (version, item) WHERE slot.manager = ?1 ORDER BY slot.rank"
        );
        let slots = self.db.rows(&sql, [id], slot_of)?;
        let settings = max_items.map(|max_items| Settings { max_items });
        Ok(Some(StoredManager { settings, slots, version }))
    }

    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.writing()?;
        let Known { id, mut last_change, step, mut has_undone } = self.known_or_new(manager)?;
        journal::store_arrivals(&self.db, change)?;
        journal::set_slots(&self.db, id, change)?;
        if !journal::extend(&self.db, id, last_change, step, has_undone, change)? {
            last_change += 1;
            journal::append(&self.db, id, last_change, change)?;
        }
        if has_undone && !change.is_following() {
            journal::forget_undone(&self.db, id)?;
            has_undone = false;
        }
        let step = change.step;
        self.managers.insert(manager.to_owned(), Known { id, last_change, step, has_undone });
        Ok(())
    }

    fn rename(&mut self, manager: &str, to: &str) -> Result<(), StoreError> {
        self.writing()?;
        self.managers.remove(manager);
        journal::rename_partner(&self.db, manager, to)?;
        let sql = "UPDATE manager SET name = ?2 WHERE name = ?1";
        self.db.change(sql, params![manager, to]).map(drop)
    }

    fn last_change(&mut self, manager: &str, way: Way) -> Result<Option<Change>, StoreError> {
        match self.known(manager)? {
            Some(Known { id, last_change, .. }) => journal::last(&self.db, id, last_change, way),
            None => Ok(None),
        }
    }

    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError> {
        self.writing()?;
        let Known { id, last_change, .. } = self.known_or_new(manager)?;
        journal::set_slots(&self.db, id, inverse)?;
        journal::set_aside(&self.db, id, last_change)?;
        let last_change = last_change.saturating_sub(1);
        let step = journal::step_of(&self.db, id, last_change)?;
        let known = Known { id, last_change, step, has_undone: true };
        self.managers.insert(manager.to_owned(), known);
        Ok(())
    }

    fn redo(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.writing()?;
        let Known { id, mut last_change, mut step, .. } = self.known_or_new(manager)?;
        journal::set_slots(&self.db, id, change)?;
        if !change.is_empty() {
            last_change += 1;
            step = change.step;
            journal::append(&self.db, id, last_change, change)?;
        }
        journal::drop_undone(&self.db, id)?;
        let has_undone = journal::has_undone(&self.db, id)?;
        self.managers.insert(manager.to_owned(), Known { id, last_change, step, has_undone });
        Ok(())
    }

    fn changes(&mut self, manager: &str, way: Way, most: u64) -> Result<Vec<Told>, StoreError> {
        match self.known(manager)? {
            Some(Known { id, .. }) => journal::changes(&self.db, id, way, most),
            None => Ok(Vec::new()),
        }
    }

    fn managers_of_step(&mut self, step: u64, way: Way) -> Result<Vec<String>, StoreError> {
        journal::managers_of_step(&self.db, step, way)
    }

    fn step_mark(&mut self, manager: &str) -> Result<u64, StoreError> {
        match self.known(manager)? {
            Some(Known { id, .. }) => journal::step_mark(&self.db, id),
            None => Ok(0),
        }
    }

    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        self.db.value("SELECT outcome FROM request WHERE key = ?1", [key])
    }

    fn requests(&mut self) -> Result<Vec<String>, StoreError> {
        self.db.rows("SELECT key FROM request", [], |row| row.get(0))
    }

    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError> {
        self.writing()?;
        if self.next_request % REQUEST_SWEEP == 0 {
            let oldest = self.next_request - REMEMBERED_REQUESTS;
            self.db.change("DELETE FROM request WHERE seq < ?1", [oldest])?;
        }
        let sql = "INSERT INTO request (key, seq, outcome) VALUES (?1, ?2, ?3)";
        self.db.change(sql, params![key, self.next_request, outcome])?;
        self.next_request += 1;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.kept |= self.transaction;
        if self.savepoint {
            self.savepoint = false;
            self.run("RELEASE request")?;
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), StoreError> {
        self.managers.clear();
        if self.transaction && self.db.is_autocommit() {
            self.lost = true;
            self.transaction = false;
        } else if self.savepoint {
            self.run("ROLLBACK TO request")?;
            self.run("RELEASE request")?;
        } else if self.transaction && !self.kept {
            self.transaction = false;
            self.run("ROLLBACK")?;
        }
        self.savepoint = false;
        Ok(())
    }

    fn commit(&mut self, counters: Counters) -> Result<bool, StoreError> {
        if self.lost {
            return Err(StoreError::Lost);
        }
        if !self.transaction {
            return Ok(false);
        }
        let sql = "UPDATE counter
                   SET next_item = ?1, next_version = ?2, last_timestamp = ?3, burst = ?4";
        self.db.change(sql, &*counters.values())?;
        self.unsettled = true;
        self.run("COMMIT")?;
        self.transaction = false;
        self.kept = false;
        Ok(true)
    }

    fn roll_back(&mut self) {
        self.managers.clear();
        self.savepoint = false;
        self.transaction = false;
        self.kept = false;
        self.lost = false;
        if !self.db.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::error!("a transaction could not be rolled back: {error}");
        }
    }

    fn is_settled(&self) -> bool {
        self.keeper.is_none() || !self.unsettled
    }

    /// Makes a checkpoint: writes all pages to the database and then to the copy, and empties the
    /// write-ahead log. Does nothing while a backup reads the database.
    fn settle(&mut self) -> Result<(), StoreError> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        if !self.unsettled || keeper.is_held() {
            return Ok(());
        }
        let run = |db: &Connection, mode: &str| -> Result<bool, rusqlite::Error> {
            let sql = format!("PRAGMA wal_checkpoint({mode})");
            db.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(|busy| busy == 0)
        };
        if !run(&self.db, "FULL")? {
            let cause = "another program is using the database; end that program".to_owned();
            return Err(StoreError::Beside(cause));
        }
        keeper.follow().map_err(|error| StoreError::Beside(error.to_string()))?;
        run(&self.db, "TRUNCATE")?;
        self.unsettled = false;
        Ok(())
    }

    fn is_behind(&mut self) -> bool {
        self.keeper.as_mut().is_some_and(|keeper| keeper.wal_bytes() > LONGEST_WAL)
    }

    fn catch_up(&mut self) -> Result<(), StoreError> {
        self.settle()
    }

    fn extent(&mut self) -> Result<Extent, StoreError> {
        let mut extent = Extent::default();
        let mut query = self.db.prepare_cached("SELECT name, seq FROM sqlite_sequence")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let name = row.get_ref(0)?.as_str().unwrap_or_default();
            if let Some(place) = SEQUENCES.iter().position(|known| *known == name) {
                extent.sequences[place] = row.get(1)?;
            }
        }
        if let Some(keeper) = &mut self.keeper {
            (extent.epoch, extent.digest) = (keeper.epoch(), keeper.digest);
            let salt = keeper.salt();
            extent.salt = salt.map_err(|error| StoreError::Beside(error.to_string()))?;
        }
        Ok(extent)
    }

    fn raise(&mut self, extent: &Extent) -> Result<(), StoreError> {
        let known = self.extent()?;
        self.writing()?;
        for (place, name) in SEQUENCES.iter().enumerate() {
            if extent.sequences[place] > known.sequences[place] {
                self.db.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [name])?;
                self.db.execute(
                    "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                    params![name, extent.sequences[place]],
                )?;
            }
        }
        Ok(())
    }

    fn refuse_removed(&self) -> Result<(), StoreError> {
        self.keeper.as_ref().map_or(Ok(()), Keeper::refuse_removed)
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, StoreError> {
        self.settle()?;
        Ok(self.keeper.as_ref().and_then(Keeper::snapshot))
    }
}

#[cfg(test)]
mod tests;
