//! Rows for memories, their words in a full-text table, and their vectors.

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::memory::{MemoryFilter, MemoryOrigin, MemoryRow, MemoryScope, NewMemory};
use super::super::session::bare_folder;
use super::sql::{Statements, damaged, limit};
use super::vector::{read_vector, write_vector};
use super::{TableReading, Writing, words};
use crate::memory::ranking::MOST_BETWEEN;

const COLUMNS: &str = "memory.id, scope, kind, session, first_message, last_message, created, \
                       accessed, accesses, forgotten, content, \
                       (SELECT machine.name FROM known JOIN machine ON machine.id = known.machine \
                        WHERE known.kind = 'memory' AND known.row = memory.id \
                              AND machine.place IS NULL) AS machine";

impl TableReading<'_> {
    /// Returns a memory, forgotten or not.
    pub fn memory(&self, id: u64) -> Result<Option<MemoryRow>, StoreError> {
        self.db.row(
            &format!("SELECT {COLUMNS} FROM memory WHERE id = ?1 AND sound"),
            [id],
            memory_of,
        )
    }

    /// Returns at most `most` memories that match the filter, newest first.
    pub fn memories(&self, filter: &MemoryFilter, most: u64) -> Result<Vec<MemoryRow>, StoreError> {
        let passed = Passed::by(filter)?;
        let sql = format!(
            "SELECT {COLUMNS} FROM memory WHERE {} ORDER BY id DESC LIMIT ?6",
            passed.condition
        );
        self.db.rows(&sql, &*passed.with(&[&limit(most)]), memory_of)
    }

    /// Returns at most `most` memories that match the filter and contain at least one significant
    /// word of `text`, best first, each with its BM25 score (above 0). Of many such words, only the
    /// rarest count.
    pub fn search_memories(
        &self,
        text: &str,
        filter: &MemoryFilter,
        most: u64,
    ) -> Result<Vec<(MemoryRow, f64)>, StoreError> {
        let sought = self.some_of("memory_words", &words::significant(text))?;
        let Some(sought) = sought else { return Ok(Vec::new()) };
        let passed = Passed::by(filter)?;
        // The cross join keeps SQLite from searching once for each memory.
        let sql = format!(
            "SELECT {COLUMNS}, score
             FROM (SELECT memory.id AS its_id, -bm25(memory_words) AS score
                   FROM memory_words CROSS JOIN memory ON memory.id = memory_words.rowid
                   WHERE memory_words MATCH ?7 AND {}
                   ORDER BY memory_words.rowid DESC LIMIT {})
                  JOIN memory ON memory.id = its_id
             ORDER BY score DESC, memory.id DESC LIMIT ?6",
            passed.condition,
            words::MOST_RANKED
        );
        let scored = |row: &Row<'_>| Ok((memory_of(row)?, row.get("score")?));
        self.db.rows(&sql, &*passed.with(&[&limit(most), &sought]), scored)
    }

    /// Returns the neighbours of some memories, each once, in the order of `ids`. The neighbours of
    /// a memory are the nearest memories before and after it that match the filter, are of the same
    /// session and kind, and have at most [`MOST_BETWEEN`] messages in between. Leaves out the
    /// memories in `ids`.
    pub fn memories_beside(
        &self,
        ids: &[u64],
        filter: &MemoryFilter,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        let passed = Passed::by(filter)?;
        let mut beside: Vec<MemoryRow> = Vec::new();
        for id in ids {
            for neighbour in self.neighbours(*id, &passed)? {
                if !ids.contains(&neighbour.id) && beside.iter().all(|row| row.id != neighbour.id) {
                    beside.push(neighbour);
                }
            }
        }
        Ok(beside)
    }

    /// Returns the numbers of the memories that match the filter, in ascending order.
    pub fn memory_ids(&self, filter: &MemoryFilter) -> Result<Vec<u64>, StoreError> {
        let passed = Passed::by(filter)?;
        let sql = format!("SELECT id FROM memory WHERE {} ORDER BY id", passed.condition);
        self.db.rows(&sql, &*passed.with(&[]), |row| row.get(0))
    }

    /// Returns the vectors that an embedding model computed for the memories that match the filter,
    /// each with the number of its memory, in ascending order of these numbers.
    pub fn memory_vectors(
        &self,
        filter: &MemoryFilter,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError> {
        let passed = Passed::by(filter)?;
        let sql = format!(
            "SELECT memory.id, vector
             FROM memory_vector CROSS JOIN memory ON memory.id = memory_vector.memory
             WHERE model = ?6 AND {} ORDER BY memory.id",
            passed.condition
        );
        let read = |row: &Row<'_>| {
            Ok((row.get(0)?, read_vector(row.get_ref(1)?.as_blob().unwrap_or_default())))
        };
        self.db.rows(&sql, &*passed.with(&[&model]), read)
    }

    /// Returns at most `most` memories that are not forgotten and have no vector by this model,
    /// newest first.
    pub fn memories_without_vector(
        &self,
        model: &str,
        most: u64,
    ) -> Result<Vec<MemoryRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM memory
             WHERE forgotten IS NULL AND sound
                   AND NOT EXISTS (SELECT 1 FROM memory_vector
                                   WHERE model = ?1 AND memory_vector.memory = memory.id)
             ORDER BY id DESC LIMIT ?2"
        );
        self.db.rows(&sql, params![model, limit(most)], memory_of)
    }

    /// Returns the neighbours of a memory, as [`memories_beside`](Self::memories_beside) defines
    /// them: at most one before and one after.
    fn neighbours(&self, id: u64, passed: &Passed<'_>) -> Result<Vec<MemoryRow>, StoreError> {
        type MemoryPlace = (u64, String, u64, u64);
        let sql = "SELECT session, kind, first_message, last_message FROM memory
                   WHERE id = ?1 AND session IS NOT NULL";
        let place = self.db.row(sql, [id], |row| MemoryPlace::try_from(row))?;
        let Some((session, kind, first, last)) = place else { return Ok(Vec::new()) };
        let before = "first_message < ?8 AND last_message >= ?9 ORDER BY first_message DESC";
        let after = "first_message > ?8 AND first_message <= ?9 ORDER BY first_message";
        let sides = [
            (before, first, first.saturating_sub(1 + MOST_BETWEEN)),
            (after, last, last.saturating_add(1 + MOST_BETWEEN)),
        ];
        let mut found = Vec::new();
        for (side, edge, reach) in sides {
            let sql = format!(
                "SELECT {COLUMNS} FROM memory
                 WHERE session = ?6 AND kind = ?7 AND {} AND {side} LIMIT 1",
                passed.condition
            );
            let values = passed.with(&[&session, &kind, &edge, &reach]);
            found.extend(self.db.row(&sql, &*values, memory_of)?);
        }
        Ok(found)
    }
}

