//! Rows for sessions, with totals that are updated as messages arrive.

use rusqlite::{ErrorCode, Row, params};

use super::super::StoreError;
use super::super::session::{NewSession, RecordedOrigin, SessionRow, last_said};
use super::message::Figures;
use super::sql::{Column, Statements};
use super::{TableReading, Writing, words};
use crate::session::message::Message;

const COLUMNS: &str = "id, name, manager, project, parent, parent_messages, created, updated, \
                       deleted, messages, turns, tokens, settings, learned, version, source, \
                       last_role, last_words, agent, agent_session, agent_parent, folder, branch, \
                       remote, open_since, is_stopped, \
                       (SELECT machine.name FROM known JOIN machine ON machine.id = known.machine \
                        WHERE known.kind = 'session' AND known.row = session.id \
                              AND machine.place IS NULL) AS machine, told";
/// Columns that a new session fills.
const NEW: &str = "name, manager, project, parent, parent_messages, created, updated, messages, \
                   turns, tokens, settings, learned, version, source, told";

impl TableReading<'_> {
    /// Returns a session, deleted or not.
    pub fn session(&self, id: u64) -> Result<Option<SessionRow>, StoreError> {
        self.db.row(&format!("SELECT {COLUMNS} FROM session WHERE id = ?1 AND sound"), [id], row_of)
    }

    /// Returns the session with this name that is not deleted.
    pub fn session_named(&self, name: &str) -> Result<Option<SessionRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM session WHERE name = ?1 AND deleted IS NULL AND sound");
        self.db.row(&sql, [name], row_of)
    }

    /// Returns the deleted session with this name or number. If there are several, returns the one
    /// that was deleted last.
    pub fn deleted_session(
        &self,
        name: &str,
        number: Option<u64>,
    ) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM session WHERE deleted IS NOT NULL AND (name = ?1 OR id = ?2)
                   AND sound
             ORDER BY deleted DESC, id DESC LIMIT 1"
        );
        self.db.row(&sql, params![name, number], row_of)
    }

    /// Returns the session with the latest [`updated`](SessionRow::updated) among those that are
    /// neither deleted, nor a subagent's,
    /// nor another machine's; `None` if there are no such sessions.
    pub fn latest_session(&self) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM session
             WHERE deleted IS NULL AND agent_parent IS NULL AND machine IS NULL AND sound
             ORDER BY updated DESC, id DESC LIMIT 1"
        );
        self.db.row(&sql, [], row_of)
    }

    /// Returns the sessions that an agent recorded with this id, deleted or not, the first one
    /// first.
    pub fn session_of_agent(
        &self,
        agent: &str,
        id: &str,
    ) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM session WHERE agent = ?1 AND agent_session = ?2 AND sound
             ORDER BY id LIMIT 1"
        );
        self.db.row(&sql, [agent, id], row_of)
    }

    /// Returns the project of the latest session whose agent worked in a folder that is not the
    /// project's.
    pub fn project_of_folder(&self, folder: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT ifnull(project, told) AS named FROM session
                   WHERE folder = ?1 AND named IS NOT NULL ORDER BY id DESC LIMIT 1";
        self.db.value(sql, [folder])
    }

    /// Returns the number of sessions, deleted ones included.
    pub fn session_count(&self) -> Result<u64, StoreError> {
        Ok(self.db.value("SELECT count(*) FROM session", [])?.unwrap_or_default())
    }

    /// Returns the sessions, the latest [`updated`](SessionRow::updated) first. Deleted sessions
    /// are included only if `with_deleted`.
    pub fn sessions(&self, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError> {
        self.db.rows(&list_sql(), [with_deleted], row_of)
    }

    /// Returns the messages numbered `from` to `to`, both included, in order. Numbers without a
    /// message are skipped.
    pub fn messages(&self, session: u64, from: u64, to: u64) -> Result<Vec<Message>, StoreError> {
        let last = to.min(self.message_count(session)?);
        let count = usize::try_from((last + 1).saturating_sub(from)).unwrap_or(0);
        let mut messages = Vec::with_capacity(count);
        for (session, from, to) in self.parts(session, from, last)? {
            self.own_messages(session, (from, to), &mut messages)?;
        }
        Ok(messages)
    }

    /// Returns the number of messages of a session; 0 when there is no such session.
    pub fn message_count(&self, session: u64) -> Result<u64, StoreError> {
        Ok(self.messages_of(session)?.unwrap_or(0))
    }

    /// Returns the calibration of a model's token counts, as the text that the engine stored.
    pub fn calibration(&self, model: &str) -> Result<Option<String>, StoreError> {
        self.db.value("SELECT text FROM calibration WHERE model = ?1", [model])
    }

    fn messages_of(&self, session: u64) -> Result<Option<u64>, StoreError> {
        self.db.value("SELECT messages FROM session WHERE id = ?1", [session])
    }

    /// Returns the totals over the messages that a fork shares with its parent.
    fn shared_figures(&self, (parent, count): (u64, u64)) -> Result<Figures, StoreError> {
        let mut sum = Figures::default();
        for (session, _, to) in self.parts(parent, 1, count)? {
            // Every part begins with its session's own first message.
            let Figures { messages, turns, tokens } = self.own_figures(session, to)?;
            sum.messages += messages;
            sum.turns += turns;
            sum.tokens += tokens;
        }
        match sum.messages == count {
            true => Ok(sum),
            false => Err(StoreError::Damaged(format!(
                "session {parent} has only {} of the {count} messages that a fork shares with it",
                sum.messages
            ))),
        }
    }

    /// Finds the sessions whose rows hold messages `from` to `to` of a session. Returns one part
    /// per such session, oldest first: the session, and the numbers of the first and last of these
    /// messages that it holds.
    pub(super) fn parts(
        &self,
        mut session: u64,
        from: u64,
        mut to: u64,
    ) -> Result<Vec<(u64, u64, u64)>, StoreError> {
        type Parent = (Option<u64>, Option<u64>);
        let sql = "SELECT parent, parent_messages FROM session WHERE id = ?1";
        let mut found = Vec::new();
        while from <= to {
            let parent = self.db.row(sql, [session], |row| Parent::try_from(row))?;
            let (parent, shared) = match parent {
                Some((Some(parent), Some(shared))) => (parent, shared),
                Some(_) => {
                    found.push((session, from, to));
                    break;
                }
                None => break,
            };
            if to > shared {
                found.push((session, from.max(shared + 1), to));
            }
            (session, to) = (parent, to.min(shared));
        }
        found.reverse();
        Ok(found)
    }
}

