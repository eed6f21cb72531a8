//! The store in an SQLite database: a file in the state folder, or memory for an ephemeral server.
//!
//! SQLite runs in WAL mode with `synchronous = NORMAL`: a commit writes to SQLite's write-ahead log
//! without waiting for the disk. Commits survive the end of the process, however it ends; a power
//! failure may lose the last moments but does not damage the database.

mod commit;
mod hashes;
mod journal;
mod open;
mod place;

use std::collections::HashMap;
use std::mem;

use rusqlite::{Connection, params};

use self::hashes::Damage;
pub use self::hashes::schema_number;
pub use self::open::check_file;
pub(super) use self::open::{Image, copy_file, refuse_other, set_inert};
use self::place::StoreFiles;
use super::folder::Finding;
use super::tables::{ITEM_COLUMNS, Statements, columns, slot_of};
use super::{
    Counters, REMEMBERED_REQUESTS, Store, StoreError, StoredManager, TableReading, ToldChange, Way,
    Writing,
};
use crate::context::change::{Change, ContextSettings};

/// Number of remembered requests between two removals of the oldest ones.
const REQUEST_SWEEP: i64 = 256;

/// A store on a state folder, and the problems found there.
pub struct OpenedStore {
    /// The store. While the folder cannot be written, the store is read-only, and each change first
    /// tries to reopen it for writing.
    pub store: SqliteStore,
    /// Problems to tell the user about.
    pub findings: Vec<Finding>,
}

/// Function that opens the folder of a store again. If it cannot be written, the state is opened
/// for reading when the argument is true.
pub(super) type Reopen = Box<dyn FnMut(bool) -> Result<OpenedStore, StoreError> + Send>;

/// A [`Store`] in SQLite.
pub struct SqliteStore {
    db: Connection,
    damage: Damage,
    /// `None` for a store in memory.
    place: Option<StoreFiles>,
    /// Set when the write-ahead log may have pages that the database lacks, or when a store in
    /// memory may have prepared statements.
    is_unsettled: bool,
    reopen: Option<Reopen>,
    /// Reason why the store is read-only.
    refusal: Option<String>,
    /// Reason why the last commit failed, until one succeeds.
    trouble: Option<String>,
    managers: HashMap<String, Tracked>,
    next_request: i64,
    /// Counters as of the last commit.
    counters: Counters,
    transaction: bool,
    /// Set when the transaction has writes of finished requests.
    kept: bool,
    /// Set when the running request has its own savepoint.
    savepoint: bool,
    /// Set when SQLite rolled back the transaction on its own, for example because the disk is
    /// full. The writes of earlier requests are then gone too, so the commit must fail.
    lost: bool,
    /// Set when the running request changes something.
    is_changing: bool,
    /// Number of finished requests since the last commit that changed something.
    changed: u64,
}

columns!(Counters { next_item, next_version, last_timestamp, changes });

/// Facts about a manager that are cached between requests.
#[derive(Clone, Copy)]
struct Tracked {
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
    /// Makes the store read-only for this reason, until the folder can be written again.
    pub(super) fn refuse(&mut self, why: String) {
        self.refusal = Some(why);
    }

    /// Sets the function that opens the folder of the store again.
    pub(super) fn reopen_by(&mut self, reopen: Reopen) {
        self.reopen = Some(reopen);
    }

    fn known(&mut self, name: &str) -> Result<Option<Tracked>, StoreError> {
        if let Some(known) = self.managers.get(name) {
            return Ok(Some(*known));
        }
        let id = self.db.value("SELECT id FROM manager WHERE name = ?1 AND sound", [name])?;
        let Some(id) = id else { return Ok(None) };
        let last_change = journal::last_number(&self.db, id)?;
        let step = journal::step_of(&self.db, id, last_change)?;
        let known =
            Tracked { id, last_change, step, has_undone: journal::has_undone(&self.db, id)? };
        self.managers.insert(name.to_owned(), known);
        Ok(Some(known))
    }

    fn known_or_new(&mut self, name: &str) -> Result<Tracked, StoreError> {
        if let Some(known) = self.known(name)? {
            return Ok(known);
        }
        self.db.change("INSERT INTO manager (name) VALUES (?1)", [name])?;
        Ok(Tracked { id: self.db.last_insert_rowid(), last_change: 0, step: 0, has_undone: false })
    }
}

