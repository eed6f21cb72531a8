//! Reads the sessions in OpenCode's database, which is only opened for reading. Another program made
//! it, so what its schema says is not carried out: views and triggers are off, and a query that takes
//! too long ends.

use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;
use super::sqlite::set_inert;

/// Maximum size of a text in the database, and of a session that is read from it, in bytes.
const LARGEST_TEXT: i32 = 256 << 20;
/// Number of steps of a query between two checks of how many it has taken.
const STEPS: i32 = 1 << 20;
/// Maximum number of these checks. A session of 100,000 parts needs about three.
const MOST_CHECKS: u32 = 1 << 6;

/// What SQLite says of a text that is too large.
const TOO_BIG: rusqlite::ffi::Error = rusqlite::ffi::Error {
    code: rusqlite::ErrorCode::TooBig,
    extended_code: rusqlite::ffi::SQLITE_TOOBIG,
};

/// Returns the ids of the sessions in the database at `path`, the oldest first.
pub fn ids(path: &Path) -> Result<Vec<String>, StoreError> {
    rows(path, "SELECT id FROM session ORDER BY time_created, id", [])
}

/// Returns a session in the form of an export.
pub fn export(path: &Path, id: &str) -> Result<Option<String>, StoreError> {
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
    // SQLite opens these too, beside the file that a link leads to, and would wait for ever for a pipe.
    let unreadable = |_| rusqlite::Error::InvalidPath(path.to_owned());
    let path = &path.canonicalize().map_err(unreadable)?;
    for end in ["-journal", "-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(end);
        if std::fs::symlink_metadata(&beside).is_ok_and(|it| !it.is_file()) {
            return Err(rusqlite::Error::InvalidPath(beside.into()).into());
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = &mut Connection::open_with_flags(path, flags)?;
    set_inert(db)?;
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_TEXT)?;
    let mut checks = 0;
    let is_over = move || {
        checks += 1;
        checks > MOST_CHECKS
    };
    db.progress_handler(STEPS, Some(is_over))?;
    refuse_computed(db)?;
    let mut statement = db.prepare(sql)?;
    within(statement.query_map(values, |row| row.get(0))?, LARGEST_TEXT as usize)
}

/// Collects texts of at most `most` bytes together.
fn within(
    texts: impl Iterator<Item = Result<String, rusqlite::Error>>,
    most: usize,
) -> Result<Vec<String>, StoreError> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    for text in texts {
        let text = text?;
        bytes += text.len();
        if bytes > most {
            return Err(rusqlite::Error::SqliteFailure(TOO_BIG, None).into());
        }
        found.push(text);
    }
    Ok(found)
}

/// Refuses tables whose schema computes a column. A function in it is one step, however long it takes.
fn refuse_computed(db: &Connection) -> Result<(), StoreError> {
    let sql =
        "SELECT t.name FROM (SELECT 'session' AS name UNION SELECT 'message' UNION SELECT 'part') t
        JOIN pragma_table_xinfo(t.name) c WHERE c.hidden <> 0 LIMIT 1";
    match db.query_row(sql, [], |row| row.get::<_, String>(0)) {
        Ok(table) => {
            Err(rusqlite::Error::InvalidColumnName(format!("a computed one of {table}")).into())
        }
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "SELECT 'a' id, 'a' session_id, 'a' message_id, '{}' data, '/p' directory,
        NULL parent_id, 't' title, NULL revert, 1 time_created";

    /// Makes a database in which each of the three tables is what `made` says.
    fn database(made: &dyn Fn(&str) -> String) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let sql: String = ["session", "message", "part"].map(made).concat();
        Connection::open(file.path()).unwrap().execute_batch(&sql).unwrap();
        file
    }

    #[test]
    fn sessions_are_read_from_tables_only() {
        let tables = database(&|name| format!("CREATE TABLE {name} AS {ROW};"));
        assert_eq!(ids(tables.path()).unwrap(), ["a"]);
        assert!(export(tables.path(), "a").unwrap().unwrap().contains("\"title\":\"t\""));
        // A view could go on for ever.
        let views = database(&|name| {
            let endless = format!("WITH r AS ({ROW} UNION ALL SELECT * FROM r)");
            format!("CREATE VIEW {name} AS {endless} SELECT * FROM r;")
        });
        assert!(ids(views.path()).is_err());
        assert!(export(views.path(), "a").is_err());
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_beside_the_database_is_not_waited_for() {
        let tables = database(&|name| format!("CREATE TABLE {name} AS {ROW};"));
        for end in ["-journal", "-wal", "-shm"] {
            let beside = format!("{}{end}", tables.path().display());
            rustix::fs::mknodat(
                rustix::fs::CWD,
                &beside,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .unwrap();
            assert!(ids(tables.path()).is_err(), "{end}");
            let folder = tempfile::tempdir().unwrap();
            let link = folder.path().join("opencode.db");
            std::os::unix::fs::symlink(tables.path(), &link).unwrap();
            assert!(ids(&link).is_err(), "{end}");
            std::fs::remove_file(&beside).unwrap();
        }
        assert_eq!(ids(tables.path()).unwrap(), ["a"]);
    }

    #[test]
    fn a_schema_that_computes_is_refused() {
        for kind in ["VIRTUAL", "STORED"] {
            let file = database(&|name| {
                let id = format!("id GENERATED ALWAYS AS (n || hex(zeroblob(4 * n))) {kind}");
                format!(
                    "CREATE TABLE {name} (n, time_created, {id}); INSERT INTO {name}(n) VALUES (1);"
                )
            });
            assert!(ids(file.path()).is_err(), "{kind}");
        }
    }

    #[test]
    fn texts_are_not_read_without_end() {
        let texts = || ["abc", "def"].into_iter().map(|text| Ok(text.to_owned()));
        assert_eq!(within(texts(), 6).unwrap(), ["abc", "def"]);
        let endless = std::iter::repeat_with(|| Ok("abc".to_owned()));
        assert!(within(endless, 1_000).is_err());
    }

    #[test]
    fn a_query_that_takes_too_long_ends() {
        // For each message, the query looks at every part.
        let file = database(&|name| {
            let last = if name == "session" { 1 } else { 200_000 };
            let n = format!("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {last})");
            format!("CREATE TABLE {name} AS {n} {ROW} FROM n;")
        });
        assert_eq!(ids(file.path()).unwrap(), ["a"]);
        assert!(export(file.path(), "a").is_err());
    }
}