impl Writing<'_> {
    /// Adds a memory and returns its number.
    pub fn add_memory(&self, memory: &NewMemory) -> Result<u64, StoreError> {
        let NewMemory { scope, kind, origin, content, created } = memory;
        let id = self.db.insert(
            "INSERT INTO memory (scope, kind, session, first_message, last_message, created,
                                 accessed, accesses, forgotten, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, NULL, ?7)",
            params![
                scope,
                kind,
                origin.map(|origin| origin.session),
                origin.map(|origin| origin.first),
                origin.map(|origin| origin.last),
                created,
                content
            ],
        )?;
        let sql = "INSERT INTO memory_words (rowid, words) VALUES (?1, ?2)";
        self.db.change(sql, params![id, words::indexed(content)])?;
        Ok(id)
    }

    /// Stores the vector that an embedding model computed for a memory. The new vector replaces an
    /// earlier one by the same model.
    pub fn set_memory_vector(
        &self,
        id: u64,
        model: &str,
        vector: &[f32],
    ) -> Result<(), StoreError> {
        let sql =
            "INSERT OR REPLACE INTO memory_vector (model, memory, vector) VALUES (?1, ?2, ?3)";
        self.db.change(sql, params![model, id, write_vector(vector)]).map(drop)
    }

    /// Counts one more use of each of these memories. `at` is the time of the use, in Unix seconds.
    pub fn touch_memories(&self, ids: &[u64], at: i64) -> Result<(), StoreError> {
        let sql = "UPDATE memory SET accessed = max(accessed, ?2), accesses = accesses + 1
                   WHERE id = ?1";
        ids.iter().try_for_each(|id| self.db.change(sql, params![id, at]).map(drop))
    }

    /// Marks a memory as forgotten at the time `at` (in Unix seconds), or restores the memory when
    /// `at` is `None`. Returns whether the memory exists.
    pub fn set_memory_forgotten(&self, id: u64, at: Option<i64>) -> Result<bool, StoreError> {
        let sql = "UPDATE memory SET forgotten = ?2 WHERE id = ?1";
        Ok(self.db.change(sql, params![id, at])? > 0)
    }
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
            serde_json::to_string(&scopes.iter().flat_map(scope_texts).collect::<Vec<_>>())
        });
        let scopes = texts.transpose()?;
        let within = match scopes {
            Some(_) => "scope IN (SELECT value FROM json_each(?1))",
            None => "?1 IS NULL",
        };
        let condition = format!(
            "{within} AND (?2 IS NULL OR kind = ?2)
             AND (?3 IS NULL OR session IS NOT ?3 OR kind <> ?4)
             AND (forgotten IS NULL OR ?5) AND memory.sound"
        );
        let except = filter.except.as_ref();
        let except = (except.map(|(session, _)| *session), except.map(|(_, kind)| &**kind));
        Ok(Self { condition, scopes, filter, except })
    }

    /// Returns the values of all parameters: those of the filter, and then `more`, which begins
    /// at parameter 6.
    fn with<'b>(&'b self, more: &[&'b dyn ToSql]) -> Vec<&'b dyn ToSql> {
        let Self { scopes, filter, except: (session, kind), .. } = self;
        let own: [&dyn ToSql; 5] = [scopes, &filter.kind, session, kind, &filter.with_forgotten];
        own.iter().chain(more).copied().collect()
    }
}

