//! The use cases over sessions: opening and listing them, and adding to their logs.

mod at_hand;
mod checkpoint;
mod curate;
mod import;
mod manage;
mod messages;
mod revision;
mod settings;
mod turn;
mod window;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::checkpoint::{RolledBack, Undone as RollbackUndone};
pub use self::curate::{Keep, PrunedView, Summarized};
pub use self::manage::ToManage;
pub use self::messages::{Answered, NewMessage, Said};
pub use self::settings::{DEFAULT_TEMPLATE, SessionSettings};
pub use self::turn::{Turn, TurnDone, quality_parts};
pub(super) use self::window::Windows;
pub use self::window::{Material, Noted};
use super::{Engine, EngineError, Event, SessionName};
use crate::session::Session;
use crate::session::message::Message;
use crate::session::state::State;
use crate::store::session::{NewSession, SearchHit, SessionRow};

/// How many messages of sessions are kept in memory beyond those of the session last used.
const MESSAGES_KEPT: u64 = 100_000;

/// The sessions in memory.
#[derive(Default)]
pub(super) struct Sessions {
    /// Least recently used first.
    loaded: Vec<(u64, Session)>,
    /// Changed by the requests since the last commit, to be read anew if it fails.
    touched: Vec<u64>,
    /// The one that calls without a name are about, once one was chosen.
    current: Option<u64>,
    /// Those in which a model is answering.
    answering: Vec<u64>,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Its number.
    pub id: u64,
    /// Whether there was none of this name.
    pub created: bool,
}

