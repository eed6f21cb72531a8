//! Full-text search over the names and the messages of sessions.

use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::session::SearchHit;
use super::sql::{Column, Statements, limit};
use super::{TableReading, message, words};
use crate::retrieval::excerpt::excerpt;

/// Length of a query, in bytes, up to which excerpts are chosen by the whole query. For a longer
/// query, excerpts are chosen by its significant words.
const LONGEST_WHOLE_QUERY: usize = 4 << 10;

impl TableReading<'_> {
    /// Searches names and messages for the significant words of a free text. Returns at most
    /// `limit` hits: names first, then messages, each best first. A hit has all of these words; if
    /// there is no such hit, hits with some of the words are returned. When thousands of messages
    /// match, only the newest are ranked; those with a rare word all are. If given, `project`
    /// restricts the search to the sessions of one project.
    pub fn search_sessions(
        &self,
        project: Option<&str>,
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
        let search = LogSearch { rows: self, project, text, limit, with_deleted };
        let hits = search.run(|table| self.all_of(table, &sought))?;
        if hits.is_empty() && sought.len() > 1 {
            return search.run(|table| self.some_of(table, &sought));
        }
        Ok(hits)
    }
}

struct LogSearch<'a> {
    rows: &'a TableReading<'a>,
    project: Option<&'a str>,
    text: &'a str,
    limit: u64,
    with_deleted: bool,
}

impl LogSearch<'_> {
    /// Finds what matches the query that `query` returns for a table.
    fn run(
        &self,
        query: impl Fn(&str) -> Result<Option<String>, StoreError>,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let mut hits = match query("session_words")? {
            Some(query) => self.names(&query)?,
            None => Vec::new(),
        };
        if let Some(query) = query("message_words")? {
            hits.extend(self.messages(&query, self.left(&hits))?);
        }
        Ok(hits)
    }

    fn left(&self, hits: &[SearchHit]) -> u64 {
        self.limit.saturating_sub(hits.len() as u64)
    }

    fn names(&self, query: &str) -> Result<Vec<SearchHit>, StoreError> {
        let sql = "SELECT session.id, session.name, -bm25(session_words) AS score
                   FROM session_words CROSS JOIN session ON session.id = session_words.rowid
                   WHERE session_words MATCH ?1 AND session.sound AND (session.deleted IS NULL OR ?2)
                         AND (?4 IS NULL OR rtrim(ifnull(session.project, session.told), '/') = rtrim(?4, '/'))
                   ORDER BY score DESC, session.updated DESC, session.id DESC LIMIT ?3";
        let values = params![query, self.with_deleted, limit(self.limit), self.project];
        self.rows.db.rows(sql, values, |row| {
            let name: String = row.get(1)?;
            Ok(SearchHit {
                session: row.get(0)?,
                message: None,
                role: None,
                timestamp: None,
                snippet: excerpt(&name, self.text),
                name,
                score: row.get(2)?,
            })
        })
    }

    fn messages(&self, query: &str, most: u64) -> Result<Vec<SearchHit>, StoreError> {
        let sql = format!(
            "SELECT session.name, message.role, message.content, best.id, best.score,
                    message.timestamp
             FROM (SELECT id, score
                   FROM (SELECT rowid AS id, -bm25(message_words) AS score FROM message_words
                         WHERE message_words MATCH ?1 AND (?2 OR rowid >> {bits} NOT IN
                                   (SELECT id FROM session WHERE deleted IS NOT NULL))
                               AND (?4 IS NULL OR rowid >> {bits} IN
                                   (SELECT id FROM session
                                    WHERE rtrim(ifnull(project, told), '/') = rtrim(?4, '/')))
                         ORDER BY rowid DESC LIMIT {most_ranked})
                   ORDER BY score DESC, id DESC LIMIT ?3) AS best
                  CROSS JOIN message ON message.id = best.id
                  CROSS JOIN session ON session.id = best.id >> {bits}
             WHERE message.sound
             ORDER BY best.score DESC, best.id DESC",
            bits = message::NUMBER_BITS,
            most_ranked = words::MOST_RANKED
        );
        let values = params![query, self.with_deleted, limit(most), self.project];
        self.rows.db.rows(&sql, values, |row| self.message(row))
    }

    fn message(&self, row: &Row<'_>) -> rusqlite::Result<SearchHit> {
        let (session, number) = message::place(row.get(3)?);
        Ok(SearchHit {
            session,
            name: row.get(0)?,
            message: Some(number),
            role: Some(row.get::<_, Column<_>>(1)?.0),
            timestamp: row.get(5)?,
            snippet: excerpt(row.get_ref(2)?.as_str()?, self.text),
            score: row.get(4)?,
        })
    }
}
