//! Imports sessions: those that Contexture exported, and those that agents such as Codex recorded.

use super::super::clock::not_ahead;
use super::super::{Engine, EngineError};
use super::{NewMessage, OpenedSession};
use crate::session::message::Message;
use crate::session::state::Revision;
use crate::store::session::{NewSession, RecordedOrigin, RecordingRow, SessionRow, UsageRow};

/// A part of a recorded session, to be appended in one request.
pub struct Portion {
    /// Path of the recorded file, without symbolic links.
    pub path: String,
    /// Number of the session that the file has become; `None` before the first portion.
    pub session: Option<u64>,
    /// The session to create with the first portion. A time of creation in the future counts as
    /// now.
    pub new: NewSession,
    /// Facts that the agent recorded about the session. Those of an earlier portion that are absent
    /// now stay, except for the time of an open call.
    pub origin: RecordedOrigin,
    /// First and last number of messages that are no longer part of the session.
    pub gone: Option<(u64, u64)>,
    /// Messages; those without a time get the time of the previous message.
    pub messages: Vec<NewMessage>,
    /// Windows that the agent sent to its model, with the costs that it reported. A time in the
    /// future counts as now.
    pub usages: Vec<UsageRow>,
    /// Place in the file at which this portion begins; `None` if nothing of the file was imported
    /// yet.
    pub before: Option<String>,
    /// Place in the file at which this portion ends.
    pub mark: String,
}

/// A file that was imported.
pub struct KnownRecording {
    /// Number of the file's session.
    pub session: u64,
    /// Name of the session.
    pub name: String,
    /// True if the session was deleted.
    pub is_deleted: bool,
    /// Place in the file up to which it was imported; `None` if the session is known from other
    /// files only.
    pub mark: Option<String>,
    /// Places in other files from which the session was imported.
    pub others: Vec<String>,
    /// Number of messages of the session.
    pub messages: u64,
}

