//! Versions of managers and sessions: numbers that name their states, grow, and never repeat.
//!
//! All versions come from one counter, which outlives the process and is never set back, even if
//! the newest changes are lost. A change that fails leaves a gap.

use super::versioned::{Beside, Versioned, VersionedName};
use super::{Engine, EngineError, SessionSettings};

impl Engine {
    /// Returns the version of a manager or session; 0 for a manager that was never changed.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn version(&mut self, of: &Versioned) -> Result<u64, EngineError> {
        match of {
            Versioned::Manager(name) => Ok(self.manager(name)?.version()),
            Versioned::Session(id) => {
                self.raise_versions()?;
                Ok(self.row(*id)?.version)
            }
        }
    }

    /// Returns the number of the session that [`find_session`](Self::find_session) finds, if any.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn session_id(&mut self, name: Option<&str>) -> Result<Option<u64>, EngineError> {
        Ok(self.session_if_any(name)?.map(|row| row.id))
    }

    /// Returns the number of the deleted session with this name or number, if any.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn deleted_session_id(&mut self, name: &str) -> Result<Option<u64>, EngineError> {
        Ok(self.deleted_session(name)?.map(|row| row.id))
    }

    /// Fails unless a manager or session has this version.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], [`EngineError::Store`].
    pub fn expect_version(&mut self, of: &Versioned, expected: u64) -> Result<(), EngineError> {
        let version = self.version(of)?;
        if version == expected {
            return Ok(());
        }
        let of = match of {
            Versioned::Manager(name) => VersionedName::Manager(name.clone()),
            Versioned::Session(id) => VersionedName::Session(self.row(*id)?.name, Some(*id)),
        };
        Err(EngineError::Conflict { of, expected, version })
    }

    /// Fails if a version is expected and the session has another one.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], [`EngineError::Store`].
    pub fn expect_session(&mut self, id: u64, expected: Option<u64>) -> Result<(), EngineError> {
        match expected {
            Some(expected) => self.expect_version(&Versioned::Session(id), expected),
            None => Ok(()),
        }
    }

    /// Returns whether a read is sure to give the same result now as when the manager or session
    /// got the version `since`. `beside` is the data in the result that can change without a new
    /// version.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn is_unchanged(
        &mut self,
        of: &Versioned,
        since: u64,
        beside: Beside,
    ) -> Result<bool, EngineError> {
        if self.version(of)? != since {
            return Ok(false);
        }
        Ok(match (of, beside) {
            (_, Beside::Nothing) => true,
            (Versioned::Session(id), Beside::Windows) => {
                let built = *self.moments.windows.get(id).unwrap_or(&self.moments.began);
                built.max(self.moments.models) < since
            }
            (Versioned::Session(id), Beside::Window) => {
                let row = self.row(*id)?;
                let managers = SessionSettings::parse(&row.settings)?.managers(&row);
                for manager in managers {
                    if self.manager(&manager)?.version() >= since || self.has_live(&manager)? {
                        return Ok(false);
                    }
                }
                self.moments.models < since
            }
            (Versioned::Manager(name), _) => !self.has_live(name)?,
            (Versioned::Session(_), Beside::Files) => false,
        })
    }

    fn has_live(&mut self, manager: &str) -> Result<bool, EngineError> {
        Ok(self.manager(manager)?.slots().any(|slot| slot.item.live))
    }

    /// Gives new versions to the sessions that have changed since they got their versions.
    pub(super) fn raise_versions(&mut self) -> Result<(), EngineError> {
        for id in std::mem::take(&mut self.sessions.unversioned) {
            let version = self.counters.give_version();
            self.store.change()?.set_session_version(id, version)?;
            self.sessions.set_version(id, version);
        }
        Ok(())
    }

    /// Writes the new versions of sessions into the events of the request.
    pub(super) fn stamp_events(&mut self) -> Result<(), EngineError> {
        let mut events = std::mem::take(&mut self.events);
        let sessions = events.iter_mut().filter_map(|event| event.session_mut());
        for session in sessions.filter(|session| session.version == 0) {
            session.version = self.row(session.id)?.version;
        }
        self.events = events;
        Ok(())
    }
}
