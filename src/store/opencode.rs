//! Reads the sessions in OpenCode's database, which is only opened for reading.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::StoreError;

/// Returns the ids of the sessions in the database at `path`, the oldest first.
pub(crate) fn ids(path: &Path) -> Result<Vec<String>, StoreError> {
    rows(path, "SELECT id FROM session ORDER BY time_created, id", [])
}

/// Returns a session in the form of an export.
pub(crate) fn export(path: &Path, id: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT json_object(
            'info', json_object('id', s.id, 'parentID', s.parent_id, 'title', s.title,
                'directory', s.directory, 'time', json_object('created', s.time_created),
                'revert', json(s.revert)),
            'messages', json((SELECT json_group_array(json_object(
                    'info', json_set(json(m.data), '$.id', m.id),
                    'parts', json((SELECT json_group_array(json(p.data)) FROM
                        (SELECT data FROM part WHERE message_id = m.id ORDER BY id) p))))
                FROM (SELECT id, data FROM message WHERE session_id = s.id
                    ORDER BY time_created, id) m)))
        FROM session s WHERE s.id = ?1";
    Ok(rows(path, sql, [id])?.pop())
}

fn rows(path: &Path, sql: &str, values: impl rusqlite::Params) -> Result<Vec<String>, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    let mut statement = db.prepare(sql)?;
    let rows = statement.query_map(values, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
