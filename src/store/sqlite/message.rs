//! Rows for messages, and their words in the full-text table.
//!
//! A row's id combines the numbers of session and message. A fork only has rows for messages that
//! it does not share with its parent.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::super::{StoreError, counter_name};
use super::words;
use crate::session::message::{Message, Phase, Role, Signals, ToolCall};

/// Number of bits that the message's number takes in a row's id.
pub(super) const NUMBER_BITS: u32 = 32;
const LAST_NUMBER: u64 = (1 << NUMBER_BITS) - 1;

const COLUMNS: &str = "id, role, phase, timestamp, pinned, tokens, counted_by, signals, \
                       tool_call_id, tool_calls, content";

/// Totals over some messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Figures {
    pub(super) messages: u64,
    pub(super) turns: u64,
    pub(super) tokens: u64,
}

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

/// Inserts messages, numbered from `last + 1`.
pub(super) fn append(
    db: &Connection,
    session: u64,
    last: u64,
    messages: &[Message],
) -> Result<Figures, StoreError> {
    check_numbers(session, last, messages)?;
    let mut insert = db.prepare_cached(&format!(
        "INSERT INTO message ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
    ))?;
    let mut index =
        db.prepare_cached("INSERT INTO message_words (rowid, words) VALUES (?1, ?2)")?;
    let mut figures = Figures::default();
    for message in messages {
        let id = row_id(session, message.number);
        let calls = (!message.tool_calls.is_empty())
            .then(|| serde_json::to_string(&message.tool_calls))
            .transpose()
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        insert.execute(params![
            id,
            message.role.name(),
            message.phase.map(Phase::name),
            message.timestamp,
            message.pinned,
            message.tokens,
            message.counted_by,
            bits(message.signals),
            message.tool_call_id,
            calls,
            &*message.content,
        ])?;
        index.execute(params![id, words::indexed(&message.content)])?;
        figures.messages += 1;
        figures.turns += u64::from(message.role == Role::User);
        figures.tokens += message.tokens;
    }
    Ok(figures)
}

/// Reads the rows of one session with these numbers, both included, and appends them to `messages`.
pub(super) fn read(
    db: &Connection,
    session: u64,
    (from, to): (u64, u64),
    messages: &mut Vec<Message>,
) -> Result<(), StoreError> {
    let mut query = db.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM message WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
    ))?;
    let mut rows = query.query([row_id(session, from), row_id(session, to)])?;
    while let Some(row) = rows.next()? {
        messages.push(message_of(row)?);
    }
    Ok(())
}

/// Returns the totals over one session's rows up to this number.
pub(super) fn figures(db: &Connection, session: u64, to: u64) -> Result<Figures, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT count(*), coalesce(sum(role = 'user'), 0), coalesce(sum(tokens), 0)
         FROM message WHERE id BETWEEN ?1 AND ?2",
    )?;
    Ok(query.query_row([row_id(session, 1), row_id(session, to)], |row| {
        Ok(Figures { messages: row.get(0)?, turns: row.get(1)?, tokens: row.get(2)? })
    })?)
}

/// Parses the role in a row.
pub(super) fn role_of(name: &str) -> Result<Role, StoreError> {
    Role::from_name(name)
        .ok_or_else(|| StoreError::Damaged(format!("a message has the unknown role {name:?}")))
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

fn message_of(row: &Row<'_>) -> Result<Message, StoreError> {
    let phase = match row.get_ref(2)? {
        ValueRef::Null => None,
        name => Some(phase_of(text(name)?)?),
    };
    let tool_calls: Vec<ToolCall> = match row.get_ref(9)? {
        ValueRef::Null => Vec::new(),
        calls => serde_json::from_str(text(calls)?).map_err(|error| {
            StoreError::Damaged(format!("cannot parse the tool calls of a message: {error}"))
        })?,
    };
    Ok(Message {
        number: place(row.get(0)?).1,
        role: role_of(text(row.get_ref(1)?)?)?,
        phase,
        timestamp: row.get(3)?,
        pinned: row.get(4)?,
        tokens: row.get(5)?,
        counted_by: counter_name(text(row.get_ref(6)?)?),
        signals: signals(row.get(7)?),
        tool_call_id: row.get(8)?,
        tool_calls,
        content: Arc::from(text(row.get_ref(10)?)?),
    })
}

/// Parses the phase in a row.
pub(super) fn phase_of(name: &str) -> Result<Phase, StoreError> {
    Phase::from_name(name).ok_or_else(|| StoreError::Damaged(format!("unknown phase {name:?}")))
}

fn text(value: ValueRef<'_>) -> Result<&str, StoreError> {
    value
        .as_str()
        .map_err(|error| StoreError::Damaged(format!("a message is not UTF-8 text: {error}")))
}

fn bits(signals: Signals) -> i64 {
    let Signals { error, success, operation, long } = signals;
    [error, success, operation, long].iter().rev().fold(0, |bits, bit| bits << 1 | i64::from(*bit))
}

fn signals(bits: i64) -> Signals {
    let has = |bit: i64| bits >> bit & 1 == 1;
    Signals { error: has(0), success: has(1), operation: has(2), long: has(3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_signals_read_back() {
        for (session, number) in [(1, 1), (1, LAST_NUMBER), ((1 << 31) - 1, 7)] {
            assert_eq!(place(row_id(session, number)), (session, number));
        }
        for pattern in 0..16 {
            assert_eq!(bits(signals(pattern)), pattern);
        }
    }
}
