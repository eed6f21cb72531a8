//! Rows for memories, their words in a full-text table, and their vectors.

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::StoreError;
use super::super::memory::{
    MemoryFilter, MemoryOrigin, MemoryRow, MemoryScope, NewMemory, ReadMemories, ToArchive,
    WriteMemories,
};
use super::{SqliteStore, archive, words};
use crate::memory::ranking::MOST_BETWEEN;
use crate::session::spans::Spans;

const COLUMNS: &str = "memory.id, scope, kind, session, first_message, last_message, created, \
                       accessed, accesses, forgotten, content";

impl ReadMemories for SqliteStore {
    fn memory(&mut self, id: u64) -> Result<Option<MemoryRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM memory WHERE id = ?1");
        let mut query = self.db.prepare_cached(&sql)?;
        query.query_and_then([id], memory_of)?.next().transpose()
    }

    fn memories(
        &mut self,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        let passed = Passed::by(filter)?;
        let mut query = self.db.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM memory WHERE {} ORDER BY id DESC LIMIT ?6",
            passed.condition
        ))?;
        query.query_and_then(&passed.with(&super::limit(limit))[..], memory_of)?.collect()
    }

    fn search_memories(
        &mut self,
        text: &str,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<(MemoryRow, f64)>, StoreError> {
        let sought = words::some_of(&self.db, "memory_words", words::significant(text))?;
        let Some(sought) = sought else { return Ok(Vec::new()) };
        let passed = Passed::by(filter)?;
        // The cross join keeps SQLite from searching once for each memory.
        let mut query = self.db.prepare_cached(&format!(
            "SELECT {COLUMNS}, score
             FROM (SELECT memory.id AS its_id, -bm25(memory_words) AS score
                   FROM memory_words CROSS JOIN memory ON memory.id = memory_words.rowid
                   WHERE memory_words MATCH ?7 AND {}
                   ORDER BY memory_words.rowid DESC LIMIT {})
                  JOIN memory ON memory.id = its_id
             ORDER BY score DESC, memory.id DESC LIMIT ?6",
            passed.condition,
            words::MOST_RANKED
        ))?;
        let limit = super::limit(limit);
        let mut values = passed.with(&limit).to_vec();
        values.push(&sought);
        let scored = |row: &Row<'_>| Ok((memory_of(row)?, row.get(11)?));
        query.query_and_then(&values[..], scored)?.collect()
    }

    fn memories_beside(
        &mut self,
        ids: &[u64],
        filter: &MemoryFilter,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        let passed = Passed::by(filter)?;
        let mut beside: Vec<MemoryRow> = Vec::new();
        for id in ids {
            for neighbour in neighbours(&self.db, *id, &passed)? {
                if !ids.contains(&neighbour.id) && beside.iter().all(|row| row.id != neighbour.id) {
                    beside.push(neighbour);
                }
            }
        }
        Ok(beside)
    }

    fn memory_ids(&mut self, filter: &MemoryFilter) -> Result<Vec<u64>, StoreError> {
        let passed = Passed::by(filter)?;
        let sql = format!("SELECT id FROM memory WHERE {} AND ?6 ORDER BY id", passed.condition);
        let mut query = self.db.prepare_cached(&sql)?;
        query.query_and_then(&passed.with(&true)[..], |row| Ok(row.get(0)?))?.collect()
    }

    fn memory_vectors(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError> {
        let passed = Passed::by(filter)?;
        let mut query = self.db.prepare_cached(&format!(
            "SELECT memory.id, vector
             FROM memory_vector CROSS JOIN memory ON memory.id = memory_vector.memory
             WHERE model = ?6 AND {} ORDER BY memory.id",
            passed.condition
        ))?;
        let rows = query.query_and_then(&passed.with(&model)[..], |row| {
            Ok((row.get(0)?, vector(row.get_ref(1)?.as_blob().unwrap_or_default())))
        })?;
        rows.collect()
    }

    fn memories_without_vector(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        let passed = Passed::by(filter)?;
        let mut query = self.db.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM memory
             WHERE {} AND NOT EXISTS (SELECT 1 FROM memory_vector
                                      WHERE model = ?7 AND memory_vector.memory = memory.id)
             ORDER BY id DESC LIMIT ?6",
            passed.condition
        ))?;
        let limit = super::limit(limit);
        let mut values = passed.with(&limit).to_vec();
        values.push(&model);
        query.query_and_then(&values[..], memory_of)?.collect()
    }

    fn next_to_archive(&mut self) -> Result<Option<ToArchive>, StoreError> {
        archive::next(&self.db)
    }
}

impl WriteMemories for SqliteStore {
    fn add_memory(&mut self, memory: &NewMemory) -> Result<u64, StoreError> {
        self.writing()?;
        add(&self.db, memory)
    }

    fn set_memory_vector(
        &mut self,
        id: u64,
        model: &str,
        vector: &[f32],
    ) -> Result<(), StoreError> {
        self.writing()?;
        let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        let sql =
            "INSERT OR REPLACE INTO memory_vector (model, memory, vector) VALUES (?1, ?2, ?3)";
        self.db.prepare_cached(sql)?.execute(params![model, id, bytes])?;
        Ok(())
    }

    fn touch_memories(&mut self, ids: &[u64], at: i64) -> Result<(), StoreError> {
        self.writing()?;
        let mut update = self.db.prepare_cached(
            "UPDATE memory SET accessed = max(accessed, ?2), accesses = accesses + 1
             WHERE id = ?1",
        )?;
        for id in ids {
            update.execute(params![id, at])?;
        }
        Ok(())
    }

    fn set_memory_forgotten(&mut self, id: u64, at: Option<i64>) -> Result<bool, StoreError> {
        self.writing()?;
        let sql = "UPDATE memory SET forgotten = ?2 WHERE id = ?1";
        Ok(self.db.prepare_cached(sql)?.execute(params![id, at])? > 0)
    }

