//! Receipts: records of the last push that each session of an agent received. A push is the text
//! that tells the agent what has changed in its context.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::host::Setup;
use crate::store::ownership::make_private;

/// Maximum time to wait for a receipt that another process holds.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// Second line of the receipt of a session whose agent has forgotten what it was given.
const FORGOTTEN: &str = "forgotten";

/// A file with the number of the last push that a session of an agent received.
pub(super) struct Receipt(PathBuf);

impl Receipt {
    pub(super) fn of(setup: &Setup, agent: &str, session: &str) -> Option<Self> {
        let state = setup.state.as_deref()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(state.as_os_str().as_encoded_bytes());
        hasher.update(format!("\0{agent}\0{session}").as_bytes());
        let hash = hasher.finalize().to_hex();
        Some(Self(setup.folders.runtime.join("pushed").join(&hash[..32])))
    }

    pub(super) fn number(&self) -> Option<u64> {
        std::fs::read_to_string(&self.0).ok()?.lines().next()?.parse().ok()
    }

    /// Notes that the agent is about to forget the items that it was given. The next
    /// [`note`](Self::note) cancels this. Does nothing if the session has not received a push.
    pub(super) fn forget(&self) -> anyhow::Result<()> {
        match self.number() {
            Some(number) => self.write(&format!("{number}\n{FORGOTTEN}\n")),
            None => Ok(()),
        }
    }

    /// Returns whether the agent has forgotten the items that it was given, or is about to.
    pub(super) fn is_forgotten(&self) -> bool {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().nth(1) == Some(FORGOTTEN)
    }

    /// Makes other hooks of the session wait while the returned file is open, since some agents run
    /// the hook for the start and the hook for the first prompt at the same time. Fails if another
    /// process holds the receipt for longer than [`LONGEST_HOLD`].
    pub(super) fn hold(&self) -> anyhow::Result<File> {
        self.make_folder()?;
        let file = File::options().write(true).create(true).truncate(false).open(&self.0)?;
        let end = Instant::now() + LONGEST_HOLD;
        while let Err(TryLockError::WouldBlock) = file.try_lock() {
            ensure!(Instant::now() < end, "another hook of the session is still running");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(file)
    }

    pub(super) fn note(&self, number: u64) -> anyhow::Result<()> {
        self.write(&number.to_string())
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        self.make_folder()?;
        std::fs::write(&self.0, text).context("cannot record which changes the session received")
    }

    fn make_folder(&self) -> anyhow::Result<()> {
        let folder = self.0.parent().context("the receipt has no folder")?;
        if let Some(runtime) = folder.parent() {
            make_private(runtime)?;
        }
        Ok(make_private(folder)?)
    }
}
