//! Rows for the notes of turns.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::super::StoreError;
use super::super::view::{MADE, NewView, Notes, VIEWS_KEPT, ViewQuery, ViewRow};

/// Columns of long texts, which a brief list leaves out.
const LONG: &[&str] = &["prompt", "payload", "output"];
/// Number of views after which the kept ones are thinned again.
const SWEEP: u64 = 64;

/// The columns of a view; without the long texts, these are empty.
fn columns(brief: bool) -> String {
    let column = |name: &&str| match brief && LONG.contains(name) {
        true => format!("'' AS {name}"),
        false => (*name).to_owned(),
    };
    COLUMNS.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Lists the columns of a view, which are the fields of its struct. What is inserted, selected and
/// read follows from this list.
macro_rules! view_columns {
    ($($name:ident)*) => {
        const COLUMNS: &[&str] = &[$(stringify!($name)),*];

        fn values(view: &NewView) -> Vec<&dyn ToSql> {
            vec![$(&view.$name),*]
        }

        fn read(row: &Row<'_>) -> rusqlite::Result<NewView> {
            Ok(NewView { $($name: row.get(stringify!($name))?),* })
        }
    };
}

view_columns! {
    session message turn created status step reason template source path sha256 provider model
    recent_runs passthrough_runs token_threshold runs_shown sections budget prompt_tokens prompt
    payload output input_tokens output_tokens tokens_before tokens_after
}

/// Inserts a view and returns its number.
pub(super) fn add(db: &Connection, view: &NewView) -> Result<u64, StoreError> {
    let (names, places) = (columns(false), vec!["?"; COLUMNS.len()].join(", "));
    let sql = format!("INSERT INTO managed_view ({names}) VALUES ({places})");
    db.prepare_cached(&sql)?.execute(&*values(view))?;
    let number = db.last_insert_rowid().unsigned_abs();
    if number > VIEWS_KEPT && number.is_multiple_of(SWEEP) {
        sweep(db, number - VIEWS_KEPT)?;
    }
    Ok(number)
}

/// Deletes the views up to a number, except the last successful one of each session: the next turn
/// builds on its notes, however much later.
fn sweep(db: &Connection, up_to: u64) -> Result<(), StoreError> {
    db.prepare_cached(
        "DELETE FROM managed_view WHERE id <= ?1 AND id NOT IN
           (SELECT max(id) FROM managed_view WHERE status = ?2 GROUP BY session)",
    )?
    .execute(params![up_to, MADE])?;
    Ok(())
}

/// Returns the views that match the query, newest first.
pub(super) fn last(db: &Connection, wanted: &ViewQuery<'_>) -> Result<Vec<ViewRow>, StoreError> {
    let ViewQuery { id, session, status, limit, brief } = *wanted;
    // Several statements, so that queries for one view or one session use an index.
    let whose = if session.is_some() { "session = ?1" } else { "?1 IS NULL" };
    let which = if id.is_some() { "id = ?2" } else { "?2 IS NULL" };
    let columns = columns(brief);
    let mut query = db.prepare_cached(&format!(
        "SELECT id, {columns} FROM managed_view
         WHERE {whose} AND {which} AND (?3 IS NULL OR status = ?3) ORDER BY id DESC LIMIT ?4"
    ))?;
    let rows = query.query_map(params![session, id, status, super::limit(limit)], view_of)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the latest notes of a session from before a message and before a view.
pub(super) fn notes_before(
    db: &Connection,
    session: u64,
    message: u64,
    id: u64,
) -> Result<Option<Notes>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT id, message, output FROM managed_view
         WHERE session = ?1 AND id < ?3 AND message < ?2 AND status = ?4
         ORDER BY id DESC LIMIT 1",
    )?;
    let row = |row: &Row<'_>| {
        Ok(Notes { id: row.get("id")?, message: row.get("message")?, output: row.get("output")? })
    };
    let id = i64::try_from(id).unwrap_or(i64::MAX);
    Ok(query.query_row(params![session, message, id, MADE], row).optional()?)
}

/// Returns the latest view of the same turn, by the same model, from the same prompt.
pub(super) fn like(db: &Connection, view: &NewView) -> Result<Option<ViewRow>, StoreError> {
    let columns = columns(false);
    let mut query = db.prepare_cached(&format!(
        "SELECT id, {columns} FROM managed_view
         WHERE session = ?1 AND message = ?2 AND status = ?3 AND provider IS ?4 AND model IS ?5
           AND prompt = ?6
         ORDER BY id DESC LIMIT 1"
    ))?;
    let NewView { session, message, provider, model, prompt, .. } = view;
    let found = query.query_row(params![session, message, MADE, provider, model, prompt], view_of);
    Ok(found.optional()?)
}

fn view_of(row: &Row<'_>) -> rusqlite::Result<ViewRow> {
    Ok(ViewRow { id: row.get("id")?, made: read(row)? })
}

#[cfg(test)]
mod tests;
