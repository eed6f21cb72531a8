//! Full-text search over the names and the messages of sessions.

use rusqlite::{Connection, Row, params};

use super::super::StoreError;
use super::super::session::SearchHit;
use super::{message, words};
use crate::retrieval::excerpt::excerpt;
use crate::session::message::Role;

/// Length of a query, in bytes, up to which excerpts are chosen by the whole query; for a longer
/// one, by its significant words.
const LONGEST_WHOLE_QUERY: usize = 4 << 10;

/// Implements [`search_sessions`](super::super::session::ReadSessions::search_sessions).
pub(super) fn sessions(
    db: &Connection,
    text: &str,
    limit: u64,
    with_deleted: bool,
) -> Result<Vec<SearchHit>, StoreError> {
    let sought = words::sought(text);
    if sought.is_empty() {
        return Ok(Vec::new());
    }
    // Choosing the excerpt of each hit reads the whole query.
    let shortened = (text.len() > LONGEST_WHOLE_QUERY).then(|| sought.join(" "));
    let text = shortened.as_deref().unwrap_or(text);
    let search = Search { db, text, limit, with_deleted };
    let hits = search.run(&words::all_of(&sought))?;
    if hits.is_empty() && sought.len() > 1 {
        return search.run_with_some(sought);
    }
    Ok(hits)
}

struct Search<'a> {
    db: &'a Connection,
    text: &'a str,
    limit: u64,
    with_deleted: bool,
}

impl Search<'_> {
    fn run(&self, query: &str) -> Result<Vec<SearchHit>, StoreError> {
        let mut hits = self.names(query)?;
        hits.extend(self.messages(query, self.left(&hits))?);
        Ok(hits)
    }

    fn run_with_some(&self, sought: Vec<String>) -> Result<Vec<SearchHit>, StoreError> {
        let query = |table, words| words::some_of(self.db, table, words);
        let mut hits = match query("session_words", sought.clone())? {
            Some(query) => self.names(&query)?,
            None => Vec::new(),
        };
        if let Some(query) = query("message_words", sought)? {
            hits.extend(self.messages(&query, self.left(&hits))?);
        }
        Ok(hits)
    }

    fn left(&self, hits: &[SearchHit]) -> u64 {
        self.limit.saturating_sub(hits.len() as u64)
    }

    fn names(&self, query: &str) -> Result<Vec<SearchHit>, StoreError> {
        let mut search = self.db.prepare_cached(
            "SELECT session.id, session.name, -bm25(session_words) AS score
             FROM session_words CROSS JOIN session ON session.id = session_words.rowid
             WHERE session_words MATCH ?1 AND (session.deleted IS NULL OR ?2)
             ORDER BY score DESC, session.updated DESC, session.id DESC LIMIT ?3",
        )?;
        let values = params![query, self.with_deleted, super::limit(self.limit)];
        let rows = search.query_and_then(values, |row| {
            let name: String = row.get(1)?;
            Ok(SearchHit {
                session: row.get(0)?,
                message: None,
                role: None,
                snippet: excerpt(&name, self.text),
                name,
                score: row.get(2)?,
            })
        })?;
        rows.collect()
    }

    fn messages(&self, query: &str, limit: u64) -> Result<Vec<SearchHit>, StoreError> {
        let mut best = self.db.prepare_cached(&format!(
            "SELECT id, score
             FROM (SELECT rowid AS id, -bm25(message_words) AS score FROM message_words
                   WHERE message_words MATCH ?1 AND (?2 OR rowid >> {} NOT IN
                             (SELECT id FROM session WHERE deleted IS NOT NULL))
                   ORDER BY rowid DESC LIMIT {})
             ORDER BY score DESC, id DESC LIMIT ?3",
            message::NUMBER_BITS,
            words::MOST_RANKED
        ))?;
        let values = params![query, self.with_deleted, super::limit(limit)];
        let rows = best.query_and_then(values, |row| self.message(row.get(0)?, row.get(1)?))?;
        rows.collect()
    }

    fn message(&self, id: i64, score: f64) -> Result<SearchHit, StoreError> {
        let (session, number) = message::place(id);
        let mut query = self.db.prepare_cached(
            "SELECT session.name, message.role, message.content FROM message, session
             WHERE message.id = ?1 AND session.id = ?2",
        )?;
        let found = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let (name, role, content): (String, String, String) =
            query.query_row(params![id, session], found)?;
        let role: Role = message::role_of(&role)?;
        let snippet = excerpt(&content, self.text);
        Ok(SearchHit { session, name, message: Some(number), role: Some(role), snippet, score })
    }
}
