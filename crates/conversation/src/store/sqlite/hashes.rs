//! Hashes of rows: each row keeps a hash of its columns, so that a changed row is never taken for
//! the one that was stored.
//!
//! Each table has two columns that SQLite computes. `hash` is stored with the row. `sound` fails
//! when it is read from a row that does not have this hash. SQLite's own check of a database reads
//! it in each row, because it is a constraint.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ffi};

/// Description of the first damage that a connection has found.
pub(super) type Damage = Arc<Mutex<Option<String>>>;

/// Returns the damage that a connection has found, if any.
pub(super) fn damage_of(damage: &Damage) -> Option<String> {
    damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds the two columns to each table of a schema. In the schema, each column of a table is on a
/// line of its own.
pub(super) fn with_hashes(schema: &str) -> String {
    let mut whole = String::with_capacity(2 * schema.len());
    for statement in schema.split_inclusive(";\n") {
        let table = statement.split_once("CREATE TABLE ").and_then(|(before, rest)| {
            rest.split_once(" (\n").map(|(name, body)| (before, name, body))
        });
        let Some((before, name, body)) = table else {
            whole.push_str(statement);
            continue;
        };
        let columns = body.lines().filter_map(column).collect::<Vec<_>>().join(", ");
        whole.push_str(&format!(
            "{before}CREATE TABLE {name} (
    hash INTEGER AS (row_hash({columns})) STORED,
    sound INTEGER AS (intact(hash, row_hash({columns}), '{name}')) VIRTUAL CHECK (sound),\n{body}"
        ));
    }
    whole
}

/// Returns the name of the column that a line of a schema defines, if it defines one.
fn column(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    ")?.split(' ').next()?;
    name.starts_with(|first: char| first.is_ascii_lowercase()).then_some(name)
}

/// Defines the functions that the tables use.
pub(super) fn define(db: &Connection, damage: &Damage) -> Result<(), Error> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    db.create_scalar_function("row_hash", -1, flags, |values| Ok(hash_of(values)))?;
    let damage = Arc::clone(damage);
    db.create_scalar_function("intact", 3, flags, move |values| {
        if values.get_raw(0) == values.get_raw(1) {
            return Ok(true);
        }
        let table = values.get_raw(2).as_str().unwrap_or_default();
        let mut found = damage.lock().unwrap_or_else(PoisonError::into_inner);
        found.get_or_insert_with(|| format!("a row of the table {table} has a wrong hash"));
        Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), None))
    })
}

fn hash_of(values: &Context<'_>) -> i64 {
    let mut bytes = Vec::with_capacity(256);
    for place in 0..values.len() {
        let (kind, value): (u8, &[u8]) = match values.get_raw(place) {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()),
            ValueRef::Real(number) => (2, &number.to_le_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(blob) => (4, blob),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&value.len().to_le_bytes());
        bytes.extend_from_slice(value);
    }
    let hash = blake3::hash(&bytes);
    i64::from_le_bytes(hash.as_bytes().first_chunk().copied().unwrap_or_default())
}

/// Reads the whole database: its structure, its indexes, and the hash of each row.
///
/// # Errors
/// Returns the first damage that is found.
pub(super) fn check(db: &Connection, damage: &Damage) -> Result<(), String> {
    let verdict = db.pragma_query_value(None, "integrity_check", |row| row.get(0));
    let verdict: Result<String, Error> = verdict;
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(wrong) => Err(wrong),
        Err(error) => Err(damage_of(damage).unwrap_or_else(|| error.to_string())),
    }
}

/// Returns a number over the definitions of all tables and indexes, by which a changed definition
/// is found.
pub fn schema_number(db: &Connection) -> Result<i32, Error> {
    let mut query = db.prepare("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema")?;
    let mut rows = query.query([])?;
    let mut hasher = blake3::Hasher::new();
    while let Some(row) = rows.next()? {
        for place in 0..5 {
            hasher.update(format!("{:?}", row.get_ref(place)?).as_bytes());
        }
    }
    Ok(i32::from_le_bytes(hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()))
}