impl Store for SqliteStore {
    fn read(&mut self) -> TableReading<'_> {
        TableReading { db: &self.db }
    }

    fn change(&mut self) -> Result<Writing<'_>, StoreError> {
        self.changing()?;
        Ok(Writing(TableReading { db: &self.db }))
    }

    fn note(&mut self) -> Result<Option<Writing<'_>>, StoreError> {
        if self.refusal.is_some() || self.trouble.is_some() {
            return Ok(None);
        }
        self.writing()?;
        Ok(Some(Writing(TableReading { db: &self.db })))
    }

    fn counters(&mut self) -> Result<Counters, StoreError> {
        Ok(self.counters)
    }

    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError> {
        let Some(Tracked { id, .. }) = self.known(manager)? else { return Ok(None) };
        let sql = "SELECT max_items, version FROM manager WHERE id = ?1 AND sound";
        let row = |row: &rusqlite::Row<'_>| <(Option<usize>, u64)>::try_from(row);
        let (max_items, version) = self.db.row(sql, [id], row)?.unwrap_or_default();
        let sql = format!(
            "SELECT {ITEM_COLUMNS}, slot.rank, slot.pinned, version
             FROM slot JOIN version USING (version, item)
             WHERE slot.manager = ?1 AND slot.sound AND version.sound ORDER BY slot.rank"
        );
        let slots = self.db.rows(&sql, [id], slot_of)?;
        let settings = max_items.map(|max_items| ContextSettings { max_items });
        Ok(Some(StoredManager { settings, slots, version }))
    }

    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.changing()?;
        let Tracked { id, mut last_change, step, mut has_undone } = self.known_or_new(manager)?;
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
        self.managers.insert(manager.to_owned(), Tracked { id, last_change, step, has_undone });
        Ok(())
    }

    fn rename(&mut self, manager: &str, to: &str) -> Result<(), StoreError> {
        self.changing()?;
        self.managers.remove(manager);
        journal::rename_partner(&self.db, manager, to)?;
        let sql = "UPDATE manager SET name = ?2 WHERE name = ?1";
        self.db.change(sql, params![manager, to]).map(drop)
    }

    fn last_change(&mut self, manager: &str, way: Way) -> Result<Option<Change>, StoreError> {
        match self.known(manager)? {
            Some(Tracked { id, last_change, .. }) => journal::last(&self.db, id, last_change, way),
            None => Ok(None),
        }
    }

    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError> {
        self.changing()?;
        let Tracked { id, last_change, .. } = self.known_or_new(manager)?;
        journal::set_slots(&self.db, id, inverse)?;
        journal::set_aside(&self.db, id, last_change)?;
        let last_change = last_change.saturating_sub(1);
        let step = journal::step_of(&self.db, id, last_change)?;
        let known = Tracked { id, last_change, step, has_undone: true };
        self.managers.insert(manager.to_owned(), known);
        Ok(())
    }

    fn redo(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.changing()?;
        let Tracked { id, mut last_change, mut step, .. } = self.known_or_new(manager)?;
        if !change.is_empty() {
            journal::set_slots(&self.db, id, change)?;
            last_change += 1;
            step = change.step;
            journal::append(&self.db, id, last_change, change)?;
        }
        journal::drop_undone(&self.db, id)?;
        let has_undone = journal::has_undone(&self.db, id)?;
        self.managers.insert(manager.to_owned(), Tracked { id, last_change, step, has_undone });
        Ok(())
    }

    fn changes(
        &mut self,
        manager: &str,
        way: Way,
        most: u64,
    ) -> Result<Vec<ToldChange>, StoreError> {
        match self.known(manager)? {
            Some(Tracked { id, .. }) => journal::changes(&self.db, id, way, most),
            None => Ok(Vec::new()),
        }
    }

    fn managers_of_step(&mut self, step: u64, way: Way) -> Result<Vec<String>, StoreError> {
        journal::managers_of_step(&self.db, step, way)
    }

    fn step_mark(&mut self, manager: &str) -> Result<u64, StoreError> {
        match self.known(manager)? {
            Some(Tracked { id, .. }) => journal::step_mark(&self.db, id),
            None => Ok(0),
        }
    }

    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        self.db.value("SELECT outcome FROM request WHERE key = ?1 AND sound", [key])
    }

    fn requests(&mut self) -> Result<Vec<String>, StoreError> {
        self.db.rows("SELECT key FROM request", [], |row| row.get(0))
    }

    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError> {
        self.changing()?;
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
        self.changed += u64::from(mem::take(&mut self.is_changing));
        self.kept |= self.transaction;
        if self.savepoint {
            self.savepoint = false;
            self.run("RELEASE request")?;
        }
        Ok(())
    }

    fn abandon(&mut self) -> Result<(), StoreError> {
        self.is_changing = false;
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
        let changed = self.changed;
        let counters = Counters { changes: self.counters.changes + changed, ..counters };
        match self.commit_requests(counters) {
            // Requests that only read succeed even when nothing can be written.
            Err(error) if changed == 0 => {
                tracing::debug!("records that the state can do without were not stored: {error}");
                self.roll_back();
                Ok(false)
            }
            Err(error) => {
                self.trouble = Some(error.to_string());
                Err(error)
            }
            Ok(stored) => {
                if stored {
                    self.trouble = None;
                }
                self.changed = 0;
                Ok(stored)
            }
        }
    }

    fn roll_back(&mut self) {
        self.managers.clear();
        (self.is_changing, self.changed) = (false, 0);
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
        !self.is_unsettled
    }

    /// Makes a checkpoint: writes all pages to the database, and empties the write-ahead log. It is
    /// left for later while a backup reads the database. A store in memory forgets its prepared
    /// statements, since a program can have many such stores and use few of them.
    fn settle(&mut self) -> Result<(), StoreError> {
        if !self.is_unsettled || self.transaction {
            return Ok(());
        }
        self.is_unsettled = match self.place {
            Some(_) => {
                self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?
            }
            None => {
                self.db.flush_prepared_statement_cache();
                false
            }
        };
        Ok(())
    }

    fn damage(&self) -> Option<String> {
        hashes::damage_of(&self.damage)
    }

    fn renew(&mut self) -> Result<Vec<Finding>, StoreError> {
        if self.place.is_none() {
            return Ok(Vec::new());
        }
        self.roll_back();
        self.note_mark(true);
        let Some(mut reopen) = self.reopen.take() else { return Ok(Vec::new()) };
        // SQLite must have closed the files before they are replaced.
        *self = Self::in_memory()?;
        match reopen(true) {
            Ok(OpenedStore { store, findings }) => {
                *self = store;
                Ok(findings)
            }
            Err(error) => {
                (self.refusal, self.reopen) = (Some(error.to_string()), Some(reopen));
                Err(error)
            }
        }
    }

    fn has_changes(&self) -> bool {
        self.is_changing || self.changed > 0
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone().or_else(|| self.trouble.clone())
    }
}

#[cfg(test)]
mod tests;
