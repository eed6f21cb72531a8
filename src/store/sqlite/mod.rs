//! The store in an SQLite database: a file in the state folder, or memory for an ephemeral server.
//!
//! Runs in WAL mode with `synchronous = NORMAL`: a commit writes to the log without waiting for the
//! disk. Commits survive the end of the process, however it ends; a power failure may lose the last
//! moments but does not damage the database.

mod archive;
mod journal;
mod keeper;
mod memory;
mod message;
mod open;
mod rows;
mod search;
mod session;
mod sets;
mod state;
mod usage;
mod view;
mod words;

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use self::keeper::Keeper;
pub(super) use self::open::refuse_newer;
use self::rows::{ITEM_COLUMNS, slot_of};
use super::folder::Snapshot;
use super::{
    Counters, Extent, ManagerSummary, REMEMBERED_REQUESTS, Reading, SEQUENCES, SetSummary, Store,
    StoreError, StoredManager, Writing,
};
use crate::context::change::{Change, Settings, Slot};

/// Number of requests after which the remembered ones are thinned again.
const REQUEST_SWEEP: i64 = 256;

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

/// Facts about a manager that are cached between requests.
#[derive(Clone, Copy)]
struct Known {
    id: i64,
    /// Number of the newest change in its journal; 0 when the journal is empty.
    last_change: u64,
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
        self.db.prepare_cached(sql)?.execute([])?;
        Ok(())
    }

    fn known(&mut self, name: &str) -> Result<Option<Known>, StoreError> {
        if let Some(known) = self.managers.get(name) {
            return Ok(Some(*known));
        }
        let mut query = self.db.prepare_cached("SELECT id FROM manager WHERE name = ?1")?;
        let Some(id) = query.query_row([name], |row| row.get(0)).optional()? else {
            return Ok(None);
        };
        let known = Known { id, last_change: journal::last_number(&self.db, id)? };
        self.managers.insert(name.to_owned(), known);
        Ok(Some(known))
    }

    fn known_or_new(&mut self, name: &str) -> Result<Known, StoreError> {
        if let Some(known) = self.known(name)? {
            return Ok(known);
        }
        self.db.prepare_cached("INSERT INTO manager (name) VALUES (?1)")?.execute([name])?;
        Ok(Known { id: self.db.last_insert_rowid(), last_change: 0 })
    }
}

impl Store for SqliteStore {
    fn read(&mut self) -> &mut dyn Reading {
        self
    }

    fn change(&mut self) -> Result<&mut dyn Writing, StoreError> {
        Ok(self)
    }

    fn note(&mut self) -> Result<Option<&mut dyn Writing>, StoreError> {
        Ok(Some(self))
    }

