//! The sessions in memory. Their rows are kept in step with the store, so that a request about a
//! session in memory need not read its row again.

use std::collections::HashMap;
use std::sync::Arc;

use super::reach::Caller;
use super::vectors::SessionVectors;
use crate::curation::unit::HistoryCache;
use crate::ids::SessionId;
use crate::session::Session;
use crate::session::message::{Message, Role};
use crate::store::session::{SessionRow, last_said};

/// Maximum number of messages of sessions in memory, besides those of the session last used.
const MESSAGES_KEPT: u64 = 100_000;
/// Maximum length, in messages, of a session that counts as quick to read and to extend.
const SHORT_SESSION: u64 = 2_000;

/// A session in memory.
pub(super) struct LoadedSession {
    pub(super) row: SessionRow,
    pub(super) session: Session,
    /// Vectors of the session's messages, once they have been needed.
    pub(super) vectors: Option<SessionVectors>,
    /// Data about the session's messages, computed while windows were built. Shared with the
    /// threads that build windows.
    pub(super) words: Arc<HistoryCache>,
}

/// The sessions in memory.
#[derive(Default)]
pub(super) struct Sessions {
    /// Sessions, the least recently used first.
    pub(super) loaded: Vec<LoadedSession>,
    /// A row read since the last commit, of a session that may not be in memory.
    found: Option<SessionRow>,
    /// Ids of sessions changed since the last commit. Those that a failed request changed are read
    /// again.
    touched: Vec<u64>,
    /// Ids of changed sessions that have no new version yet.
    pub(super) unversioned: Vec<u64>,
    /// Caller of the running request.
    pub(super) caller: Caller,
    /// Session that each connection last opened, for its calls that name none.
    opened: HashMap<Caller, u64>,
    /// Current session for connections that have opened none; `None` stands for the session with
    /// the latest message.
    shared: Option<u64>,
    /// Sessions in which a model is answering.
    pub(super) answering: Vec<u64>,
}

impl LoadedSession {
    /// Appends a message that is already in the store.
    pub(super) fn append(&mut self, message: Message) {
        self.row.messages += 1;
        self.row.turns += u64::from(message.role == Role::User);
        self.row.tokens += message.tokens;
        self.row.updated = self.row.updated.max(message.timestamp);
        let (role, words) = last_said(std::slice::from_ref(&message));
        self.row.last_role = role;
        self.row.last_words = words.unwrap_or_else(|| std::mem::take(&mut self.row.last_words));
        self.session.append(message);
    }
}

impl Sessions {
    /// Returns the sessions that may be current for a caller, the first choice first.
    pub(super) fn current(&self, caller: Caller) -> impl Iterator<Item = u64> + use<> {
        let own = self.opened.get(&caller).copied();
        own.into_iter().chain(self.shared)
    }

    /// Makes a session current for the caller, and for connections that have opened none.
    pub(super) fn make_current(&mut self, id: u64) {
        self.shared = Some(id);
        if self.caller != Caller::Nobody {
            self.opened.insert(self.caller, id);
        }
    }

    /// Makes a session current for connections that have opened none, unless it is already current
    /// for the caller or for these connections.
    pub(super) fn keep_current(&mut self, id: u64) {
        if !self.current(self.caller).any(|current| current == id) {
            self.shared = Some(id);
        }
    }

    /// Makes sure that a session is no longer current for any caller.
    pub(super) fn close(&mut self, id: u64) {
        self.opened.retain(|_, opened| *opened != id);
        self.shared = self.shared.filter(|shared| *shared != id);
    }

    /// Forgets a connection that has ended.
    pub(super) fn forget(&mut self, caller: Caller) {
        self.opened.remove(&caller);
    }

    pub(super) fn has(&self, id: u64) -> bool {
        self.loaded.iter().any(|loaded| loaded.row.id == id)
    }

    fn rows(&self) -> impl Iterator<Item = &SessionRow> {
        self.loaded.iter().map(|loaded| &loaded.row).chain(&self.found)
    }

