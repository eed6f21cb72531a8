//! Rows for what machines exchange.

use rusqlite::params;

use super::super::StoreError;
use super::super::sync::{ChangeRow, KnownRow, MachineRow};
use super::sql::{Columns, Statements, columns, limit};
use super::{TableReading, Writing};

columns!(MachineRow { id, name, place, seq, sum });
columns!(ChangeRow { id, machine, seq, about, body, digest, sum, sign, session, first, last });
columns!(KnownRow {
    kind,
    row,
    machine,
    number,
    name,
    gone,
    count,
    name_at,
    name_by,
    gone_at,
    gone_by
});

/// Query for the sessions that differ from what was last exchanged of them.
const CHANGED_SESSIONS: &str = "SELECT session.id FROM session LEFT JOIN known
    ON kind = 'session' AND row = session.id
    WHERE CASE WHEN known.row IS NULL THEN deleted IS NULL
          ELSE session.name <> known.name OR deleted IS NOT gone OR messages <> count END
    ORDER BY session.id";
/// The same for memories. New ones that are archived or of a repository are left out: they can be
/// made from the messages, or come with the repository.
const CHANGED_MEMORIES: &str = "SELECT memory.id FROM memory LEFT JOIN known
    ON known.kind = 'memory' AND row = memory.id
    WHERE CASE WHEN known.row IS NULL THEN memory.kind NOT IN ('archived', 'repository')
               AND forgotten IS NULL
          ELSE forgotten IS NOT gone END
    ORDER BY memory.id";
/// The same for managers, by name.
const CHANGED_MANAGERS: &str = "SELECT manager.id, manager.name, manager.version
    FROM manager LEFT JOIN known ON kind = 'manager' AND row = manager.id
    WHERE CASE WHEN known.row IS NULL THEN EXISTS (SELECT 1 FROM slot WHERE slot.manager = manager.id)
          ELSE manager.version <> count OR manager.name <> known.name END
    ORDER BY manager.id";

/// Query for the changes without a body that no known change replaces.
const OPEN_CHANGES: &str = "SELECT change.machine, change.seq FROM change
    JOIN (SELECT machine, about, max(seq) AS seq FROM change
          WHERE about IS NOT NULL GROUP BY machine, about) AS newest USING (machine, seq)
    WHERE change.body IS NULL AND change.sound";

impl TableReading<'_> {
    /// Returns all machines.
    pub fn machines(&self) -> Result<Vec<MachineRow>, StoreError> {
        let sql = format!("SELECT {} FROM machine WHERE sound ORDER BY id", MachineRow::list());
        self.db.rows(&sql, [], MachineRow::of)
    }

    /// Returns the change of a machine with this number.
    pub fn change_of(&self, machine: &str, seq: u64) -> Result<Option<ChangeRow>, StoreError> {
        let sql = format!(
            "SELECT {} FROM change WHERE machine = ?1 AND seq = ?2 AND sound",
            ChangeRow::list()
        );
        self.db.row(&sql, params![machine, seq], ChangeRow::of)
    }

    /// Returns at most `most` changes of a machine after this number, in order.
    pub fn changes_after(
        &self,
        machine: &str,
        seq: u64,
        most: u64,
    ) -> Result<Vec<ChangeRow>, StoreError> {
        let sql = format!(
            "SELECT {} FROM change WHERE machine = ?1 AND seq > ?2 AND sound ORDER BY seq LIMIT ?3",
            ChangeRow::list()
        );
        self.db.rows(&sql, params![machine, seq, limit(most)], ChangeRow::of)
    }

    /// Returns at most `most` changes, by machine and number, that have no body, and that no known
    /// change replaces.
    pub fn open_changes(&self, most: u64) -> Result<Vec<(String, u64)>, StoreError> {
        let sql = format!("{OPEN_CHANGES} ORDER BY change.id LIMIT ?1");
        self.db.rows(&sql, [limit(most)], |row| <(String, u64)>::try_from(row))
    }

    /// Returns whether a change is one of [`Self::open_changes`].
    pub fn is_open(&self, machine: &str, seq: u64) -> Result<bool, StoreError> {
        let sql =
            format!("SELECT EXISTS ({OPEN_CHANGES} AND change.machine = ?1 AND change.seq = ?2)");
        Ok(self.db.value(&sql, params![machine, seq])? == Some(true))
    }

    /// Returns what is known of a row.
    pub fn known(&self, kind: &str, row: u64) -> Result<Option<KnownRow>, StoreError> {
        let sql = format!(
            "SELECT {} FROM known WHERE kind = ?1 AND row = ?2 AND sound",
            KnownRow::list()
        );
        self.db.row(&sql, params![kind, row], KnownRow::of)
    }

    /// Returns what is known of a thing by its machine and its number there.
    pub fn known_as(
        &self,
        machine: &str,
        kind: &str,
        number: u64,
    ) -> Result<Option<KnownRow>, StoreError> {
        let sql = format!(
            "SELECT {} FROM known WHERE machine = ?1 AND kind = ?2 AND number = ?3 AND sound",
            KnownRow::list()
        );
        self.db.row(&sql, params![machine, kind, number], KnownRow::of)
    }

    /// Returns the sessions that differ from what was last exchanged of them.
    pub fn changed_sessions(&self) -> Result<Vec<u64>, StoreError> {
        self.db.rows(CHANGED_SESSIONS, [], |row| row.get(0))
    }

    /// Returns the memories that differ from what was last exchanged of them.
    pub fn changed_memories(&self) -> Result<Vec<u64>, StoreError> {
        self.db.rows(CHANGED_MEMORIES, [], |row| row.get(0))
    }

    /// Returns the number, the name and the version of each manager that differs from what was last
    /// exchanged of it.
    pub fn changed_managers(&self) -> Result<Vec<(u64, String, u64)>, StoreError> {
        self.db.rows(CHANGED_MANAGERS, [], |row| <(u64, String, u64)>::try_from(row))
    }

    /// Returns the folders of all projects that were not given an identity by the user.
    pub fn project_folders(&self) -> Result<Vec<String>, StoreError> {
        let sql =
            "SELECT DISTINCT ifnull(project, told) AS named FROM session WHERE named LIKE '/%'
                   UNION SELECT DISTINCT substr(scope, 9) FROM memory WHERE scope LIKE 'project /%'
                   UNION SELECT path FROM project
                   EXCEPT SELECT path FROM project WHERE given";
        self.db.rows(sql, [], |row| row.get(0))
    }

    /// Returns the identity of a project.
    pub fn project_identity(&self, path: &str) -> Result<Option<String>, StoreError> {
        self.db.value("SELECT identity FROM project WHERE path = ?1", [path])
    }

    /// Returns the folder of the project with this identity.
    pub fn project_of(&self, identity: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT path FROM project WHERE identity = ?1 ORDER BY path LIMIT 1";
        self.db.value(sql, [identity])
    }
}