impl Engine {
    /// Creates a session from exported messages and makes it current. If the name is taken, appends
    /// a number to the name. `view` is the exported view; without one, all messages are in view.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn import_session(
        &mut self,
        mut new: NewSession,
        messages: Vec<NewMessage>,
        view: Option<Revision>,
    ) -> Result<OpenedSession, EngineError> {
        new.name = self.free_name_like(new.name)?;
        let id = self.create_session(new, "import-session")?;
        self.append(id, messages)?;
        if let Some(view) = view {
            let Revision { state, learned } = view.of_log(self.session(id)?.length());
            self.learn(id, learned)?;
            self.revise(id, "import-session", state)?;
        }
        self.session_changed(id, "import-session")?;
        self.sessions.make_current(id);
        Ok(OpenedSession { id, created: true })
    }

    /// Returns the record of the file at `path`, which must be without symbolic links, or else that
    /// of the session to which an agent gave an id; `None` if neither was imported. `agent` has the
    /// agent and the id.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn recording(
        &mut self,
        path: &str,
        agent: Option<(&str, &str)>,
    ) -> Result<Option<KnownRecording>, EngineError> {
        let (session, mark) = match self.store.read().recording(path)? {
            Some(RecordingRow { session, mark }) => (session, Some(mark)),
            None => match self.of_agent(agent)? {
                Some(session) => (session, None),
                None => return Ok(None),
            },
        };
        let all = self.store.read().recordings_of(session)?.into_iter().map(|row| row.mark);
        let others = all.filter(|other| Some(other) != mark.as_ref()).collect();
        let SessionRow { name, deleted, messages, .. } = self.row(session)?;
        let is_deleted = deleted.is_some();
        Ok(Some(KnownRecording { session, name, is_deleted, mark, others, messages }))
    }

    /// Returns the number of the session to which an agent gave an id. `agent` has both.
    fn of_agent(&mut self, agent: Option<(&str, &str)>) -> Result<Option<u64>, EngineError> {
        let Some((agent, id)) = agent else { return Ok(None) };
        Ok(self.store.read().session_of_agent(agent, id)?.map(|row| row.id))
    }

    /// Returns the project of the latest session whose agent worked in a folder that is not the
    /// project's own.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn project_of_folder(&mut self, folder: &str) -> Result<Option<String>, EngineError> {
        Ok(self.store.read().project_of_folder(folder)?)
    }

    /// Returns the number and the messages of the session to which an agent gave an id.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn messages_of_agent(
        &mut self,
        agent: &str,
        id: &str,
    ) -> Result<Option<(u64, Vec<Message>)>, EngineError> {
        let Some(session) = self.of_agent(Some((agent, id)))? else { return Ok(None) };
        Ok(Some((session, self.store.read().messages(session, 1, u64::MAX)?)))
    }

    /// Appends a portion of a recorded session and notes how far the file was imported; does both
    /// or neither. The current session stays the same. Returns the number of the session. Does
    /// nothing and returns `None` if another call has imported from the file in the meantime, so
    /// that the portion may be there already.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn import_portion(&mut self, portion: Portion) -> Result<Option<u64>, EngineError> {
        let Portion { path, session, new, origin, gone, messages, usages, before, mark } = portion;
        let now = self.store.read().recording(&path)?;
        if now.map(|row| row.mark) != before {
            return Ok(None);
        }
        let id = match session {
            Some(id) => id,
            None => self.create_recorded(new)?,
        };
        if let Some((first, last)) = gone {
            self.change_view(id, "import-sessions", |state| {
                (first..=last).for_each(|number| state.active.remove(number));
            })?;
        }
        self.append_recorded(id, messages)?;
        self.note_origin(id, origin)?;
        self.note_usages(id, usages)?;
        self.store.change()?.note_recording(&path, &RecordingRow { session: id, mark })?;
        self.session_changed(id, "import-sessions")?;
        Ok(Some(id))
    }

    /// Stores the facts that an agent recorded about a session.
    fn note_origin(&mut self, id: u64, new: RecordedOrigin) -> Result<(), EngineError> {
        let row = self.row(id)?;
        let old = row.origin;
        let origin = RecordedOrigin {
            agent: new.agent.or(old.agent),
            session: new.session.or(old.session),
            parent: new.parent.or(old.parent),
            folder: new.folder.or(old.folder),
            branch: new.branch.or(old.branch),
            remote: new.remote.or(old.remote),
            open_since: new.open_since,
            is_stopped: new.is_stopped,
        };
        self.store.change()?.set_session_origin(id, &origin)?;
        self.sessions.change_row(id, |row| row.origin = origin);
        Ok(())
    }

    /// Records the windows that an agent sent to its model, and their costs.
    fn note_usages(&mut self, id: u64, usages: Vec<UsageRow>) -> Result<(), EngineError> {
        let now = self.now();
        for row in usages {
            let row = UsageRow { session: Some(id), at: row.at.min(now), ..row };
            let store = self.store.change()?;
            let line = store.log_usage(&row)?;
            store.add_spent(line, &row.spent.unwrap_or_default())?;
            self.moments.windows.insert(id, self.counters.give_version());
        }
        Ok(())
    }

    fn create_recorded(&mut self, mut new: NewSession) -> Result<u64, EngineError> {
        if let Some(row) = self.current_session()? {
            self.sessions.keep_current(row.id);
        }
        new.name = self.free_name_like(new.name)?;
        new.created = new.created.min(self.now());
        let id = self.store.change()?.create_session(&new)?;
        self.sessions.touch(id);
        Ok(id)
    }

    /// Appends messages with their own times. Does not read the session into memory, since reading
    /// a long one would take long.
    fn append_recorded(&mut self, id: u64, new: Vec<NewMessage>) -> Result<(), EngineError> {
        let now = self.now();
        let row = self.row(id)?;
        let mut newest = not_ahead(row.updated, now);
        let timed = new.into_iter().map(|message| {
            newest = newest.max(message.timestamp.unwrap_or(newest).min(now));
            NewMessage { timestamp: Some(newest), ..message }
        });
        if self.sessions.has(id) {
            let timed = timed.collect();
            return self.append(id, timed).map(drop);
        }
        let number = |(message, number): (NewMessage, u64)| {
            let time = message.timestamp.unwrap_or(now);
            message.into_message(number, time)
        };
        let messages: Vec<Message> = timed.zip(row.messages + 1..).map(number).collect();
        self.store.change()?.append_messages(id, &messages)?;
        self.sessions.touch(id);
        Ok(())
    }

    /// Returns the name `wanted`, with a number appended if a session has that name.
    pub(in crate::engine) fn free_name_like(
        &mut self,
        wanted: String,
    ) -> Result<String, EngineError> {
        let mut name = wanted.clone();
        for number in 2.. {
            if self.store.read().session_named(&name)?.is_none() {
                break;
            }
            name = format!("{wanted} ({number})");
        }
        Ok(name)
    }
}
