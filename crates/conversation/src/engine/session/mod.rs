//! Operations on sessions: open, find, rename, delete and restore.

mod chat;
mod checkpoint;
mod curate;
mod import;
mod messages;
mod notes;
mod revision;
mod settings;
mod turn;
mod undo;
mod vectors;
mod window;

use serde::{Deserialize, Serialize};

pub use self::chat::{AskedWindow, ModelAnswer};
pub use self::checkpoint::{RolledBack, TurnsMoved};
pub use self::curate::Keep;
pub use self::curate::{PrunedView, Summarized};
pub use self::import::{KnownRecording, Portion};
pub use self::messages::NewMessage;
pub use self::notes::NotesMaterial;
pub use self::revision::Moved;
pub use self::settings::SessionContext;
pub use self::settings::{DEFAULT_TEMPLATE, SessionSettings};
pub use self::turn::TurnDone;
pub use self::turn::{NewTurn, quality_parts};
pub use self::vectors::Lacking;
pub use self::window::{Material, Summarizing};
use super::sessions::LoadedSession;
use super::{Engine, EngineError, Event, SessionName};
use crate::ids::SessionId;
use crate::session::Session;
use crate::session::message::Message;
use crate::session::state::Revision;
use crate::store::session::{NewSession, SessionRow};

/// Result of opening a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedSession {
    /// Number of the session.
    pub id: u64,
    /// True if the session was created.
    pub created: bool,
}