impl Writing<'_> {
    /// Creates a session and returns its number.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`].
    pub fn create_session(&self, session: &NewSession) -> Result<u64, StoreError> {
        let NewSession { name, manager, project, told, settings, created, parent, source } =
            session;
        let shared = parent.map_or(Ok(Figures::default()), |parent| self.shared_figures(parent))?;
        let sql = format!(
            "INSERT INTO session ({NEW})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9, ?10, '', 0, ?11, ?12)"
        );
        let values = params![
            name,
            manager,
            project,
            parent.map(|(session, _)| session),
            parent.map(|(_, messages)| messages),
            created,
            shared.messages,
            shared.turns,
            shared.tokens,
            settings,
            source,
            told,
        ];
        let id = self.db.insert(&sql, values).map_err(|error| name_error(error, name))?;
        self.index_name(id, name)?;
        Ok(id)
    }

    /// Renames a session.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when another session that is not deleted has the name. The renamed
    /// session may itself be deleted.
    pub fn rename_session(&self, id: u64, name: &str) -> Result<(), StoreError> {
        if self.session_named(name)?.is_some_and(|other| other.id != id) {
            return Err(StoreError::NameTaken(name.to_owned()));
        }
        let sql = "UPDATE session SET name = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, name]))?;
        self.index_name(id, name)
    }

    /// Replaces the settings of a session.
    pub fn set_session_settings(&self, id: u64, settings: &str) -> Result<(), StoreError> {
        let sql = "UPDATE session SET settings = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, settings]))
    }

    /// Replaces the manager that a session was created with.
    pub fn set_session_manager(&self, id: u64, manager: &str) -> Result<(), StoreError> {
        let sql = "UPDATE session SET manager = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, manager]))
    }

    /// Gives a session its project.
    pub fn set_session_project(&self, id: u64, project: &str) -> Result<(), StoreError> {
        let sql = "UPDATE session SET project = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, project]))
    }

    /// Replaces the facts that an agent recorded about a session.
    pub fn set_session_origin(&self, id: u64, origin: &RecordedOrigin) -> Result<(), StoreError> {
        let RecordedOrigin {
            agent,
            session,
            parent,
            folder,
            branch,
            remote,
            open_since,
            is_stopped,
        } = origin;
        let sql = "UPDATE session SET agent = ?2, agent_session = ?3, agent_parent = ?4,
                          folder = ?5, branch = ?6, remote = ?7, open_since = ?8,
                          is_stopped = ?9
                   WHERE id = ?1";
        let values =
            params![id, agent, session, parent, folder, branch, remote, open_since, is_stopped];
        existing(id, self.db.change(sql, values))
    }

    /// Replaces the figures learned in the turns of a session.
    pub fn set_learned(&self, id: u64, learned: &str) -> Result<(), StoreError> {
        let sql = "UPDATE session SET learned = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, learned]))
    }

    /// Sets the version of a session.
    pub fn set_session_version(&self, id: u64, version: u64) -> Result<(), StoreError> {
        let sql = "UPDATE session SET version = ?2 WHERE id = ?1";
        existing(id, self.db.change(sql, params![id, version]))
    }

    /// Marks a session as deleted at the time `at` (in Unix seconds), or restores the session when
    /// `at` is `None`.
    ///
    /// # Errors
    /// [`StoreError::NameTaken`] when the session cannot be restored because another session has
    /// its name now.
    pub fn set_session_deleted(&self, id: u64, at: Option<i64>) -> Result<(), StoreError> {
        let name: Option<String> = self.db.value("SELECT name FROM session WHERE id = ?1", [id])?;
        let sql = "UPDATE session SET deleted = ?2 WHERE id = ?1";
        let changed = self.db.change(sql, params![id, at]);
        existing(id, changed.map_err(|error| name_error(error, &name.unwrap_or_default())))
    }

    /// Appends messages to a session's log. Their numbers must continue those of the log.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the numbers do not continue the log; then nothing is appended.
    pub fn append_messages(&self, session: u64, messages: &[Message]) -> Result<(), StoreError> {
        let last = self.messages_of(session)?.ok_or(StoreError::NoSuchSession(session))?;
        let Some(newest) = messages.iter().map(|message| message.timestamp).max() else {
            return Ok(());
        };
        let (role, words) = last_said(messages);
        let Figures { messages, turns, tokens } = self.append(session, last, messages)?;
        self.db.change(
            "UPDATE session SET messages = messages + ?2, turns = turns + ?3, tokens = tokens + ?4,
                                updated = max(updated, ?5), last_role = ?6,
                                last_words = ifnull(?7, last_words)
             WHERE id = ?1",
            params![session, messages, turns, tokens, newest, role.as_ref().map(Column), words],
        )?;
        Ok(())
    }

    /// Stores the calibration of a model's token counts.
    pub fn set_calibration(&self, model: &str, text: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO calibration (model, text) VALUES (?1, ?2)";
        self.db.change(sql, [model, text]).map(drop)
    }

    fn index_name(&self, id: u64, name: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO session_words (rowid, words) VALUES (?1, ?2)";
        self.db.change(sql, params![id, words::indexed(name)]).map(drop)
    }
}

