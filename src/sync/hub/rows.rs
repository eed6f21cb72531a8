//! What is written into a hub, and taken back.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::link::{HubAddress, HubLink, get, within};
use super::shares::{SharedPiece, Shares};

/// The tables of a hub.
const TABLES: &str = include_str!("tables.sql");
/// Maximum time for a statement that writes.
pub(crate) const WRITING: Duration = Duration::from_secs(60);

const PUT_SOURCE: &str = "INSERT INTO contexture.source
    (machine, machine_name, kind, number, project, readers, name, created)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (author, machine, kind, number) DO UPDATE SET readers = $6, name = $7";
const PUT_SAID: &str = "INSERT INTO contexture.said (source, part, role, at, content)
    SELECT id, it.* FROM contexture.source,
        unnest($4::bigint[], $5::text[], $6::bigint[], $7::text[]) AS it
    WHERE author = current_user AND machine = $1 AND kind = $2 AND number = $3
    ON CONFLICT DO NOTHING";
const NAME: &str = "UPDATE contexture.source SET name = $4
    WHERE author = current_user AND machine = $1 AND kind = $2 AND number = $3";
const GONE: &str = "UPDATE contexture.source SET gone = $4
    WHERE author = current_user AND machine = $1 AND kind = $2 AND number = $3";
const PUT_SEQ: &str = "INSERT INTO contexture.machine (id, seq) VALUES ($1, $2)
    ON CONFLICT (author, id) DO UPDATE SET seq = $2";
const SEQ: &str = "SELECT seq FROM contexture.machine WHERE author = current_user AND id = $1";
const TAKE_BACK: &str = "DELETE FROM contexture.source
    WHERE author = current_user AND machine = ANY ($1) AND project = ANY ($2)";
const LEAVE: &str = "DELETE FROM contexture.source WHERE author = current_user";
const LEAVE_MACHINES: &str = "DELETE FROM contexture.machine WHERE author = current_user";
const ABOUT: &str = "SELECT current_user::text, pg_get_userbyid(nspowner)::text
    FROM pg_namespace WHERE nspname = 'contexture'";

impl HubLink {
    /// Connects for writing.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn to_write(to: &HubAddress) -> Result<Self, String> {
        let link = Self::open(to, WRITING).await?;
        within(WRITING, link.check()).await?;
        Ok(link)
    }

    /// Makes the tables of a hub.
    ///
    /// # Errors
    /// The reason, for people; there are no tables then.
    pub(crate) async fn set_up(to: &HubAddress) -> Result<(), String> {
        let link = Self::open(to, WRITING).await?;
        let sql = format!("BEGIN; {TABLES} COMMIT");
        within(WRITING, async {
            link.client.batch_execute(&sql).await.map_err(|e| link.failed(&e))
        })
        .await
    }

    /// Returns who is logged in, and who owns the tables.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn about(&self) -> Result<(String, String), String> {
        let row = self.client.query_one(ABOUT, &[]).await.map_err(|error| self.failed(&error))?;
        Ok((get(&row, 0)?, get(&row, 1)?))
    }

    /// Returns the number of the last change of a machine that the hub has.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn seq(&self, machine: &str) -> Result<u64, String> {
        let row = self.client.query_opt(SEQ, &[&machine]).await;
        let row = row.map_err(|error| self.failed(&error))?;
        let seq: i64 = row.map(|row| get(&row, 0)).transpose()?.unwrap_or(0);
        Ok(u64::try_from(seq).unwrap_or(0))
    }

    /// Writes what the hub is told, all of it or nothing.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn put(
        &mut self,
        name: &str,
        pieces: Vec<SharedPiece>,
        shares: &Shares,
    ) -> Result<(), String> {
        self.execute("BEGIN", &[]).await?;
        let said = self.prepared(PUT_SAID).await?;
        let me = &shares.machine;
        for piece in pieces {
            match piece {
                SharedPiece::Source { kind, number, project, name: of, created } => {
                    let readers = shares.projects.get(&project).map(|share| &*share.readers);
                    let number = signed(number);
                    let values: [&(dyn ToSql + Sync); 8] =
                        [me, &name, &kind, &number, &project, &readers, &of, &created];
                    self.execute(PUT_SOURCE, &values).await?;
                }
                SharedPiece::Said { kind, number, texts } => {
                    let parts: Vec<i64> = texts.iter().map(|text| signed(text.part)).collect();
                    let roles: Vec<&str> = texts.iter().map(|text| text.role).collect();
                    let times: Vec<i64> = texts.iter().map(|text| text.at).collect();
                    let all: Vec<&str> = texts.iter().map(|text| &*text.content).collect();
                    let number = signed(number);
                    let values: [&(dyn ToSql + Sync); 7] =
                        [me, &kind, &number, &parts, &roles, &times, &all];
                    let put = self.client.execute(&said, &values).await;
                    put.map_err(|error| self.failed(&error))?;
                }
                SharedPiece::Name { kind, number, name } => {
                    self.execute(NAME, &[me, &kind, &signed(number), &name]).await?;
                }
                SharedPiece::Gone { machine, kind, number, at } => {
                    self.execute(GONE, &[&machine, &kind, &signed(number), &at]).await?;
                }
            }
        }
        self.execute(PUT_SEQ, &[me, &signed(shares.seq)]).await?;
        self.execute("COMMIT", &[]).await.map(drop)
    }

    /// Takes back what this machine shared of projects that are shared no longer. Returns how much that was.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn take_back(&self, shares: &Shares) -> Result<u64, String> {
        let machines: Vec<&String> = shares.was.iter().chain([&shares.machine]).collect();
        let projects: Vec<&String> = shares.leaving.iter().collect();
        self.execute(TAKE_BACK, &[&machines, &projects]).await
    }

    /// Takes back everything that this user shared, from whatever machine. Returns how much that
    /// was.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn leave(&self) -> Result<u64, String> {
        let count = self.execute(LEAVE, &[]).await?;
        self.execute(LEAVE_MACHINES, &[]).await?;
        Ok(count)
    }

    async fn execute(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, String> {
        self.client.execute(sql, values).await.map_err(|error| self.failed(&error))
    }
}

/// Numbers of rows are below 2^40; see `body.rs`.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
