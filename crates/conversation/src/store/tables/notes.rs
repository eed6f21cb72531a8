//! Rows for the notes of turns.

use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::notes::{MADE, NOTES_KEPT, NewNotes, NotesQuery, NotesRow, NotesText};
use super::sql::{Columns, Statements, columns, limit};
use super::{TableReading, Writing};

/// Columns of long texts, which a brief list leaves out.
const LONG: &[&str] = &["prompt", "payload", "output"];
/// Number of new notes between two removals of the oldest ones.
const SWEEP: u64 = 64;

columns!(NewNotes {
    session,
    message,
    turn,
    created,
    status,
    step,
    reason,
    template,
    source,
    path,
    sha256,
    provider,
    model,
    recent_runs,
    passthrough_runs,
    token_threshold,
    runs_shown,
    sections,
    budget,
    prompt_tokens,
    prompt,
    payload,
    output,
    input_tokens,
    output_tokens,
    tokens_before,
    tokens_after,
});
columns!(NotesText { id, message, output });

impl TableReading<'_> {
    /// Returns the stored notes that match the query, newest first.
    pub fn notes(&self, wanted: &NotesQuery<'_>) -> Result<Vec<NotesRow>, StoreError> {
        let NotesQuery { id, session, status, limit: most, brief } = *wanted;
        // Several statements, so that queries for one row or one session use an index.
        let whose = if session.is_some() { "session = ?1" } else { "?1 IS NULL" };
        let which = if id.is_some() { "id = ?2" } else { "?2 IS NULL" };
        let sql = select(
            brief,
            &format!(
                "{whose} AND {which} AND (?3 IS NULL OR status = ?3) ORDER BY id DESC LIMIT ?4"
            ),
        );
        self.db.rows(&sql, params![session, id, status, limit(most)], notes_of)
    }

    /// Returns the latest successful notes of the session that have a number below `id` and were
    /// written for a turn that began before message `message`.
    pub fn notes_before(
        &self,
        session: u64,
        message: u64,
        id: u64,
    ) -> Result<Option<NotesText>, StoreError> {
        let sql = "SELECT id, message, output FROM managed_view
                   WHERE session = ?1 AND id < ?3 AND message < ?2 AND status = ?4 AND sound
                   ORDER BY id DESC LIMIT 1";
        self.db.row(sql, params![session, message, limit(id), MADE], NotesText::of)
    }

    /// Returns the latest successful notes that have the same turn, provider, model and prompt as
    /// `notes`.
    pub fn notes_like(&self, notes: &NewNotes) -> Result<Option<NotesRow>, StoreError> {
        let NewNotes { session, message, provider, model, prompt, .. } = notes;
        let which = "session = ?1 AND message = ?2 AND status = ?3 AND provider IS ?4
                     AND model IS ?5 AND prompt = ?6 ORDER BY id DESC LIMIT 1";
        let values = params![session, message, MADE, provider, model, prompt];
        self.db.row(&select(false, which), values, notes_of)
    }
}

impl Writing<'_> {
    /// Records the notes of a turn and returns their number.
    pub fn add_notes(&self, notes: &NewNotes) -> Result<u64, StoreError> {
        let sql = NewNotes::insertion("managed_view", &[]);
        let number = self.db.insert(&sql, &*notes.values())?;
        if number > NOTES_KEPT && number.is_multiple_of(SWEEP) {
            self.sweep(number - NOTES_KEPT)?;
        }
        Ok(number)
    }

    /// Deletes notes with numbers up to `up_to`. Keeps the last successful notes of each session,
    /// since the session's next turn builds on them.
    fn sweep(&self, up_to: u64) -> Result<(), StoreError> {
        let sql = "DELETE FROM managed_view WHERE id <= ?1 AND id NOT IN
                     (SELECT max(id) FROM managed_view WHERE status = ?2 GROUP BY session)";
        self.db.change(sql, params![up_to, MADE]).map(drop)
    }
}

/// Returns a statement that selects the columns of [`NewNotes`] and the id. If `brief`, long texts
/// are empty.
fn select(brief: bool, which: &str) -> String {
    let column = |name: &&str| match brief && LONG.contains(name) {
        true => format!("'' AS {name}"),
        false => (*name).to_owned(),
    };
    let columns: Vec<String> = NewNotes::NAMES.iter().map(column).collect();
    format!("SELECT {}, id FROM managed_view WHERE sound AND {which}", columns.join(", "))
}

fn notes_of(row: &Row<'_>) -> rusqlite::Result<NotesRow> {
    Ok(NotesRow { id: row.get("id")?, made: NewNotes::of(row)? })
}

#[cfg(test)]
mod tests;
