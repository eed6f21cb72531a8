//! Rows for messages, and their words in the full-text table.
//!
//! A row's id combines the numbers of session and message. A fork (a session that continues
//! another) only has rows for messages that it does not share with its parent.

use rusqlite::types::{FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Row, params};

use super::super::{StoreError, counter_name};
use super::sql::{Column, Columns, Statements, StoredInColumn, columns, damaged};
use super::{TableReading, Writing, words};
use crate::session::message::{Message, Role, Signals};

/// Number of bits that the message's number takes in a row's id.
pub(super) const NUMBER_BITS: u32 = 32;
const LAST_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

const COLUMNS: &str = "id, role, phase, timestamp, pinned, tokens, counted_by, signals, \
                       tool_call_id, tool_calls, content, opaque";

/// Totals over some messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Figures {
    pub(super) messages: u64,
    pub(super) turns: u64,
    pub(super) tokens: u64,
}

columns!(Figures { messages, turns, tokens });

/// Returns the id of a message's row; numbers above the maximum yield the session's last id.
pub(super) fn row_id(session: u64, number: u64) -> i64 {
    let id = (session << NUMBER_BITS) | number.min(LAST_NUMBER);
    id.cast_signed()
}

/// Splits a row's id into the numbers of session and message.
pub(super) fn place(row_id: i64) -> (u64, u64) {
    let id = row_id.cast_unsigned();
    (id >> NUMBER_BITS, id & LAST_NUMBER)
}

impl TableReading<'_> {
    /// Reads the messages numbered `from` to `to`, both included, from the session's own rows, and
    /// appends them to `messages`.
    pub(super) fn own_messages(
        &self,
        session: u64,
        (from, to): (u64, u64),
        messages: &mut Vec<Message>,
    ) -> Result<(), StoreError> {
        let mut query = self.db.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM message WHERE id BETWEEN ?1 AND ?2 AND sound ORDER BY id"
        ))?;
        let mut rows = query.query([row_id(session, from), row_id(session, to)])?;
        while let Some(row) = rows.next()? {
            messages.push(message_of(row)?);
        }
        Ok(())
    }

    /// Returns the totals over a session's own rows up to the message with number `to`.
    pub(super) fn own_figures(&self, session: u64, to: u64) -> Result<Figures, StoreError> {
        let sql = "SELECT count(*), coalesce(sum(role = 'user'), 0), coalesce(sum(tokens), 0)
                   FROM message WHERE id BETWEEN ?1 AND ?2";
        let ids = [row_id(session, 1), row_id(session, to)];
        Ok(self.db.row(sql, ids, Figures::of)?.unwrap_or_default())
    }
}

impl Writing<'_> {
    /// Inserts messages, which must be numbered from `last + 1`, and returns their totals.
    pub(super) fn append(
        &self,
        session: u64,
        last: u64,
        messages: &[Message],
    ) -> Result<Figures, StoreError> {
        check_numbers(session, last, messages)?;
        let mut insert = self.db.prepare_cached(&format!(
            "INSERT INTO message ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
                                            ?12)"
        ))?;
        let mut index =
            self.db.prepare_cached("INSERT INTO message_words (rowid, words) VALUES (?1, ?2)")?;
        let mut figures = Figures::default();
        for message in messages {
            let id = row_id(session, message.number);
            let calls = (!message.tool_calls.is_empty())
                .then(|| serde_json::to_string(&message.tool_calls))
                .transpose()?;
            let opaque = message.opaque.as_ref().map(|opaque| opaque.to_string());
            insert.execute(params![
                id,
                Column(&message.role),
                message.phase.as_ref().map(Column),
                message.timestamp,
                message.pinned,
                message.tokens,
                message.counted_by,
                Column(&message.signals),
                message.tool_call_id,
                calls,
                &*message.content,
                opaque,
            ])?;
            index.execute(params![id, words::indexed(&message.content)])?;
            figures.messages += 1;
            figures.turns += u64::from(message.role == Role::User);
            figures.tokens += message.tokens;
        }
        Ok(figures)
    }
}

fn check_numbers(session: u64, last: u64, messages: &[Message]) -> Result<(), StoreError> {
    let follow = messages.iter().zip(last + 1..).all(|(message, number)| message.number == number);
    let fit = last + (messages.len() as u64) < LAST_NUMBER && session >> (63 - NUMBER_BITS) == 0;
    match follow && fit {
        true => Ok(()),
        false => Err(StoreError::Damaged(format!(
            "new messages of session {session} do not continue after message {last}"
        ))),
    }
}

fn message_of(row: &Row<'_>) -> rusqlite::Result<Message> {
    let not_text = |error| damaged(format!("a message is not UTF-8 text: {error}"));
    let tool_calls = match row.get_ref(9)? {
        ValueRef::Null => Vec::new(),
        calls => serde_json::from_str(calls.as_str().map_err(not_text)?).map_err(|error| {
            damaged(format!("cannot parse the tool calls of a message: {error}"))
        })?,
    };
    let opaque: Option<String> = row.get(11)?;
    let opaque =
        opaque.map(|opaque| serde_json::from_str(&opaque)).transpose().map_err(|error| {
            damaged(format!("cannot parse what a server wants back with a message: {error}"))
        })?;
    Ok(Message {
        number: place(row.get(0)?).1,
        role: row.get::<_, Column<_>>(1)?.0,
        phase: row.get::<_, Option<Column<_>>>(2)?.map(|phase| phase.0),
        timestamp: row.get(3)?,
        pinned: row.get(4)?,
        tokens: row.get(5)?,
        counted_by: counter_name(row.get_ref(6)?.as_str().map_err(not_text)?),
        signals: row.get::<_, Column<_>>(7)?.0,
        tool_call_id: row.get(8)?,
        tool_calls,
        opaque,
        content: row.get_ref(10)?.as_str().map_err(not_text)?.into(),
    })
}

/// Stores signals as the bits of a number.
impl StoredInColumn for Signals {
    fn store(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let Self { error, success, operation, long } = *self;
        let bits = [error, success, operation, long].into_iter().rev();
        Ok(bits.fold(0, |bits, bit| bits << 1 | i64::from(bit)).into())
    }

    fn restore(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bits = value.as_i64()?;
        let has = |bit: i64| bits >> bit & 1 == 1;
        Ok(Self { error: has(0), success: has(1), operation: has(2), long: has(3) })
    }
}
