//! Rows for sessions, with totals that are updated as messages arrive.

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use super::super::StoreError;
use super::super::session::{
    CheckpointRow, NewCheckpoint, NewSession, PhaseUsage, ReadSessions, SearchHit, SessionRow,
    Spent, StateRow, StateSummary, UsageRow, WriteSessions,
};
use super::super::view::{NewView, Notes, ViewQuery, ViewRow};
use super::message::{self, Figures};
use super::{SqliteStore, search, state, usage, view, words};
use crate::session::message::{Message, Phase};

const COLUMNS: &str = "id, name, manager, project, parent, parent_messages, created, updated, \
                       deleted, messages, turns, tokens, settings, learned";

impl ReadSessions for SqliteStore {
    fn session(&mut self, id: u64) -> Result<Option<SessionRow>, StoreError> {
        read(&self.db, id)
    }

    fn session_named(&mut self, name: &str) -> Result<Option<SessionRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM session WHERE name = ?1 AND deleted IS NULL");
        Ok(self.db.prepare_cached(&sql)?.query_row([name], row_of).optional()?)
    }

    fn sessions(&mut self, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError> {
        list(&self.db, with_deleted)
    }

    fn messages(&mut self, session: u64, from: u64, to: u64) -> Result<Vec<Message>, StoreError> {
        let last = to.min(self.message_count(session)?);
        let count = usize::try_from((last + 1).saturating_sub(from)).unwrap_or(0);
        let mut messages = Vec::with_capacity(count);
        for (session, from, to) in parts(&self.db, session, from, last)? {
            message::read(&self.db, session, (from, to), &mut messages)?;
        }
        Ok(messages)
    }

    fn message_count(&mut self, session: u64) -> Result<u64, StoreError> {
        let mut query = self.db.prepare_cached("SELECT messages FROM session WHERE id = ?1")?;
        Ok(query.query_row([session], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    fn newest_state(&mut self, session: u64) -> Result<Option<StateRow>, StoreError> {
        state::newest(&self.db, session)
    }

    fn state(&mut self, session: u64, number: u64) -> Result<Option<StateRow>, StoreError> {
        state::read(&self.db, session, number)
    }

    fn states(&mut self, session: u64, limit: u64) -> Result<Vec<StateSummary>, StoreError> {
        state::list(&self.db, session, limit)
    }

    fn checkpoints(&mut self, session: u64) -> Result<Vec<CheckpointRow>, StoreError> {
        state::checkpoints(&self.db, session)
    }

    fn checkpoint(&mut self, session: u64, id: u64) -> Result<Option<CheckpointRow>, StoreError> {
        state::checkpoint(&self.db, session, id)
    }

    fn search_sessions(
        &mut self,
        text: &str,
        limit: u64,
        with_deleted: bool,
    ) -> Result<Vec<SearchHit>, StoreError> {
        search::sessions(&self.db, text, limit, with_deleted)
    }

    fn usage(
        &mut self,
        session: Option<u64>,
        phase: Option<Phase>,
        limit: u64,
    ) -> Result<Vec<UsageRow>, StoreError> {
        usage::last(&self.db, session, phase, limit)
    }

    fn usage_by_phase(&mut self, session: Option<u64>) -> Result<Vec<PhaseUsage>, StoreError> {
        usage::by_phase(&self.db, session)
    }

    fn views(&mut self, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, StoreError> {
        view::last(&self.db, wanted)
    }

    fn notes_before(
        &mut self,
        session: u64,
        message: u64,
        id: u64,
    ) -> Result<Option<Notes>, StoreError> {
        view::notes_before(&self.db, session, message, id)
    }

    fn view_like(&mut self, view: &NewView) -> Result<Option<ViewRow>, StoreError> {
        view::like(&self.db, view)
    }

    fn calibration(&mut self, model: &str) -> Result<Option<String>, StoreError> {
        let mut query = self.db.prepare_cached("SELECT text FROM calibration WHERE model = ?1")?;
        Ok(query.query_row([model], |row| row.get(0)).optional()?)
    }
}

impl WriteSessions for SqliteStore {
    fn create_session(&mut self, session: &NewSession) -> Result<u64, StoreError> {
        self.writing()?;
        create(&self.db, session)
    }

    fn rename_session(&mut self, id: u64, name: &str) -> Result<(), StoreError> {
        self.writing()?;
        rename(&self.db, id, name)
    }

    fn set_session_settings(&mut self, id: u64, settings: &str) -> Result<(), StoreError> {
        self.writing()?;
        set_text(&self.db, "UPDATE session SET settings = ?2 WHERE id = ?1", id, settings)
    }

    fn set_learned(&mut self, id: u64, learned: &str) -> Result<(), StoreError> {
        self.writing()?;
        set_text(&self.db, "UPDATE session SET learned = ?2 WHERE id = ?1", id, learned)
    }

    fn set_session_deleted(&mut self, id: u64, at: Option<i64>) -> Result<(), StoreError> {
        self.writing()?;
        set_deleted(&self.db, id, at)
    }

    fn append_messages(&mut self, session: u64, messages: &[Message]) -> Result<(), StoreError> {
        self.writing()?;
        append(&self.db, session, messages)
    }

    fn append_state(&mut self, session: u64, state: &StateRow) -> Result<(), StoreError> {
        self.writing()?;
        state::append(&self.db, session, state)
    }

    fn add_checkpoint(
        &mut self,
        session: u64,
        checkpoint: &NewCheckpoint,
    ) -> Result<u64, StoreError> {
        self.writing()?;
        state::add_checkpoint(&self.db, session, checkpoint)
    }

    fn log_usage(&mut self, usage: &UsageRow) -> Result<u64, StoreError> {
        self.writing()?;
        usage::log(&self.db, usage)
    }

    fn add_spent(&mut self, number: u64, spent: &Spent) -> Result<(), StoreError> {
        self.writing()?;
        usage::add_spent(&self.db, number, spent)
    }

    fn add_view(&mut self, row: &NewView) -> Result<u64, StoreError> {
        self.writing()?;
        view::add(&self.db, row)
    }

    fn set_calibration(&mut self, model: &str, text: &str) -> Result<(), StoreError> {
        self.writing()?;
        self.db
            .prepare_cached("INSERT OR REPLACE INTO calibration (model, text) VALUES (?1, ?2)")?
            .execute([model, text])?;
        Ok(())
    }
}

fn create(db: &Connection, session: &NewSession) -> Result<u64, StoreError> {
    let NewSession { name, manager, project, settings, created, parent } = session;
    let shared = parent.map_or(Ok(Figures::default()), |parent| shared_figures(db, parent))?;
    let mut insert = db.prepare_cached(&format!(
        "INSERT INTO session ({COLUMNS})
         VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?6, NULL, ?7, ?8, ?9, ?10, '')"
    ))?;
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
    ];
    insert.execute(values).map_err(|error| name_error(error, name))?;
    let id = db.last_insert_rowid().unsigned_abs();
    index_name(db, id, name)?;
    Ok(id)
}

fn read(db: &Connection, id: u64) -> Result<Option<SessionRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
    Ok(db.prepare_cached(&sql)?.query_row([id], row_of).optional()?)
}

fn list(db: &Connection, with_deleted: bool) -> Result<Vec<SessionRow>, StoreError> {
    let mut query = db.prepare_cached(&list_sql())?;
    Ok(query.query_map([with_deleted], row_of)?.collect::<Result<_, _>>()?)
}

fn list_sql() -> String {
    format!(
        "SELECT {COLUMNS} FROM session WHERE deleted IS NULL OR ?1 ORDER BY updated DESC, id DESC"
    )
}

fn rename(db: &Connection, id: u64, name: &str) -> Result<(), StoreError> {
    let taken: bool = db
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM session
                            WHERE name = ?2 AND deleted IS NULL AND id <> ?1)",
        )?
        .query_row(params![id, name], |row| row.get(0))?;
    if taken {
        return Err(StoreError::NameTaken(name.to_owned()));
    }
    let sql = "UPDATE session SET name = ?2 WHERE id = ?1";
    existing(id, db.prepare_cached(sql)?.execute(params![id, name])?)?;
    index_name(db, id, name)
}