impl Engine {
    /// Makes the named session current, creating it if needed.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn open_session(&mut self, new: NewSession) -> Result<OpenedSession, EngineError> {
        let opened = self.find_or_create(new)?;
        let current = self.sessions.current(self.sessions.caller).next();
        if !opened.created && current != Some(opened.id) {
            self.session_changed(opened.id, "open-session")?;
        }
        self.sessions.make_current(opened.id);
        Ok(opened)
    }

    /// Opens the named session, creating it if needed, without changing which session is current.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn open_session_aside(&mut self, new: NewSession) -> Result<OpenedSession, EngineError> {
        if let Some(row) = self.current_session()? {
            self.sessions.keep_current(row.id);
        }
        self.find_or_create(new)
    }

    fn find_or_create(&mut self, new: NewSession) -> Result<OpenedSession, EngineError> {
        Ok(match self.store.read().session_named(&new.name)? {
            Some(row) => OpenedSession { id: row.id, created: false },
            None => OpenedSession { id: self.create_session(new, "open-session")?, created: true },
        })
    }

    /// Finds a session by name, or by number if written `ses-N`. Without a name, returns the
    /// current session: the one that the caller last opened, else the one that any caller last
    /// opened, else the one with the latest message.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn find_session(&mut self, name: Option<&str>) -> Result<SessionRow, EngineError> {
        self.session_if_any(name)?.ok_or_else(|| self.no_such_session(name))
    }

    /// Finds a session like [`find_session`](Self::find_session), if there is one.
    pub(super) fn session_if_any(
        &mut self,
        name: Option<&str>,
    ) -> Result<Option<SessionRow>, EngineError> {
        match name {
            Some(name) => self.session_called(name),
            None => self.current_session(),
        }
    }

    /// Makes a session the current one.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn switch_session(&mut self, name: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        self.sessions.make_current(row.id);
        self.session_changed(row.id, "open-session")?;
        Ok(row)
    }

    /// Returns an unused name of the form `conversation-N`, in which N is above the number of
    /// sessions.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn free_session_name(&mut self) -> Result<String, EngineError> {
        let mut number = self.store.read().session_count()? + 1;
        while self.store.read().session_named(&format!("conversation-{number}"))?.is_some() {
            number += 1;
        }
        Ok(format!("conversation-{number}"))
    }

    /// Renames a session.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`]; [`EngineError::SessionExists`] if the name is taken.
    pub fn rename_session(&mut self, name: &str, to: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        self.check_name_is_free(to, row.id)?;
        self.store.change()?.rename_session(row.id, to)?;
        self.sessions.change_row(row.id, |row| to.clone_into(&mut row.name));
        self.session_changed(row.id, "rename-session")?;
        self.row(row.id)
    }

    /// Gives a session its project.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_session_project(&mut self, id: u64, to: &str) -> Result<(), EngineError> {
        self.store.change()?.set_session_project(id, to)?;
        self.sessions.change_row(id, |row| row.project = Some(to.to_owned()));
        self.session_changed(id, "configure-session")
    }

    /// Deletes a session: it is no longer listed or found, but can be restored.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn delete_session(&mut self, name: &str) -> Result<SessionRow, EngineError> {
        let row = self.find_session(Some(name))?;
        let now = self.now();
        self.store.change()?.set_session_deleted(row.id, Some(now))?;
        self.sessions.change_row(row.id, |row| row.deleted = Some(now));
        self.sessions.close(row.id);
        self.session_changed(row.id, "delete-session")?;
        self.row(row.id)
    }

    /// Restores the session deleted last among those with this name or number. Returns the session
    /// and true. If none of them is deleted, returns the session with this name or number, and
    /// false.
    ///
    /// # Errors
    /// [`EngineError::NotDeleted`] if there is no such session at all;
    /// [`EngineError::SessionExists`] if another session has taken the name since.
    pub fn restore_session(&mut self, name: &str) -> Result<(SessionRow, bool), EngineError> {
        let Some(row) = self.deleted_session(name)? else {
            let rows = self.store.read().sessions(true)?.into_iter();
            let known = rows.filter(|row| row.deleted.is_some()).map(|row| row.name).collect();
            // A session that is not deleted needs no restoring.
            let live = self.session_called(name)?;
            let none = || EngineError::NotDeleted { name: name.to_owned(), known };
            return live.map(|row| (row, false)).ok_or_else(none);
        };
        self.check_name_is_free(&row.name, row.id)?;
        self.store.change()?.set_session_deleted(row.id, None)?;
        self.sessions.change_row(row.id, |row| row.deleted = None);
        self.session_changed(row.id, "delete-session")?;
        Ok((self.row(row.id)?, true))
    }

    /// Finds the session deleted last among those with this name or number, if there is one.
    pub(super) fn deleted_session(
        &mut self,
        name: &str,
    ) -> Result<Option<SessionRow>, EngineError> {
        let number = name.parse().ok().map(|SessionId(number)| number);
        Ok(self.store.read().deleted_session(name, number)?)
    }

    /// Stores a session's settings in their text form.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), EngineError> {
        self.store.change()?.set_session_settings(id, settings)?;
        self.sessions.change_row(id, |row| settings.clone_into(&mut row.settings));
        self.session_changed(id, "configure-session")
    }

    /// Returns a session with its log and state, reading it from the store on first use.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn session(&mut self, id: u64) -> Result<&Session, EngineError> {
        Ok(&self.loaded(id)?.session)
    }

    /// Runs `operation` on the named session, or on the current one. Returns the session's row as
    /// it is afterwards, and the outcome.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], or the operation's error.
    pub fn in_session<T>(
        &mut self,
        name: Option<&str>,
        operation: impl FnOnce(&mut Self, &SessionRow) -> Result<T, EngineError>,
    ) -> Result<(SessionRow, T), EngineError> {
        let row = self.find_session(name)?;
        let outcome = operation(self, &row)?;
        Ok((self.row(row.id)?, outcome))
    }

    /// Like [`in_session`](Self::in_session), but refuses a session in which a model is answering:
    /// `operation` could take the question out of view, or put something between the question and
    /// its answer.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`], [`EngineError::SessionBusy`], or the operation's error.
    pub fn between_turns<T>(
        &mut self,
        name: Option<&str>,
        operation: impl FnOnce(&mut Self, &SessionRow) -> Result<T, EngineError>,
    ) -> Result<(SessionRow, T), EngineError> {
        self.in_session(name, |engine, row| match engine.sessions.answering.contains(&row.id) {
            true => Err(EngineError::SessionBusy(row.name.clone())),
            false => operation(engine, row),
        })
    }

    /// Returns the row of a session, deleted or not.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSession`].
    pub fn row(&mut self, id: u64) -> Result<SessionRow, EngineError> {
        let row = self.row_if_any(id)?;
        row.ok_or_else(|| self.no_such_session(Some(&SessionId(id).to_string())))
    }

    pub(super) fn create_session(
        &mut self,
        new: NewSession,
        method: &'static str,
    ) -> Result<u64, EngineError> {
        let new = NewSession { created: self.now(), ..new };
        let id = self.store.change()?.create_session(&new)?;
        self.sessions.touch(id);
        self.session_changed(id, method)?;
        Ok(id)
    }

    /// Returns the session and its row in memory, reading them from the store if needed. Changes
    /// must be stored before they are made here.
    fn loaded(&mut self, id: u64) -> Result<&mut LoadedSession, EngineError> {
        let loaded = match self.sessions.take(id) {
            Some(loaded) => loaded,
            None => self.read_session(id)?,
        };
        self.sessions.put(loaded).ok_or(EngineError::Ended)
    }

    pub(super) fn session_changed(
        &mut self,
        id: u64,
        method: &'static str,
    ) -> Result<(), EngineError> {
        let SessionRow { name, messages, .. } = self.row(id)?;
        let session = SessionName { id, name, version: 0 };
        self.events.push(Event::SessionChanged { session, method, messages });
        Ok(())
    }

    pub(super) fn session_name(&mut self, id: u64) -> Result<SessionName, EngineError> {
        Ok(SessionName { id, name: self.row(id)?.name, version: 0 })
    }

    pub(super) fn check_name_is_free(&mut self, name: &str, of: u64) -> Result<(), EngineError> {
        match self.store.read().session_named(name)? {
            Some(other) if other.id != of => Err(EngineError::SessionExists(name.to_owned())),
            _ => Ok(()),
        }
    }

    fn read_session(&mut self, id: u64) -> Result<LoadedSession, EngineError> {
        let row = self.row(id)?;
        let mut log = self.store.read().messages(id, 1, u64::MAX)?;
        let counter = self.counter();
        // Counts are stored with the messages. Messages are counted again only if another tokenizer
        // counted them.
        for message in log.iter_mut().filter(|message| message.counted_by != counter.name()) {
            let Message { content, tool_calls, .. } = &*message;
            message.tokens = NewMessage::tokens_of(&*counter, content, tool_calls);
            message.counted_by = counter.name();
        }
        let (Revision { state, learned }, number) = match self.store.read().newest_state(id)? {
            Some(newest) => (revision::parse(&newest.state)?, newest.number),
            None => (Revision::default(), 0),
        };
        let learned = match row.learned.is_empty() {
            true => learned,
            false => revision::parse_learned(&row.learned)?,
        };
        let session = Session::new(log, state, number, learned);
        Ok(LoadedSession { row, session, vectors: None, words: std::sync::Arc::default() })
    }

    fn session_called(&mut self, name: &str) -> Result<Option<SessionRow>, EngineError> {
        if let Some(row) = self.sessions.row_named(name) {
            return Ok(Some(row.clone()));
        }
        let named = self.store.read().session_named(name)?;
        if let Some(row) = self.sessions.note_found(named) {
            return Ok(Some(row));
        }
        let Ok(SessionId(number)) = name.parse() else { return Ok(None) };
        Ok(self.row_if_any(number)?.filter(|row| row.deleted.is_none()))
    }

    fn current_session(&mut self) -> Result<Option<SessionRow>, EngineError> {
        for id in self.sessions.current(self.sessions.caller) {
            // A session that was not stored, or was deleted, is no longer current.
            if let Some(row) = self.row_if_any(id)?.filter(|row| row.deleted.is_none()) {
                return Ok(Some(row));
            }
        }
        Ok(self.store.read().latest_session()?)
    }

    fn row_if_any(&mut self, id: u64) -> Result<Option<SessionRow>, EngineError> {
        match self.sessions.row(id) {
            Some(row) => Ok(Some(row.clone())),
            None => {
                let row = self.store.read().session(id)?;
                Ok(self.sessions.note_found(row))
            }
        }
    }

    fn no_such_session(&mut self, name: Option<&str>) -> EngineError {
        match self.store.read().sessions(false) {
            Err(error) => error.into(),
            Ok(rows) => EngineError::NoSuchSession {
                name: name.map(str::to_owned),
                known: rows.into_iter().map(|row| row.name).collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
