//! Applies a log to the store behind it, and finds missing bursts by their numbers. A burst
//! consists of the requests of one commit.

use super::super::folder::Files;
use super::super::folder::marks::{Mark, Marks};
use super::super::folder::{Aside, Finding};
use super::super::log::{self, Burst, Entry, Log};
use super::super::{Counters, Extent, Store, StoreError};
use super::{Beside, LoggedStore, Reopen, apply};

/// Result of replaying a log.
#[derive(Default)]
struct Replayed {
    /// First and last number of each run of missing bursts.
    missing: Vec<(u64, u64)>,
    /// Number of readable bursts that could not be applied to the store.
    refused: u64,
    /// Number of bursts that repeat an earlier burst.
    doubled: u64,
    unreadable: usize,
}

impl<S: Store> LoggedStore<S> {
    /// Puts the log of a folder in front of `inner` and applies the log's bursts to `inner`. Raises
    /// the counters to at least those in `mark`, so that ids that were given are never reused.
    pub(in super::super) fn recover(
        inner: S,
        marks: Marks,
        mark: Option<&Mark>,
        aside: &mut Aside<'_>,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, StoreError> {
        let files = aside.files();
        let log = Log::open(&files.log())?;
        let beside = Beside { log, marks, extent: Extent::default() };
        let mut store = Self::new(inner, Some(beside))?;
        let replayed = store.replay(files, mark)?;
        if replayed.is_loss()
            && let Err(error) = aside.keep()
        {
            tracing::error!(
                "the files could not be copied before the recovery changed them: {error}"
            );
        }
        replayed.tell(findings);
        store.inner.keep()?;
        store.inner.commit(store.counters)?;
        store.note_extent()?;
        store.settle()?;
        Ok(store)
    }

    /// Applies the log's bursts to `inner`, a store in memory, and leaves the files as they are.
    /// With a `refusal`, changes fail with its reason until its function can reopen the store.
    pub(in super::super) fn reading(
        inner: S,
        files: &Files,
        mark: Option<&Mark>,
        refusal: Option<(String, Reopen<S>)>,
        findings: &mut Vec<Finding>,
    ) -> Result<Self, StoreError> {
        let mut store = Self::new(inner, None)?;
        store.replay(files, mark)?.tell(findings);
        store.inner.keep()?;
        store.inner.commit(store.counters)?;
        store.refusal = refusal;
        Ok(store)
    }

    fn replay(&mut self, files: &Files, mark: Option<&Mark>) -> Result<Replayed, StoreError> {
        let found = log::read(&files.log())?;
        let mut replayed = Replayed { unreadable: found.unreadable, ..Replayed::default() };
        let (mut reached, mut previous) = (self.counters.burst, 0);
        for Burst { counters, entries } in found.bursts {
            replayed.doubled += u64::from(counters.burst <= previous);
            previous = previous.max(counters.burst);
            if counters.burst <= reached {
                continue;
            }
            if counters.burst > reached + 1 {
                replayed.missing.push((reached + 1, counters.burst - 1));
            }
            reached = counters.burst;
            replayed.refused += u64::from(!self.apply_burst(&entries)?);
            self.raise_counters(counters);
        }
        if let Some(mark) = mark {
            if mark.counters.burst > reached {
                replayed.missing.push((reached + 1, mark.counters.burst));
            }
            self.raise_counters(mark.counters);
            self.inner.raise(&mark.extent)?;
        }
        Ok(replayed)
    }

    /// Applies a burst as a whole. Returns `false`, with nothing applied, when one of its entries
    /// cannot be applied.
    fn apply_burst(&mut self, entries: &[Entry]) -> Result<bool, StoreError> {
        self.inner.keep()?;
        match entries.iter().try_for_each(|entry| apply(&mut self.inner, entry)) {
            Ok(()) => self.inner.keep().map(|()| true),
            Err(error) => {
                tracing::warn!("a logged change cannot be applied: {error}");
                self.inner.abandon().map(|()| false)
            }
        }
    }

    fn raise_counters(&mut self, to: Counters) {
        let now = &mut self.counters;
        now.next_item = now.next_item.max(to.next_item);
        now.next_version = now.next_version.max(to.next_version);
        now.last_timestamp = now.last_timestamp.max(to.last_timestamp);
        now.burst = now.burst.max(to.burst);
    }
}

impl Replayed {
    fn is_loss(&self) -> bool {
        !self.missing.is_empty() || self.refused > 0
    }

    fn tell(&self, findings: &mut Vec<Finding>) {
        if !self.missing.is_empty() {
            let count: u64 = self.missing.iter().map(|(first, last)| last - first + 1).sum();
            let runs: Vec<String> = self.missing.iter().map(|run| run_name(*run)).collect();
            let (writes, number, are) = match count {
                1 => ("write", "number", "is"),
                _ => ("writes", "numbers", "are"),
            };
            findings.push(Finding::lost(format!(
                "{count} {writes} ({number} {}) {are} lost: the newest changes may be missing",
                runs.join(", ")
            )));
        }
        if self.refused > 0 {
            findings.push(Finding::lost(format!(
                "logged writes that do not fit the rest of the state and were left out: {}",
                self.refused
            )));
        }
        if self.missing.is_empty() && self.unreadable > 0 {
            findings.push(Finding::repaired(format!(
                "lines of the log that could not be read: {}; no write is missing",
                self.unreadable
            )));
        }
        if self.doubled > 0 {
            findings.push(Finding::repaired(format!(
                "writes that were in the log twice: {}; each was applied once",
                self.doubled
            )));
        }
    }
}

fn run_name((first, last): (u64, u64)) -> String {
    if first == last { first.to_string() } else { format!("{first} to {last}") }
}