fn memory_of(row: &Row<'_>) -> rusqlite::Result<MemoryRow> {
    let origin = match row.get(3)? {
        Some(session) => Some(MemoryOrigin { session, first: row.get(4)?, last: row.get(5)? }),
        None => None,
    };
    let made = NewMemory {
        scope: row.get(1)?,
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
        machine: row.get(11)?,
    })
}

/// Returns the stored forms of the scope: a project's folder may be stored with or without a slash
/// at its end.
fn scope_texts(scope: &MemoryScope) -> Vec<String> {
    match scope {
        MemoryScope::Project(path) => {
            let bare = scope_text(&MemoryScope::Project(bare_folder(path).to_owned()));
            vec![format!("{bare}/"), bare]
        }
        _ => vec![scope_text(scope)],
    }
}

fn scope_text(scope: &MemoryScope) -> String {
    match scope {
        MemoryScope::Session(session) => format!("session {session}"),
        MemoryScope::Project(path) => format!("project {path}"),
        MemoryScope::Everywhere => "everywhere".to_owned(),
    }
}

impl ToSql for MemoryScope {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(scope_text(self).into())
    }
}

impl FromSql for MemoryScope {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text = value.as_str()?;
        let scope = match text.split_once(' ') {
            Some(("session", number)) => number.parse().ok().map(Self::Session),
            Some(("project", path)) => Some(Self::Project(path.to_owned())),
            _ => (text == "everywhere").then_some(Self::Everywhere),
        };
        scope.ok_or_else(|| damaged(format!("a memory has the unknown scope {text:?}")))
    }
}

#[cfg(test)]
mod tests;