fn set_deleted(db: &Connection, id: u64, at: Option<i64>) -> Result<(), StoreError> {
    let name: Option<String> = db
        .prepare_cached("SELECT name FROM session WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    let changed = db
        .prepare_cached("UPDATE session SET deleted = ?2 WHERE id = ?1")?
        .execute(params![id, at])
        .map_err(|error| name_error(error, name.as_deref().unwrap_or_default()))?;
    existing(id, changed)
}

fn append(db: &Connection, session: u64, messages: &[Message]) -> Result<(), StoreError> {
    let mut query = db.prepare_cached("SELECT messages FROM session WHERE id = ?1")?;
    let last: Option<u64> = query.query_row([session], |row| row.get(0)).optional()?;
    let last = last.ok_or(StoreError::NoSuchSession(session))?;
    let Some(newest) = messages.iter().map(|message| message.timestamp).max() else {
        return Ok(());
    };
    let Figures { messages, turns, tokens } = message::append(db, session, last, messages)?;
    db.prepare_cached(
        "UPDATE session SET messages = messages + ?2, turns = turns + ?3, tokens = tokens + ?4,
                            updated = max(updated, ?5)
         WHERE id = ?1",
    )?
    .execute(params![session, messages, turns, tokens, newest])?;
    Ok(())
}

/// Returns the totals over the messages that a fork shares with its parent.
fn shared_figures(db: &Connection, (parent, count): (u64, u64)) -> Result<Figures, StoreError> {
    let mut sum = Figures::default();
    for (session, _, to) in parts(db, parent, 1, count)? {
        // Every part begins with its session's own first message.
        let Figures { messages, turns, tokens } = message::figures(db, session, to)?;
        sum.messages += messages;
        sum.turns += turns;
        sum.tokens += tokens;
    }
    match sum.messages == count {
        true => Ok(sum),
        false => Err(StoreError::Damaged(format!(
            "session {parent} has only {} of the {count} messages that a fork shares",
            sum.messages
        ))),
    }
}

/// Finds the sessions whose rows hold messages `from` to `to` of a session. Returns the session,
/// the first and the last number of each part, oldest first.
fn parts(
    db: &Connection,
    session: u64,
    from: u64,
    to: u64,
) -> Result<Vec<(u64, u64, u64)>, StoreError> {
    let sql = "SELECT parent, parent_messages FROM session WHERE id = ?1";
    let mut query = db.prepare_cached(sql)?;
    let mut found = Vec::new();
    let (mut session, mut to) = (session, to);
    while from <= to {
        let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let parent: Option<(Option<u64>, Option<u64>)> =
            query.query_row([session], pair).optional()?;
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

fn index_name(db: &Connection, id: u64, name: &str) -> Result<(), StoreError> {
    db.prepare_cached("INSERT OR REPLACE INTO session_words (rowid, words) VALUES (?1, ?2)")?
        .execute(params![id, words::indexed(name)])?;
    Ok(())
}

fn set_text(db: &Connection, sql: &str, id: u64, text: &str) -> Result<(), StoreError> {
    existing(id, db.prepare_cached(sql)?.execute(params![id, text])?)
}

fn existing(id: u64, changed: usize) -> Result<(), StoreError> {
    if changed == 0 { Err(StoreError::NoSuchSession(id)) } else { Ok(()) }
}

fn name_error(error: rusqlite::Error, name: &str) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::NameTaken(name.to_owned()),
        _ => error.into(),
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
    })
}

#[cfg(test)]
mod tests;
