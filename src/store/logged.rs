//! A store that answers after one append to a log, and moves what is logged to another store when
//! there is time.
//!
//! Common writes (changes of managers, answers to keyed requests) are only logged. Whatever needs
//! the other store's view (undo, sets, listings) first moves everything there, and the rest of
//! that burst goes there directly. A burst's number, stored with it, keeps a burst that is in both
//! after a crash from being applied twice.

mod memory;
mod session;

use std::mem;
use std::path::{Path, PathBuf};

use super::log::{Burst, Entry, Found, Log};
use super::{Counters, ManagerSummary, SetSummary, Store, StoreError, StoredManager};
use crate::context::change::{Change, Slot};

/// How many entries are moved at once, at the latest when there are so many.
const MOVED_AT_ONCE: usize = 256;
/// How long the log may become, in bytes, before its entries are moved.
const LONGEST_LOG: u64 = 8 << 20;

/// A [`Store`] in front of another.
pub struct LoggedStore<S> {
    inner: S,
    /// `None` when nothing has to survive the process.
    log: Option<Log>,
    /// Logged, and not in `inner` yet.
    pending: Vec<Entry>,
    /// Of requests that ended in this burst.
    staged: Vec<Entry>,
    /// Of the request that is running.
    request: Vec<Entry>,
    /// Whether this burst goes to `inner` directly.
    direct: bool,
    /// As of the last burst that was kept.
    counters: Counters,
}

/// A store whose log was opened, and what the user should know about it.
pub struct OpenedLog<S> {
    /// The store.
    pub store: LoggedStore<S>,
    /// Set when the log was damaged: where a copy of it is.
    pub damaged: Option<PathBuf>,
}

impl<S: Store> LoggedStore<S> {
    /// Puts a log at `path` in front of `inner` and moves what it holds there.
    ///
    /// # Errors
    /// When the log cannot be read, or `inner` refuses what it holds.
    pub fn open(inner: S, path: &Path) -> Result<OpenedLog<S>, StoreError> {
        let Found { log, bursts, damaged } = Log::open(path)?;
        let mut store = Self::new(inner, Some(log))?;
        let applied = store.counters.burst;
        for Burst { counters, entries } in bursts {
            if counters.burst > applied {
                store.pending.extend(entries);
                store.counters = counters;
            }
        }
        store.settle()?;
        store.clear_log()?;
        Ok(OpenedLog { store, damaged })
    }

    /// The same without a file: nothing survives the process.
    ///
    /// # Errors
    /// When `inner` cannot be read.
    pub fn in_memory(inner: S) -> Result<Self, StoreError> {
        Self::new(inner, None)
    }

    fn new(mut inner: S, log: Option<Log>) -> Result<Self, StoreError> {
        let counters = inner.counters()?;
        Ok(Self {
            inner,
            log,
            pending: Vec::new(),
            staged: Vec::new(),
            request: Vec::new(),
            direct: false,
            counters,
        })
    }

    /// Sends the rest of this burst to `inner`, after everything that came before.
    fn go_direct(&mut self) -> Result<&mut S, StoreError> {
        if !self.direct {
            let mut entries = self.pending.iter().chain(&self.staged);
            let moved = entries.try_for_each(|entry| apply(&mut self.inner, entry));
            if let Err(error) = moved.and_then(|()| self.inner.keep()) {
                // What was acknowledged is still in the log, and must not be taken for moved.
                self.inner.roll_back();
                return Err(error);
            }
            self.direct = true;
            for entry in mem::take(&mut self.request) {
                apply(&mut self.inner, &entry)?;
            }
        }
        Ok(&mut self.inner)
    }

    fn unmoved(&self) -> impl Iterator<Item = &Entry> {
        self.pending.iter().chain(&self.staged).chain(&self.request)
    }

    fn clear_log(&mut self) -> Result<(), StoreError> {
        match &mut self.log {
            Some(log) if log.bytes() > 0 => log.clear(),
            _ => Ok(()),
        }
    }

    fn commit_direct(&mut self, counters: Counters) -> Result<(), StoreError> {
        self.inner.commit(counters)?;
        self.counters = counters;
        self.pending.clear();
        self.staged.clear();
        self.direct = false;
        // What is in both is known by its number, so a log that stays long is only long.
        if let Err(error) = self.clear_log() {
            tracing::warn!("{error}");
        }
        Ok(())
    }