impl Writing<'_> {
    /// Stores a machine.
    pub fn put_machine(&self, row: &MachineRow) -> Result<(), StoreError> {
        let sql = MachineRow::insertion("machine", &[]).replacen("INSERT", "INSERT OR REPLACE", 1);
        self.db.change(&sql, &*row.values()).map(drop)
    }

    /// Adds a change, and drops the bodies of those that it replaces.
    pub fn add_change(&self, row: &ChangeRow) -> Result<(), StoreError> {
        let sql = "UPDATE change SET body = NULL WHERE machine = ?1 AND about = ?2";
        if row.about.is_some() {
            self.db.change(sql, params![row.machine, row.about])?;
        }
        self.db.change(&ChangeRow::insertion("change", &[]), &*row.values()).map(drop)
    }

    /// Stores the body of a change that came without it.
    pub fn complete_change(&self, machine: &str, seq: u64, body: &str) -> Result<(), StoreError> {
        let sql = "UPDATE change SET body = ?3 WHERE machine = ?1 AND seq = ?2";
        self.db.change(sql, params![machine, seq, body]).map(drop)
    }

    /// Stores what is known of a row.
    pub fn put_known(&self, row: &KnownRow) -> Result<(), StoreError> {
        let sql = KnownRow::insertion("known", &[]).replacen("INSERT", "INSERT OR REPLACE", 1);
        self.db.change(&sql, &*row.values()).map(drop)
    }

    /// Forgets what is known of a row.
    pub fn drop_known(&self, kind: &str, row: u64) -> Result<(), StoreError> {
        self.db
            .change("DELETE FROM known WHERE kind = ?1 AND row = ?2 AND sound", params![kind, row])
            .map(drop)
    }

    /// Notes the identity of a project, and lets the copies of its sessions and memories be the
    /// project's. Returns the sessions.
    pub fn put_project(
        &self,
        path: &str,
        identity: &str,
        given: bool,
    ) -> Result<Vec<u64>, StoreError> {
        let sql = "INSERT INTO project (path, identity, given) VALUES (?1, ?2, ?3)
                   ON CONFLICT (path) DO UPDATE SET identity = ?2, given = ?3
                   WHERE identity <> ?2 OR given <> ?3";
        self.db.change(sql, params![path, identity, given])?;
        let sql = "SELECT id FROM session WHERE told = ?1";
        let sessions: Vec<u64> = self.db.rows(sql, [identity], |row| row.get(0))?;
        self.db.change("UPDATE session SET told = ?1 WHERE told = ?2", [path, identity])?;
        let sql = "UPDATE memory SET scope = 'project ' || ?1 WHERE scope = 'project ' || ?2";
        self.db.change(sql, [path, identity])?;
        Ok(sessions)
    }

    /// Gives a name to a set, or takes it away when `set` is `None`.
    pub fn put_set(&self, name: &str, set: Option<u64>) -> Result<(), StoreError> {
        let sql = "DELETE FROM set_name WHERE name = ?1";
        self.db.change(sql, [name])?;
        let sql = "INSERT INTO set_name (name, item_set) SELECT ?1, ?2 WHERE ?2 IS NOT NULL";
        self.db.change(sql, params![name, set]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn a_replaced_change_keeps_its_sum() {
        let mut store = SqliteStore::in_memory().unwrap();
        let row = |seq| ChangeRow {
            machine: "m".into(),
            seq,
            about: Some("marks 1".into()),
            body: Some("b".into()),
            ..ChangeRow::default()
        };
        let writing = store.change().unwrap();
        for seq in [1, 2] {
            writing.add_change(&row(seq)).unwrap();
        }
        let bodies = writing.changes_after("m", 0, 9).unwrap();
        let bodies: Vec<_> = bodies.into_iter().map(|row| row.body).collect();
        assert_eq!(bodies, [None, Some("b".to_owned())]);
        assert!(writing.add_change(&row(2)).is_err(), "no number is used twice");
    }
}
