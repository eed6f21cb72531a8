//! A store that acknowledges a write after one append to a log, and moves logged writes to an inner
//! store later.
//!
//! Common writes (changes to managers, outcomes of requests with keys) are only logged at first. An
//! operation that needs the inner store (undo, sets, sessions, listings) first moves all logged
//! writes there; the later writes of the same burst then go there directly. A burst consists of the
//! requests of one commit. Bursts are numbered, so none is applied twice after a crash.

mod beside;
mod recover;

use std::mem;

use self::beside::Beside;
use super::folder::Snapshot;
use super::log::Entry;
use super::{Counters, Extent, Reading, Store, StoreError, StoredManager, Told, Way, Writing};
use crate::context::change::Change;

/// Number of pending entries at which all of them are moved to the inner store, right after the
/// burst is answered. Moving so few entries takes less time than a client needs to read its answer
/// and call again.
const MOVED_AT_ONCE: usize = 64;
/// Length of the log, in bytes, above which the store is settled, which empties the log.
const LONGEST_LOG: u64 = 8 << 20;

/// Function that reopens a read-only store for writing.
pub(super) type Reopen<S> = Box<dyn FnMut() -> Result<LoggedStore<S>, StoreError> + Send>;

/// A [`Store`] that puts a log in front of an inner store.
pub(crate) struct LoggedStore<S> {
    inner: S,
    /// Log and marks; `None` when the store writes no files.
    files: Option<Beside>,
    /// Entries that are logged but not yet in `inner`.
    pending: Vec<Entry>,
    /// Entries of the finished requests of this burst.
    staged: Vec<Entry>,
    /// Entries of the running request.
    request: Vec<Entry>,
    /// Set when this burst goes straight to `inner`.
    direct: bool,
    /// Set when the running request changes something.
    changing: bool,
    /// Set when a finished request of this burst changed something.
    changed: bool,
    /// Counters as of the last committed burst.
    counters: Counters,
    /// Reason why the store is read-only, and a way to reopen it for writing.
    refusal: Option<(String, Reopen<S>)>,
    /// Reason why the last commit failed, until one succeeds.
    trouble: Option<String>,
}

impl<S: Store> LoggedStore<S> {
    /// Wraps `inner` without files: pending entries do not outlive the process.
    ///
    /// # Errors
    /// Fails when `inner` cannot be read.
    pub(crate) fn in_memory(inner: S) -> Result<Self, StoreError> {
        Self::new(inner, None)
    }

    fn new(mut inner: S, files: Option<Beside>) -> Result<Self, StoreError> {
        let counters = inner.counters()?;
        Ok(Self {
            inner,
            files,
            pending: Vec::new(),
            staged: Vec::new(),
            request: Vec::new(),
            direct: false,
            changing: false,
            changed: false,
            counters,
            refusal: None,
            trouble: None,
        })
    }

    /// Begins a change. A read-only store must first be reopened for writing.
    fn begin_change(&mut self) -> Result<(), StoreError> {
        if let Some((why, reopen)) = &mut self.refusal {
            match reopen() {
                Ok(store) => {
                    tracing::warn!("the state can be written again");
                    *self = store;
                }
                Err(StoreError::ReadOnly(now)) => {
                    why.clone_from(&now);
                    return Err(StoreError::ReadOnly(now));
                }
                Err(error) => return Err(StoreError::ReadOnly(error.to_string())),
            }
        }
        self.changing = true;
        Ok(())
    }

    /// Begins a change and returns the inner store for it.
    fn changing(&mut self) -> Result<&mut S, StoreError> {
        self.begin_change()?;
        self.go_direct()
    }

    /// Moves all entries to `inner`, and returns `inner` for the rest of this burst.
    fn go_direct(&mut self) -> Result<&mut S, StoreError> {
        if !self.direct {
            let mut entries = self.pending.iter().chain(&self.staged);
            let moved = entries.try_for_each(|entry| apply(&mut self.inner, entry));
            if let Err(error) = moved.and_then(|()| self.inner.keep()) {
                // Acknowledged entries are still in the log, so they stay pending.
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

    fn commit_direct(&mut self, counters: Counters) -> Result<(), StoreError> {
        let changed = mem::take(&mut self.changed);
        if changed {
            self.refuse_removed()?;
        }
        match self.inner.commit(counters) {
            // A burst that only reads succeeds even when nothing can be written.
            Err(error) if !changed => {
                tracing::debug!("logged writes could not be moved to the database yet: {error}");
                self.roll_back();
                return Ok(());
            }
            Err(error) => return Err(error),
            Ok(false) => {
                self.direct = false;
                return Ok(());
            }
            Ok(true) => self.counters = counters,
        }
        self.pending.clear();
        self.staged.clear();
        self.direct = false;
        self.note_extent()
    }

    fn commit_logged(&mut self, counters: Counters) -> Result<(), StoreError> {
        self.changed = false;
        if self.staged.is_empty() {
            return Ok(());
        }
        if let Some(files) = &mut self.files {
            files.log.append(counters, &self.staged)?;
            files.note(counters, false);
        }
        self.counters = counters;
        self.pending.append(&mut self.staged);
        Ok(())
    }

    fn is_long(&mut self) -> bool {
        let long = self.files.as_ref().is_some_and(|files| files.log.bytes() > LONGEST_LOG);
        long || self.inner.is_behind()
    }

    /// Moves pending entries to the inner store. The log keeps them until that store is settled.
    fn move_pending(&mut self) -> Result<(), StoreError> {
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
        self.note_extent()
    }

    /// Records the extent of the inner store in both marks.
    fn note_extent(&mut self) -> Result<(), StoreError> {
        if let Some(files) = &mut self.files {
            files.extent = self.inner.extent()?;
            files.note(self.counters, true);
        }
        Ok(())
    }
}

impl<S: Store> Store for LoggedStore<S> {
    fn read(&mut self) -> Reading<'_> {
        self.inner.read()
    }

    fn read_all(&mut self) -> Result<Reading<'_>, StoreError> {
        self.go_direct()?.read_all()
    }

    fn change(&mut self) -> Result<Writing<'_>, StoreError> {
        self.changing()?.change()
    }

