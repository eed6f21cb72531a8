//! Which sessions are so near that a request about one is quick.

use super::super::Engine;

/// The longest session, in messages, of which a few are read or added in no time.
const SHORT_SESSION: u64 = 2_000;

impl Engine {
    /// Returns whether the session is in memory and short; without a name, the current one.
    pub(in super::super) fn is_short_session(&mut self, name: Option<&str>) -> bool {
        let id = match name {
            None => self.sessions.current,
            // What cannot be read is told by the request itself.
            Some(name) => self.session_called(name).ok().flatten().map(|row| row.id),
        };
        let mut loaded = self.sessions.loaded.iter();
        loaded.any(|(known, session)| Some(*known) == id && session.length() <= SHORT_SESSION)
    }
}
