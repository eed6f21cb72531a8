//! Rows for the items that were given to sessions of agents, and for wishes to send items with an
//! agent's next prompt.

use rusqlite::{Row, params};

use super::super::StoreError;
use super::super::session::{NextPush, PushRow, PushState, TakenPush};
use super::sql::{Columns, Statements, columns};
use super::{TableReading, Writing};

/// Maximum number of agents' sessions whose pushes are recorded.
const KEPT: u64 = 1_000;
/// Maximum number of fulfilled wishes ([`NextPush`]) that are kept.
const TAKEN_KEPT: u64 = 1_000;

const PUSH: &str =
    "SELECT agent, session, number, items, earlier_number, earlier_items, at, project,
                           tokens FROM push";

columns!(NextPush { number, manager, item, agent, session, project, at, change });
columns!(TakenPush { agent, session, item, at });

impl TableReading<'_> {
    /// Returns the record of the pushes to an agent's session, if there is one.
    pub fn push(&self, agent: &str, session: &str) -> Result<Option<PushRow>, StoreError> {
        let sql = format!("{PUSH} WHERE agent = ?1 AND session = ?2 AND sound");
        self.db.row(&sql, [agent, session], push_of)
    }

    /// Returns the records of the pushes to at most `limit` agents' sessions, latest push first.
    pub fn pushes(&self, limit: u64) -> Result<Vec<PushRow>, StoreError> {
        self.db.rows(&format!("{PUSH} WHERE sound ORDER BY rowid DESC LIMIT ?1"), [limit], push_of)
    }

    /// Returns the wishes to send items that still wait for a prompt, oldest first.
    pub fn next_pushes(&self) -> Result<Vec<NextPush>, StoreError> {
        let columns = NextPush::list();
        let sql = format!(
            "SELECT {columns} FROM next_push WHERE taken IS NULL AND sound ORDER BY number"
        );
        self.db.rows(&sql, [], NextPush::of)
    }

    /// Returns the wishes to send items with the next prompt of an agent's session. `received` is
    /// the number of the last push that the session received. The result has the wishes that wait
    /// for the session, and those that went with later pushes, which the session did not receive.
    pub fn due_pushes(
        &self,
        agent: &str,
        session: &str,
        project: &str,
        received: u64,
    ) -> Result<Vec<NextPush>, StoreError> {
        let columns = NextPush::list();
        let sql = format!(
            "SELECT {columns} FROM next_push
             WHERE sound AND ((taken IS NULL AND agent IN ('', ?1) AND session IN ('', ?2)
                    AND project IN ('', ?3))
                OR (taken > ?4 AND taker = ?1 AND taker_session = ?2)) ORDER BY number"
        );
        self.db.rows(&sql, params![agent, session, project, received], NextPush::of)
    }

    /// Returns the items that went with prompts because of wishes ([`NextPush`]), oldest first.
    pub fn taken_pushes(&self) -> Result<Vec<TakenPush>, StoreError> {
        let sql = "SELECT taker, taker_session, item, taken_at FROM next_push
                   WHERE taken IS NOT NULL ORDER BY taken_at, number";
        self.db.rows(sql, [], TakenPush::of)
    }
}

fn push_of(row: &Row<'_>) -> rusqlite::Result<PushRow> {
    Ok(PushRow {
        agent: row.get(0)?,
        session: row.get(1)?,
        latest: PushState { number: row.get(2)?, items: row.get(3)? },
        earlier: PushState { number: row.get(4)?, items: row.get(5)? },
        at: row.get(6)?,
        project: row.get(7)?,
        tokens: row.get(8)?,
    })
}

impl Writing<'_> {
    /// Records the latest push to an agent's session. If there are too many sessions, forgets
    /// those whose last push is the oldest.
    pub fn note_push(&self, row: &PushRow) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO push
                   (agent, session, number, items, earlier_number, earlier_items, at, project, tokens)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let PushRow { agent, session, latest, earlier, at, project, tokens } = row;
        let (number, items) = (latest.number, &latest.items);
        let (before, had) = (earlier.number, &earlier.items);
        let values = params![agent, session, number, items, before, had, at, project, tokens];
        self.db.change(sql, values)?;
        let oldest = "DELETE FROM push WHERE rowid <=
                      (SELECT rowid FROM push ORDER BY rowid DESC LIMIT 1 OFFSET ?1)";
        if self.db.change(oldest, [KEPT])? > 0 {
            // The pushes of a forgotten session are numbered from the beginning again.
            let orphans = "DELETE FROM next_push WHERE taken IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM push WHERE agent = taker AND session = taker_session)";
            self.db.change(orphans, [])?;
        }
        Ok(())
    }

    /// Stores a wish to send an item with an agent's next prompt.
    pub fn add_next_push(&self, next: &NextPush) -> Result<(), StoreError> {
        let values = rusqlite::params_from_iter(next.values());
        self.db.change(&NextPush::insertion("next_push", &[]), values).map(drop)
    }

    /// Deletes the wish with this number if it still waits for a prompt. Returns whether it did.
    pub fn drop_next_push(&self, number: u64) -> Result<bool, StoreError> {
        let sql = "DELETE FROM next_push WHERE number = ?1 AND taken IS NULL";
        Ok(self.db.change(sql, [number])? > 0)
    }

    /// Records that the push `by` fulfils the wish with this number. Deletes the wishes beyond
    /// [`TAKEN_KEPT`] that were fulfilled first.
    pub fn take_next_push(&self, number: u64, by: &PushRow) -> Result<(), StoreError> {
        let sql = "UPDATE next_push SET taker = ?2, taker_session = ?3, taken = ?4, taken_at = ?5
                   WHERE number = ?1";
        let PushRow { agent, session, latest, at, .. } = by;
        self.db.change(sql, params![number, agent, session, latest.number, at])?;
        let oldest = "DELETE FROM next_push WHERE number IN
                      (SELECT number FROM next_push WHERE taken IS NOT NULL
                       ORDER BY number = ?2 DESC, taken_at DESC, number DESC LIMIT -1 OFFSET ?1)";
        self.db.change(oldest, params![TAKEN_KEPT, number]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::session::PushState;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn a_wish_that_waited_long_is_kept_as_long_as_others() {
        let mut store = SqliteStore::in_memory().unwrap();
        let push = |number: u64| PushRow {
            agent: "codex".to_owned(),
            session: "s".to_owned(),
            latest: PushState { number, ..PushState::default() },
            earlier: PushState::default(),
            at: number as i64,
            project: String::new(),
            tokens: 0,
        };
        let wish = |number: u64| NextPush {
            number,
            manager: "m".to_owned(),
            item: 1,
            agent: String::new(),
            session: String::new(),
            project: String::new(),
            at: 0,
            change: 0,
        };
        let change = store.change().unwrap();
        for number in 1..=TAKEN_KEPT + 1 {
            change.add_next_push(&wish(number)).unwrap();
        }
        for number in 2..=TAKEN_KEPT + 1 {
            change.take_next_push(number, &push(number)).unwrap();
        }
        change.take_next_push(1, &push(TAKEN_KEPT + 2)).unwrap();
        let due = store.read().due_pushes("codex", "s", "", TAKEN_KEPT + 1).unwrap();
        assert_eq!(due, [wish(1)]);
        assert_eq!(store.read().taken_pushes().unwrap().len() as u64, TAKEN_KEPT);
    }
}