    fn commit_logged(&mut self, counters: Counters) -> Result<(), StoreError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        if let Some(log) = &mut self.log {
            log.append(counters, &self.staged)?;
        }
        self.counters = counters;
        self.pending.append(&mut self.staged);
        let long = self.log.as_ref().is_some_and(|log| log.bytes() > LONGEST_LOG);
        if (long || self.pending.len() >= MOVED_AT_ONCE)
            && let Err(error) = self.settle()
        {
            tracing::error!("what is logged could not be moved yet: {error}");
        }
        Ok(())
    }
}

impl<S: Store> Store for LoggedStore<S> {
    fn counters(&mut self) -> Result<Counters, StoreError> {
        Ok(self.counters)
    }

    fn load(&mut self, manager: &str) -> Result<Option<StoredManager>, StoreError> {
        let touches = |entry: &Entry| matches!(entry, Entry::Record(name, _) if name == manager);
        match !self.direct && self.unmoved().any(touches) {
            true => self.go_direct()?.load(manager),
            false => self.inner.load(manager),
        }
    }

    fn record(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        if self.direct || change.set.is_some() {
            return self.go_direct()?.record(manager, change);
        }
        self.request.push(Entry::Record(manager.to_owned(), change.clone()));
        Ok(())
    }

    fn last_change(&mut self, manager: &str) -> Result<Option<Change>, StoreError> {
        self.go_direct()?.last_change(manager)
    }

    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError> {
        self.go_direct()?.take_back(manager, inverse)
    }

    fn managers(&mut self) -> Result<Vec<ManagerSummary>, StoreError> {
        self.go_direct()?.managers()
    }

    fn holder(&mut self, item: u64) -> Result<Option<String>, StoreError> {
        self.go_direct()?.holder(item)
    }

    fn write_set(&mut self, created: i64, slots: &[Slot]) -> Result<u64, StoreError> {
        self.go_direct()?.write_set(created, slots)
    }

    fn set_named(&mut self, name: &str) -> Result<Option<u64>, StoreError> {
        self.inner.set_named(name)
    }

    fn read_set(&mut self, set: u64) -> Result<Vec<Slot>, StoreError> {
        self.inner.read_set(set)
    }

    fn sets(&mut self) -> Result<Vec<SetSummary>, StoreError> {
        self.inner.sets()
    }

    fn recall(&mut self, key: &str) -> Result<Option<String>, StoreError> {
        if !self.direct {
            let answered = self.unmoved().find_map(|entry| match entry {
                Entry::Remember(known, outcome) if known == key => Some(outcome.clone()),
                _ => None,
            });
            if answered.is_some() {
                return Ok(answered);
            }
        }
        self.inner.recall(key)
    }

    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError> {
        if self.direct {
            return self.inner.remember(key, outcome);
        }
        self.request.push(Entry::Remember(key.to_owned(), outcome.to_owned()));
        Ok(())
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.staged.append(&mut self.request);
        if self.direct { self.inner.keep() } else { Ok(()) }
    }

    fn abandon(&mut self) -> Result<(), StoreError> {
        self.request.clear();
        if self.direct { self.inner.abandon() } else { Ok(()) }
    }

    fn commit(&mut self, counters: Counters) -> Result<(), StoreError> {
        let counters = Counters { burst: self.counters.burst + 1, ..counters };
        if self.direct { self.commit_direct(counters) } else { self.commit_logged(counters) }
    }

    fn roll_back(&mut self) {
        self.request.clear();
        self.staged.clear();
        if self.direct {
            self.inner.roll_back();
            self.direct = false;
        }
    }

    fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        if self.pending.is_empty() || self.direct {
            return Ok(());
        }
        let moved = self.pending.iter().try_for_each(|entry| apply(&mut self.inner, entry));
        let moved = moved.and_then(|()| self.inner.keep());
        if let Err(error) = moved.and_then(|()| self.inner.commit(self.counters)) {
            self.inner.roll_back();
            return Err(error);
        }
        self.pending.clear();
        self.clear_log()
    }
}

fn apply(store: &mut impl Store, entry: &Entry) -> Result<(), StoreError> {
    match entry {
        Entry::Record(manager, change) => store.record(manager, change),
        Entry::Remember(key, outcome) => store.remember(key, outcome),
    }
}

#[cfg(test)]
mod tests;