/// Returns the statement that lists sessions.
fn list_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM session WHERE (deleted IS NULL OR ?1) AND sound
         ORDER BY updated DESC, id DESC"
    )
}

fn existing(id: u64, changed: Result<usize, StoreError>) -> Result<(), StoreError> {
    if changed? == 0 { Err(StoreError::NoSuchSession(id)) } else { Ok(()) }
}

/// Turns a violated constraint into [`StoreError::NameTaken`]: only names have to be unique.
fn name_error(error: StoreError, name: &str) -> StoreError {
    match &error {
        StoreError::Write(cause)
            if cause.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) =>
        {
            StoreError::NameTaken(name.to_owned())
        }
        _ => error,
    }
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    #[cfg(test)]
    super::super::testing::note_row_read();
    let parent: Option<u64> = row.get(4)?;
    Ok(SessionRow {
        id: row.get(0)?,
        name: row.get(1)?,
        manager: row.get(2)?,
        project: row.get(3)?,
        parent: parent.zip(row.get(5)?),
        created: row.get(6)?,
        updated: row.get(7)?,
        deleted: row.get(8)?,
        messages: row.get(9)?,
        turns: row.get(10)?,
        tokens: row.get(11)?,
        settings: row.get(12)?,
        learned: row.get(13)?,
        version: row.get(14)?,
        source: row.get(15)?,
        last_role: row.get::<_, Option<Column<_>>>(16)?.map(|role| role.0),
        last_words: row.get(17)?,
        origin: RecordedOrigin {
            agent: row.get(18)?,
            session: row.get(19)?,
            parent: row.get(20)?,
            folder: row.get(21)?,
            branch: row.get(22)?,
            remote: row.get(23)?,
            open_since: row.get(24)?,
            is_stopped: row.get(25)?,
        },
        machine: row.get(26)?,
        told: row.get(27)?,
    })
}

#[cfg(test)]
mod tests;