impl Engine {
    /// Makes the session of this name the current one, and creates it if there is none.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn open_session(&mut self, new: NewSession) -> Result<Opened, EngineError> {
        let opened = self.find_or_create(new)?;
        if !opened.created && self.sessions.current != Some(opened.id) {
            self.session_changed(opened.id, "open-session")?;
        }
        self.sessions.current = Some(opened.id);
        Ok(opened)
    }

    /// The session of this name, which is created if there is none. The current one stays what it
    /// is, also when it is only the one last changed and this one will be.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn open_session_aside(&mut self, new: NewSession) -> Result<Opened, EngineError> {
        self.sessions.current = self.current_session()?.map(|row| row.id);
        self.find_or_create(new)
    }

    fn find_or_create(&mut self, new: NewSession) -> Result<Opened, EngineError> {
        Ok(match self.store.session_named(&new.name)? {
            Some(row) => Opened { id: row.id, created: false },
            None => Opened { id: self.create_session(new, "open-session")?, created: true },
        })
    }

    /// The session with this name or, written `ses-N`, with this number; without a name the
    /// current one: that last opened or switched to, else the one last changed.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn find_session(&mut self, name: Option<&str>) -> Result<SessionRow, EngineError> {
        let found = match name {
            Some(name) => self.session_called(name)?,
            None => self.current_session()?,
        };
        match found {
            Some(row) => Ok(row),
            None => Err(self.no_such_session(name)),
        }
    }

    /// Makes a session the one that calls without a name are about.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn switch_session(&mut self, name: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        self.sessions.current = Some(row.id);
        self.session_changed(row.id, "switch-session")?;
        Ok(row)
    }

    /// Every session, last changed first; deleted ones too if asked for.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn list_sessions(&mut self, deleted: bool) -> Result<Vec<SessionRow>, EngineError> {
        Ok(self.store.sessions(deleted)?)
    }

    /// What fits the words of a free text among the names and messages of sessions, best first.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn search_sessions(
        &mut self,
        text: &str,
        limit: u64,
        deleted: bool,
    ) -> Result<Vec<SearchHit>, EngineError> {
        Ok(self.store.search_sessions(text, limit, deleted)?)
    }

    /// The first name of the form `conversation-N` that no session has.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn free_session_name(&mut self) -> Result<String, EngineError> {
        for number in self.store.sessions(true)?.len() + 1.. {
            let name = format!("conversation-{number}");
            if self.store.session_named(&name)?.is_none() {
                return Ok(name);
            }
        }
        unreachable!("there is always another number")
    }

    /// Gives a session another name.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], and [`EngineError::SessionExists`] when the name is taken.
    pub fn rename_session(&mut self, name: &str, to: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        self.check_name_is_free(to, row.id)?;
        self.store.rename_session(row.id, to)?;
        self.session_changed(row.id, "rename-session")?;
        self.row(row.id)
    }

    /// Deletes a session: it is no longer listed or found, and can be restored.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn delete_session(&mut self, name: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        let now = self.now();
        self.store.set_session_deleted(row.id, Some(now))?;
        if self.sessions.current == Some(row.id) {
            self.sessions.current = None;
        }
        self.session_changed(row.id, "delete-session")?;
        self.row(row.id)
    }

    /// Brings a deleted session back: that of this name deleted last, or the one with this number.
    ///
    /// # Errors
    /// [`EngineError::NotDeleted`], and [`EngineError::SessionExists`] when its name has been taken
    /// since.
    pub fn restore_session(&mut self, name: &str) -> Result<SessionRow, EngineError> {
        let rows = self.store.sessions(true)?;
        let is_meant = |row: &&SessionRow| row.name == name || number(name) == Some(row.id);
        let deleted = rows.iter().filter(|row| row.deleted.is_some());
        let Some(row) = deleted.clone().filter(is_meant).max_by_key(|row| row.deleted) else {
            let known = deleted.map(|row| row.name.clone()).collect();
            // One that is there is as it should be.
            let live = self.session_called(name)?;
            return live.ok_or_else(|| EngineError::NotDeleted { name: name.to_owned(), known });
        };
        self.check_name_is_free(&row.name, row.id)?;
        self.store.set_session_deleted(row.id, None)?;
        self.session_changed(row.id, "restore-session")?;
        self.row(row.id)
    }

    /// Keeps a session's settings, as text that the caller understands.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), EngineError> {
        self.store.set_session_settings(id, settings)?;
        self.session_changed(id, "configure-session")
    }

    /// Notes that a model is about to answer in a session: one turn at a time.
    ///
    /// # Errors
    /// [`EngineError::SessionBusy`].
    pub fn begin_turn(&mut self, id: u64) -> Result<(), EngineError> {
        if self.sessions.answering.contains(&id) {
            return Err(EngineError::SessionBusy { session: self.row(id)?.name });
        }
        self.sessions.answering.push(id);
        Ok(())
    }

    /// Notes that the answer has ended.
    pub fn end_turn(&mut self, id: u64) {
        self.sessions.answering.retain(|answering| *answering != id);
    }

    /// A session with its log and state, read from the store at its first use.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn session(&mut self, id: u64) -> Result<&Session, EngineError> {
        Ok(self.session_mut(id)?)
    }

    /// Runs `operation` on the session of this name as [`once`](Self::once) does. A repeated call is
    /// about the session of the first, whatever that is called by then and whichever is current.
    /// Gives the session's row as it is after that.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], and those of the operation.
    pub fn once_in<T: Serialize + DeserializeOwned>(
        &mut self,
        method: &str,
        key: Option<&str>,
        name: Option<&str>,
        operation: impl FnOnce(&mut Self, &SessionRow) -> Result<T, EngineError>,
    ) -> Result<(SessionRow, T), EngineError> {
        let (id, outcome) = self.once(method, key, |engine| {
            let row = engine.find_session(name)?;
            Ok((row.id, operation(engine, &row)?))
        })?;
        Ok((self.row(id)?, outcome))
    }

    /// The row of a session, deleted or not.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn row(&mut self, id: u64) -> Result<SessionRow, EngineError> {
        match self.store.session(id)? {
            Some(row) => Ok(row),
            None => Err(self.no_such_session(Some(&format!("ses-{id}")))),
        }
    }

    pub(super) fn create_session(
        &mut self,
        new: NewSession,
        method: &'static str,
    ) -> Result<u64, EngineError> {
        let id = self.store.create_session(&NewSession { created: self.now(), ..new })?;
        self.session_changed(id, method)?;
        Ok(id)
    }

    /// The session, to be changed by what the store has been told already.
    pub(super) fn session_mut(&mut self, id: u64) -> Result<&mut Session, EngineError> {
        let loaded = match self.sessions.loaded.iter().position(|(known, _)| *known == id) {
            Some(at) => self.sessions.loaded.remove(at).1,
            None => self.read_session(id)?,
        };
        self.sessions.loaded.push((id, loaded));
        match self.sessions.loaded.last_mut() {
            Some((_, session)) => Ok(session),
            None => Err(EngineError::Ended),
        }
    }

    /// Notes that a session differs from what was last committed.
    pub(super) fn touch_session(&mut self, id: u64) {
        self.sessions.touched.push(id);
    }

    pub(super) fn session_changed(
        &mut self,
        id: u64,
        method: &'static str,
    ) -> Result<(), EngineError> {
        let row = self.row(id)?;
        let session = SessionName { id, name: row.name };
        self.events.push(Event::SessionChanged { session, method, messages: row.messages });
        Ok(())
    }

    pub(super) fn session_name(&mut self, id: u64) -> Result<SessionName, EngineError> {
        Ok(SessionName { id, name: self.row(id)?.name })
    }

    pub(super) fn check_name_is_free(&mut self, name: &str, of: u64) -> Result<(), EngineError> {
        match self.store.session_named(name)? {
            Some(other) if other.id != of => {
                Err(EngineError::SessionExists { name: name.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn read_session(&mut self, id: u64) -> Result<Session, EngineError> {
        let mut log = self.store.messages(id, 1, u64::MAX)?;
        let counter = self.counter();
        // Counts are kept with the messages; only another tokenizer makes them anew.
        for message in log.iter_mut().filter(|message| message.counted_by != counter.name()) {
            let Message { content, tool_calls, .. } = &*message;
            message.tokens = NewMessage::tokens_of(&*counter, content, tool_calls);
            message.counted_by = counter.name();
        }
        let newest = self.store.newest_state(id)?;
        let (state, revision) = match newest {
            Some(row) => (revision::parse(&row.state)?, row.number),
            None => (State::default(), 0),
        };
        Ok(Session::new(log, state, revision))
    }

    fn session_called(&mut self, name: &str) -> Result<Option<SessionRow>, EngineError> {
        if let Some(row) = self.store.session_named(name)? {
            return Ok(Some(row));
        }
        let Some(number) = number(name) else { return Ok(None) };
        Ok(self.store.session(number)?.filter(|row| row.deleted.is_none()))
    }

    fn current_session(&mut self) -> Result<Option<SessionRow>, EngineError> {
        if let Some(id) = self.sessions.current {
            // One that could not be kept, or was deleted, is not the current one any more.
            if let Some(row) = self.store.session(id)?.filter(|row| row.deleted.is_none()) {
                return Ok(Some(row));
            }
        }
        Ok(self.store.sessions(false)?.into_iter().next())
    }

    fn no_such_session(&mut self, name: Option<&str>) -> EngineError {
        match self.store.sessions(false) {
            Err(error) => error.into(),
            Ok(rows) => EngineError::NoSuchSession {
                name: name.map(str::to_owned),
                known: rows.into_iter().map(|row| row.name).collect(),
            },
        }
    }
}

impl Sessions {
    /// How many sessions were changed since the last commit.
    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Forgets what the requests since then changed, so that it is read anew.
    pub(super) fn forget_touched(&mut self, since: usize) {
        for id in self.touched.drain(since..) {
            self.loaded.retain(|(known, _)| *known != id);
        }
    }

    /// After a commit that failed: nothing in memory can be relied on.
    pub(super) fn forget_all(&mut self) {
        self.loaded.clear();
        self.touched.clear();
    }

    /// After a commit: forgets the least recently used sessions when there are too many messages.
    pub(super) fn tidy(&mut self) {
        self.touched.clear();
        let length = |loaded: &(u64, Session)| loaded.1.length();
        while self.loaded.len() > 1
            && self.loaded.iter().rev().skip(1).map(length).sum::<u64>() > MESSAGES_KEPT
        {
            self.loaded.remove(0);
        }
    }
}

/// The number in a name of the form `ses-N`.
fn number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("ses-")?.parse().ok()?;
    i64::try_from(number).is_ok().then_some(number)
}

#[cfg(test)]
mod tests;
