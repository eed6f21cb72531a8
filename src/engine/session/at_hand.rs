//! Decides which requests about sessions are quick.

use super::super::Engine;

/// Maximum number of messages at which requests about a session count as quick.
const SHORT_SESSION: u64 = 2_000;

impl Engine {
    /// Returns whether the session is short and in memory; `None` means the current one.
    pub(in super::super) fn is_short_session(&mut self, name: Option<&str>) -> bool {
        let id = match name {
            None => self.sessions.current,
            // The request itself will report read errors.
            Some(name) => self.session_called(name).ok().flatten().map(|row| row.id),
        };
        let mut loaded = self.sessions.loaded.iter();
        loaded.any(|(known, session)| Some(*known) == id && session.length() <= SHORT_SESSION)
    }
}