    fn note(&mut self) -> Result<Option<Writing<'_>>, StoreError> {
        match self.refusal.is_some() || self.trouble.is_some() {
            true => Ok(None),
            false => self.go_direct()?.note(),
        }
    }

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
        self.begin_change()?;
        // The log cannot express changes to sets, nor moves of items to another manager.
        if self.direct || change.set.is_some() || change.partner.is_some() {
            return self.go_direct()?.record(manager, change);
        }
        self.request.push(Entry::Record(manager.to_owned(), change.clone()));
        Ok(())
    }

    fn rename(&mut self, manager: &str, to: &str) -> Result<(), StoreError> {
        self.changing()?.rename(manager, to)
    }

    fn last_change(&mut self, manager: &str, way: Way) -> Result<Option<Change>, StoreError> {
        self.go_direct()?.last_change(manager, way)
    }

    fn take_back(&mut self, manager: &str, inverse: &Change) -> Result<(), StoreError> {
        self.changing()?.take_back(manager, inverse)
    }

    fn redo(&mut self, manager: &str, change: &Change) -> Result<(), StoreError> {
        self.changing()?.redo(manager, change)
    }

    fn managers_of_step(&mut self, step: u64, way: Way) -> Result<Vec<String>, StoreError> {
        self.go_direct()?.managers_of_step(step, way)
    }

    fn changes(&mut self, manager: &str, way: Way, most: u64) -> Result<Vec<Told>, StoreError> {
        self.go_direct()?.changes(manager, way, most)
    }

    fn step_mark(&mut self, manager: &str) -> Result<u64, StoreError> {
        self.go_direct()?.step_mark(manager)
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

    fn requests(&mut self) -> Result<Vec<String>, StoreError> {
        let mut keys = self.inner.requests()?;
        keys.extend(self.unmoved().filter_map(|entry| match entry {
            Entry::Remember(key, _) => Some(key.clone()),
            _ => None,
        }));
        Ok(keys)
    }

    fn remember(&mut self, key: &str, outcome: &str) -> Result<(), StoreError> {
        self.begin_change()?;
        if self.direct {
            return self.inner.remember(key, outcome);
        }
        self.request.push(Entry::Remember(key.to_owned(), outcome.to_owned()));
        Ok(())
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        self.staged.append(&mut self.request);
        self.changed |= mem::take(&mut self.changing);
        if self.direct { self.inner.keep() } else { Ok(()) }
    }

    fn abandon(&mut self) -> Result<(), StoreError> {
        self.request.clear();
        self.changing = false;
        if self.direct { self.inner.abandon() } else { Ok(()) }
    }

    fn commit(&mut self, counters: Counters) -> Result<bool, StoreError> {
        let before = self.counters.burst;
        let counters = Counters { burst: before + 1, ..counters };
        let kept =
            if self.direct { self.commit_direct(counters) } else { self.commit_logged(counters) };
        match &kept {
            Err(error) => {
                self.changed = true;
                self.trouble = Some(error.to_string());
            }
            Ok(()) if self.counters.burst > before => self.trouble = None,
            Ok(()) => {}
        }
        kept.map(|()| self.counters.burst > before)
    }

    fn roll_back(&mut self) {
        self.request.clear();
        self.staged.clear();
        (self.changing, self.changed) = (false, false);
        if self.direct {
            self.inner.roll_back();
            self.direct = false;
        }
    }

    fn is_behind(&mut self) -> bool {
        self.pending.len() >= MOVED_AT_ONCE || self.is_long()
    }

    fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.is_long() { self.settle() } else { self.move_pending() }
    }

    fn is_settled(&self) -> bool {
        self.pending.is_empty() && self.inner.is_settled()
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        if self.direct {
            return Ok(());
        }
        self.move_pending()?;
        self.inner.settle()?;
        let Some(files) = &mut self.files else { return Ok(()) };
        let Extent { epoch, digest, .. } = self.inner.extent()?;
        if epoch != files.extent.epoch {
            // The checkpoint emptied the write-ahead log; only a log with the next salt is valid.
            let salt = files.extent.salt.wrapping_add(1);
            files.extent = Extent { epoch, digest, salt, ..files.extent };
            files.note(self.counters, true);
        }
        // The number of a burst shows whether it was applied, so keeping the log is harmless.
        match self.inner.is_settled() && files.log.bytes() > 0 {
            true => files.log.clear(),
            false => Ok(()),
        }
    }

    fn refuse_removed(&self) -> Result<(), StoreError> {
        self.inner.refuse_removed()?;
        self.files.as_ref().map_or(Ok(()), |files| files.log.refuse_removed())
    }

    fn has_changes(&self) -> bool {
        self.changing || self.changed
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.as_ref().map(|(why, _)| why.clone()).or_else(|| self.trouble.clone())
    }

    fn snapshot(&mut self) -> Result<Option<Snapshot>, StoreError> {
        self.settle()?;
        self.inner.snapshot()
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
