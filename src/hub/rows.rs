//! What is written into a hub, and taken back.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::link::{HubAddress, HubLink, get, within};
use super::shares::{SharedPiece, Shares};

/// The tables of a hub.
const TABLES: &str = include_str!("tables.sql");
/// Maximum time for a statement that writes.
pub(crate) const WRITING: Duration = Duration::from_secs(60);

const PUT_SHARE: &str = "INSERT INTO contexture.share (machine, machine_name, project, readers)
    VALUES ($1, $2, $3, CASE $4 WHEN 'public' THEN 0::regrole ELSE contexture.role($4) END)
    ON CONFLICT (author, machine, project) DO UPDATE SET machine_name = $2, readers = excluded.readers";
const PUT_SOURCE: &str = "INSERT INTO contexture.source (share, kind, number, name, created)
    SELECT id, $2, $3, $5, $6 FROM contexture.share
    WHERE author = contexture.role(current_user) AND machine = $1 AND project = $4
    ON CONFLICT (share, kind, number) DO UPDATE SET name = $5";
const PUT_SAID: &str = "INSERT INTO contexture.said (source, share, part, role, at, content)
    SELECT own.*, it.* FROM (SELECT source.id, share FROM contexture.source JOIN contexture.share
        ON share.id = share WHERE author = contexture.role(current_user)
        AND machine = $1 AND kind = $2 AND number = $3) AS own,
        unnest($4::bigint[], $5::text[], $6::bigint[], $7::text[]) AS it
    ON CONFLICT DO NOTHING";
const EDIT: &str = "UPDATE contexture.source SET name = coalesce($4, name),
    gone = CASE WHEN $4 IS NULL THEN $5 ELSE gone END WHERE kind = $2 AND number = $3 AND share IN (
        SELECT id FROM contexture.share
        WHERE author = contexture.role(current_user) AND machine = $1)";
const PUT_SEQ: &str = "INSERT INTO contexture.machine (id, seq) VALUES ($1, $2)
    ON CONFLICT (author, id) DO UPDATE SET seq = $2";
const SEQ: &str = "SELECT seq FROM contexture.machine
    WHERE author = contexture.role(current_user) AND id = $1";
const TAKE_BACK: &str = "SELECT contexture.take_back($1, $2)";
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
        for (project, share) in &shares.projects {
            self.execute(PUT_SHARE, &[me, &name, project, &share.readers]).await?;
        }
        for piece in pieces {
            match piece {
                SharedPiece::Source { kind, number, project, name, created } => {
                    let values: [&(dyn ToSql + Sync); 6] =
                        [me, &kind, &signed(number), &project, &name, &created];
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
                    let values: [&(dyn ToSql + Sync); 5] =
                        [me, &kind, &signed(number), &Some(name), &None::<i64>];
                    self.execute(EDIT, &values).await?;
                }
                SharedPiece::Gone { machine, kind, number, at } => {
                    let values: [&(dyn ToSql + Sync); 5] =
                        [&machine, &kind, &signed(number), &None::<String>, &at];
                    self.execute(EDIT, &values).await?;
                }
            }
        }
        self.execute(PUT_SEQ, &[me, &signed(shares.seq)]).await?;
        self.execute("COMMIT", &[]).await.map(drop)
    }

    /// Takes back what this machine shared of projects that are shared no longer.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn take_back(&self, shares: &Shares) -> Result<(), String> {
        let machines: Vec<&String> = shares.was.iter().chain([&shares.machine]).collect();
        let projects: Vec<&String> = shares.leaving.iter().collect();
        self.execute(TAKE_BACK, &[&machines, &projects]).await.map(drop)
    }

    /// Takes back everything that this user shared, from whatever machine.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn leave(&self) -> Result<(), String> {
        let all = None::<Vec<String>>;
        self.execute(TAKE_BACK, &[&all, &all]).await.map(drop)
    }

    async fn execute(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, String> {
        self.client.execute(sql, values).await.map_err(|error| self.failed(&error))
    }
}

/// Numbers of rows are below 2^40; see `body.rs`.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