    fn counters(&mut self) -> Result<Counters, StoreError> {
        let sql = "SELECT next_item, next_version, last_timestamp, burst FROM counter";
        Ok(self.db.query_row(sql, [], |row| {
            Ok(Counters {
                next_item: row.get(0)?,
                next_version: row.get(1)?,
                last_timestamp: row.get(2)?,
                burst: row.get(3)?,
            })
        })?)
    }

    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError> {
        let Some(Known { id, .. }) = self.known(manager)? else { return Ok(None) };
        let mut query = self.db.prepare_cached("SELECT max_items FROM manager WHERE id = ?1")?;
        let max_items: Option<usize> = query.query_row([id], |row| row.get(0))?;
        let mut query = self.db.prepare_cached(&format!(
            "SELECT {ITEM_COLUMNS}, slot.rank, slot.pinned, version
             FROM slot JOIN version USING (version, item) WHERE slot.manager = ?1 ORDER BY slot.rank"
        ))?;
        let slots = query.query_and_then([id], slot_of)?.collect::<Result<_, _>>()?;
        let settings = max_items.map(|max_items| Settings { max_items });
        Ok(Some(StoredManager { settings, slots }))
    }

    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.writing()?;
        let Known { id, last_change } = self.known_or_new(manager)?;
        journal::store_arrivals(&self.db, change)?;
        journal::set_slots(&self.db, id, change)?;
        journal::append(&self.db, id, last_change + 1, change)?;
        self.managers.insert(manager.to_owned(), Known { id, last_change: last_change + 1 });
        Ok(())
    }

    fn last_change(&mut self, manager: &str) -> Result<Option<Change>, StoreError> {
        match self.known(manager)? {
            Some(Known { id, last_change }) => journal::read(&self.db, id, last_change),
            None => Ok(None),
        }
    }

    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError> {
        self.writing()?;
        let Known { id, last_change } = self.known_or_new(manager)?;
        journal::set_slots(&self.db, id, inverse)?;
        journal::remove(&self.db, id, last_change)?;
        journal::forget_superseded(&self.db, journal::superseded(inverse))?;
        self.managers.remove(manager);
        Ok(())
    }

    fn managers(&mut self) -> Result<Vec<ManagerSummary>, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT manager.name, manager.max_items, count(version.version),
                    coalesce(sum(slot.pinned), 0), coalesce(sum(version.tokens), 0),
                    coalesce(sum(octet_length(version.content)), 0), max(version.timestamp)
             FROM manager LEFT JOIN slot ON slot.manager = manager.id
                          LEFT JOIN version USING (version)
             GROUP BY manager.id ORDER BY manager.name",
        )?;
        let rows = query.query_map([], |row| {
            Ok(ManagerSummary {
                name: row.get(0)?,
                max_items: row.get(1)?,
                count: row.get(2)?,
                pinned: row.get(3)?,
                tokens: row.get(4)?,
                bytes: row.get(5)?,
                newest: row.get(6)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn holder(&mut self, item: u64) -> Result<Option<String>, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT manager.name FROM slot JOIN manager ON manager.id = slot.manager
             WHERE slot.item = ?1",
        )?;
        Ok(query.query_row([item], |row| row.get(0)).optional()?)
    }

    fn write_set(&mut self, created: i64, slots: &[Slot]) -> Result<u64, StoreError> {
        self.writing()?;
        sets::write(&self.db, created, slots)
    }

    fn set_named(&mut self, name: &str) -> Result<Option<u64>, StoreError> {
        sets::named(&self.db, name)
    }

    fn read_set(&mut self, set: u64) -> Result<Vec<Slot>, StoreError> {
        sets::read(&self.db, set)
    }

    fn sets(&mut self) -> Result<Vec<SetSummary>, StoreError> {
        sets::list(&self.db)
    }

    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        let mut query = self.db.prepare_cached("SELECT outcome FROM request WHERE key = ?1")?;
        Ok(query.query_row([key], |row| row.get(0)).optional()?)
    }

    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError> {
        self.writing()?;
        if self.next_request % REQUEST_SWEEP == 0 {
            let oldest = self.next_request - REMEMBERED_REQUESTS;
            self.db.prepare_cached("DELETE FROM request WHERE seq < ?1")?.execute([oldest])?;
        }
        self.db
            .prepare_cached("INSERT INTO request (key, seq, outcome) VALUES (?1, ?2, ?3)")?
            .execute(params![key, self.next_request, outcome])?;
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
        let Counters { next_item, next_version, last_timestamp, burst } = counters;
        self.db
            .prepare_cached(
                "UPDATE counter
                 SET next_item = ?1, next_version = ?2, last_timestamp = ?3, burst = ?4",
            )?
            .execute(params![next_item, next_version, last_timestamp, burst])?;
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
            tracing::error!("could not roll back: {error}");
        }
    }

    fn is_settled(&self) -> bool {
        self.keeper.is_none() || !self.unsettled
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        self.checkpoint()
    }

    fn must_settle(&mut self) -> bool {
        self.is_long()
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
            (extent.epoch, extent.digest) = (keeper.epoch(), keeper.digest());
            let salt = keeper.salt();
            extent.salt = salt.map_err(|error| StoreError::Beside { cause: error.to_string() })?;
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
        match &self.keeper {
            Some(keeper) if keeper.is_removed() => {
                Err(StoreError::Removed { path: keeper.database_path() })
            }
            _ => Ok(()),
        }
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, StoreError> {
        self.checkpoint()?;
        Ok(self.keeper.as_ref().and_then(Keeper::snapshot))
    }
}

/// Converts a number of rows to an SQL `LIMIT`.
fn limit(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