    fn put_off_archive(
        &mut self,
        session: u64,
        messages: &Spans,
        created: i64,
    ) -> Result<(), StoreError> {
        self.writing()?;
        archive::put_off(&self.db, session, messages, created)
    }

    fn note_archived(&mut self, id: u64, done: Option<u64>) -> Result<(), StoreError> {
        self.writing()?;
        archive::note(&self.db, id, done)
    }
}

fn add(db: &Connection, memory: &NewMemory) -> Result<u64, StoreError> {
    let NewMemory { scope, kind, origin, content, created } = memory;
    db.prepare_cached(
        "INSERT INTO memory (scope, kind, session, first_message, last_message, created,
                             accessed, accesses, forgotten, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, NULL, ?7)",
    )?
    .execute(params![
        scope_text(scope),
        kind,
        origin.map(|origin| origin.session),
        origin.map(|origin| origin.first),
        origin.map(|origin| origin.last),
        created,
        content
    ])?;
    let id = db.last_insert_rowid();
    db.prepare_cached("INSERT INTO memory_words (rowid, words) VALUES (?1, ?2)")?
        .execute(params![id, words::indexed(content)])?;
    Ok(id.unsigned_abs())
}

/// Returns the memories right before and right after another.
fn neighbours(db: &Connection, id: u64, passed: &Passed<'_>) -> Result<Vec<MemoryRow>, StoreError> {
    let sql = "SELECT session, kind, first_message, last_message FROM memory
               WHERE id = ?1 AND session IS NOT NULL";
    let place = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let place: Option<(u64, String, u64, u64)> =
        db.prepare_cached(sql)?.query_row([id], place).optional()?;
    let Some((session, kind, first, last)) = place else { return Ok(Vec::new()) };
    let before = "first_message < ?8 AND last_message >= ?9 ORDER BY first_message DESC";
    let after = "first_message > ?8 AND first_message <= ?9 ORDER BY first_message";
    let sides = [
        (before, first, first.saturating_sub(1 + MOST_BETWEEN)),
        (after, last, last.saturating_add(1 + MOST_BETWEEN)),
    ];
    let mut found = Vec::new();
    for (side, edge, reach) in sides {
        let mut query = db.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM memory
             WHERE session = ?6 AND kind = ?7 AND {} AND {side} LIMIT 1",
            passed.condition
        ))?;
        let mut values = passed.with(&session).to_vec();
        let rest: [&dyn ToSql; 3] = [&kind, &edge, &reach];
        values.extend(rest);
        found.extend(query.query_and_then(&values[..], memory_of)?.next().transpose()?);
    }
    Ok(found)
}

/// A filter as an SQL condition with the parameters 1 to 5.
struct Passed<'a> {
    condition: String,
    scopes: Option<String>,
    filter: &'a MemoryFilter,
    except: (Option<u64>, Option<&'a str>),
}

impl<'a> Passed<'a> {
    fn by(filter: &'a MemoryFilter) -> Result<Self, StoreError> {
        let texts = filter.scopes.as_ref().map(|scopes| {
            serde_json::to_string(&scopes.iter().map(scope_text).collect::<Vec<_>>())
        });
        let scopes = texts.transpose().map_err(|error| StoreError::Damaged(error.to_string()))?;
        let within = match scopes {
            Some(_) => "scope IN (SELECT value FROM json_each(?1))",
            None => "?1 IS NULL",
        };
        let condition = format!(
            "{within} AND (?2 IS NULL OR kind = ?2)
             AND (?3 IS NULL OR session IS NOT ?3 OR kind <> ?4)
             AND (forgotten IS NULL OR ?5)"
        );
        let except = filter.except.as_ref();
        let except = (except.map(|(session, _)| *session), except.map(|(_, kind)| &**kind));
        Ok(Self { condition, scopes, filter, except })
    }

    fn with<'b>(&'b self, sixth: &'b dyn ToSql) -> [&'b dyn ToSql; 6] {
        let Self { scopes, filter, except: (session, kind), .. } = self;
        [scopes, &filter.kind, session, kind, &filter.with_forgotten, sixth]
    }
}

fn memory_of(row: &Row<'_>) -> Result<MemoryRow, StoreError> {
    let scope: String = row.get(1)?;
    let session: Option<u64> = row.get(3)?;
    let origin = match session {
        Some(session) => Some(MemoryOrigin { session, first: row.get(4)?, last: row.get(5)? }),
        None => None,
    };
    let made = NewMemory {
        scope: scope_of(&scope)?,
        kind: row.get(2)?,
        origin,
        content: row.get(10)?,
        created: row.get(6)?,
    };
    Ok(MemoryRow {
        id: row.get(0)?,
        made,
        accessed: row.get(7)?,
        accesses: row.get(8)?,
        forgotten: row.get(9)?,
    })
}

fn scope_text(scope: &MemoryScope) -> String {
    match scope {
        MemoryScope::Session(session) => format!("session {session}"),
        MemoryScope::Project(path) => format!("project {path}"),
        MemoryScope::Everywhere => "everywhere".to_owned(),
    }
}

fn scope_of(text: &str) -> Result<MemoryScope, StoreError> {
    let scope = match text.split_once(' ') {
        Some(("session", number)) => number.parse().ok().map(MemoryScope::Session),
        Some(("project", path)) => Some(MemoryScope::Project(path.to_owned())),
        _ => (text == "everywhere").then_some(MemoryScope::Everywhere),
    };
    scope.ok_or_else(|| StoreError::Damaged(format!("a memory has the unknown scope {text:?}")))
}

fn vector(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[cfg(test)]
mod tests;
