//! A hub: a PostgreSQL database, run by anybody, where people find what others' sessions learnt.
//!
//! The state of this machine stays what it is. A hub is told only of this machine's changes in
//! shared projects. The database decides who reads what.

mod link;
mod read;
mod rows;
mod shares;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{MutexGuard, Notify};

use crate::sync::SharedProject;

pub(crate) use self::link::{HubAddress, HubLink, within};
pub(crate) use self::read::Whole;
pub(crate) use self::shares::{HeldBack, Share, SharedPiece, Shares};

/// Role that stands for everybody who may use a hub.
pub(crate) const EVERYBODY: &str = "public";

/// Time in which no search asks a hub that failed.
const REST: Duration = Duration::from_secs(30);

/// A hub that the user configured.
pub struct Hub {
    pub(crate) address: HubAddress,
    folder: PathBuf,
    /// Held while the file with what is shared is read and written.
    lock: tokio::sync::Mutex<()>,
    /// Why the hub could not be used the last time, and when that was.
    problem: Mutex<Option<(Instant, String)>>,
    /// Notified when something may have changed that is shared.
    pub(crate) wanted: Notify,
}

/// The file with what is shared, which nobody else changes meanwhile.
pub(crate) struct LockedShares<'a> {
    pub shares: Shares,
    hub: &'a Hub,
    _lock: MutexGuard<'a, ()>,
}

impl Hub {
    /// Creates the hub at an address. What is shared is in a file of the folder.
    pub(crate) fn new(address: HubAddress, folder: PathBuf) -> Self {
        let (lock, problem, wanted) = Default::default();
        Self { address, folder, lock, problem, wanted }
    }

    /// Returns the maximum time for something that writes.
    pub(crate) fn writing(&self) -> Duration {
        rows::WRITING.max(self.address.time)
    }

    /// Reads what is shared.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn shares(&self) -> Result<LockedShares<'_>, String> {
        let lock = self.lock.lock().await;
        let shares = Shares::read(&self.folder)
            .map_err(|error| format!("cannot read what is shared, in hub.json: {error}"))?;
        Ok(LockedShares { shares, hub: self, _lock: lock })
    }

    /// Returns the id of the machine that shares, as the hub knows it; empty if it never shared.
    pub(crate) fn machine(&self) -> String {
        Shares::read(&self.folder).unwrap_or_default().machine
    }

    /// Takes note of how the hub was used. Returns true if it now fails and did not before.
    pub(crate) fn note<T>(&self, outcome: &Result<T, String>) -> bool {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let now = outcome.as_ref().err().map(|why| (Instant::now(), why.clone()));
        let before = std::mem::replace(&mut *problem, now);
        before.is_none() && problem.is_some()
    }

    /// Returns why the hub could not be used the last time.
    pub(crate) fn problem(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        problem.as_ref().map(|(_, why)| why.clone())
    }

    /// Returns why the hub is not asked now: it failed a moment ago, and nobody waits for it again.
    pub(crate) fn rests(&self) -> Option<String> {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = problem.as_ref().filter(|(at, _)| at.elapsed() < REST);
        failed.map(|(_, why)| why.clone())
    }
}

impl LockedShares<'_> {
    /// Writes what is shared.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn write(&self) -> Result<(), String> {
        let failed = |error| format!("cannot write what is shared, in hub.json: {error}");
        self.shares.write(&self.hub.folder).map_err(failed)
    }
}

/// What to do with the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "HubTask")]
pub(crate) enum HubTask {
    /// Say how it is.
    Status,
    /// Make its tables.
    SetUp,
    /// Say what sharing the project would share.
    Preview,
    /// Share the project from now on.
    Share,
    /// Share the project no longer, and take back what this machine shared of it.
    Unshare,
    /// Share what is new.
    Push,
    /// Share nothing, and take back everything that the user shared from any machine.
    Leave,
}

/// Returns what is shared of each project.
pub(crate) fn shared_projects(shares: &Shares) -> Vec<SharedProject> {
    shares.projects.iter().map(|(identity, share)| shared_project(identity, share)).collect()
}

/// Returns what is shared of a project.
fn shared_project(identity: &str, share: &Share) -> SharedProject {
    SharedProject {
        project: share.folder.clone(),
        identity: identity.to_owned(),
        readers: share.readers.clone(),
        sessions: share.sessions.len() as u64,
        messages: share.messages,
        memories: share.memories.len() as u64,
        held: share.held,
    }
}

#[cfg(test)]
mod tests;