    /// Returns the row of a session, if the row is in memory.
    pub(super) fn row(&self, id: u64) -> Option<&SessionRow> {
        self.rows().find(|row| row.id == id)
    }

    /// Returns the row of the session that has this name and is not deleted, if the row is in
    /// memory.
    pub(super) fn row_named(&self, name: &str) -> Option<&SessionRow> {
        self.rows().find(|row| row.name == name && row.deleted.is_none())
    }

    /// Keeps a row that was read, in place of the one kept before, and returns it.
    pub(super) fn note_found(&mut self, row: Option<SessionRow>) -> Option<SessionRow> {
        self.found.clone_from(&row);
        row
    }

    /// Takes a session out of memory, if it is there. [`put`](Self::put) puts it back.
    pub(super) fn take(&mut self, id: u64) -> Option<LoadedSession> {
        let at = self.loaded.iter().position(|loaded| loaded.row.id == id)?;
        Some(self.loaded.remove(at))
    }

    /// Puts a session into memory as the most recently used one, and returns it.
    pub(super) fn put(&mut self, loaded: LoadedSession) -> Option<&mut LoadedSession> {
        self.found = None;
        self.loaded.push(loaded);
        self.loaded.last_mut()
    }

    /// Records that a session differs from its committed state.
    pub(super) fn touch(&mut self, id: u64) {
        self.found = None;
        self.touched.push(id);
        if !self.unversioned.contains(&id) {
            self.unversioned.push(id);
        }
    }

    /// Gives a session the version that the store has.
    pub(super) fn set_version(&mut self, id: u64, version: u64) {
        let loaded = self.loaded.iter_mut().map(|loaded| &mut loaded.row);
        let rows = loaded.chain(&mut self.found);
        rows.filter(|row| row.id == id).for_each(|row| row.version = version);
    }

    /// Changes the row of a session, if it is in memory, to match the store.
    pub(super) fn change_row(&mut self, id: u64, change: impl FnOnce(&mut SessionRow)) {
        self.touch(id);
        let mut rows = self.loaded.iter_mut().map(|loaded| &mut loaded.row);
        if let Some(row) = rows.find(|row| row.id == id) {
            change(row);
        }
    }

    /// Returns whether a session is in memory and has at most [`SHORT_SESSION`] messages. `name` is
    /// a name or an id; `None` stands for the caller's current session.
    pub(super) fn is_short(&self, caller: Caller, name: Option<&str>) -> bool {
        let current = || self.current(caller).next();
        let id = name.map_or_else(current, |name| name.parse().ok().map(|SessionId(id)| id));
        let is_meant = |row: &SessionRow| match name {
            Some(name) if row.name == name => row.deleted.is_none(),
            _ => id == Some(row.id),
        };
        let mut rows = self.loaded.iter().map(|loaded| &loaded.row);
        rows.any(|row| is_meant(row) && row.messages <= SHORT_SESSION)
    }

    /// Returns the number of calls of [`touch`](Self::touch) since the last commit.
    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Forgets the sessions changed since [`touched`](Self::touched) returned `since`, so that they
    /// are read again.
    pub(super) fn forget_touched(&mut self, since: usize) {
        self.found = None;
        self.unversioned.clear();
        for id in self.touched.drain(since..) {
            self.loaded.retain(|loaded| loaded.row.id != id);
        }
    }

    /// Forgets everything after a failed commit, since nothing in memory can be trusted.
    pub(super) fn forget_all(&mut self) {
        self.found = None;
        self.loaded.clear();
        self.touched.clear();
        self.unversioned.clear();
    }

    /// Ends the list of changed sessions after a commit, and forgets the least recently used
    /// sessions if there are too many messages in memory.
    pub(super) fn tidy(&mut self) {
        self.found = None;
        self.touched.clear();
        let length = |loaded: &LoadedSession| loaded.session.length();
        while self.loaded.len() > 1
            && self.loaded.iter().rev().skip(1).map(length).sum::<u64>() > MESSAGES_KEPT
        {
            self.loaded.remove(0);
        }
    }
}
