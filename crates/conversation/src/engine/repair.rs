//! The condition of the stored state, and its repair while the server runs.

use std::sync::Arc;

use tokio::sync::Notify;

use super::versioned::Moments;
use super::{Engine, EngineError};

/// Facts about the store from which follows whether a backup is due.
pub struct Condition {
    /// Number of requests that have changed something.
    pub changes: u64,
    /// Damage that was found while the state was read, if any was.
    pub damage: Option<String>,
}

impl Engine {
    /// Returns the signal that the store has done its postponed work after changes.
    pub fn quiet(&self) -> Arc<Notify> {
        Arc::clone(&self.quiet)
    }

    /// Returns how much there is to back up, and the damage that was found while the state was read.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn condition(&mut self) -> Result<Condition, EngineError> {
        Ok(Condition { changes: self.store.counters()?.changes, damage: self.store.damage() })
    }

    /// Returns what was found and done about a damaged state since the start.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Replaces a damaged state with the newest good backup.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn restore_backup(&mut self) -> Result<(), EngineError> {
        let findings = self.store.renew();
        self.forget_all();
        self.requests = None;
        self.notices.extend(findings?.into_iter().map(|finding| finding.text));
        self.counters = self.store.counters()?;
        self.moments = Moments::since(self.counters.give_version());
        Ok(())
    }

    /// Forgets what was read from the store.
    pub(super) fn forget_all(&mut self) {
        self.managers.clear();
        self.sessions.forget_all();
        self.models.calibrations.clear();
        self.vectors.forget_unsure();
        self.archiving.forget();
    }
}
