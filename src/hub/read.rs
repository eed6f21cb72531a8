//! What a hub has of others.

use tokio_postgres::types::ToSql;

use super::link::{HubAddress, HubLink, get, within};

/// Maximum size of a name or an excerpt from a hub, in bytes.
const LONGEST: usize = 2 << 10;
const SEARCH: &str = "SELECT source, author::text, machine, name, part, role, at, score, snippet
    FROM contexture.search($1, $2, $3, $4, $5)";
const LIST: &str =
    "SELECT source.id, pg_get_userbyid(author)::text, machine_name, name, 0::bigint, '',
    created, 0::real, '' FROM contexture.source JOIN contexture.share ON share.id = share
    WHERE gone IS NULL AND ($1::text[] IS NULL OR project = ANY ($1))
    AND NOT (author = contexture.role(current_user) AND machine = $2)
    ORDER BY created DESC, source.id DESC LIMIT $3";
/// Maximum number of messages that are read of a session.
const MOST_READ: i64 = 5_000;
/// The last messages, in order.
const READ: &str = "SELECT part, role, at, content FROM (
        SELECT part, role, at, content FROM contexture.said
        WHERE source = $1 ORDER BY part DESC LIMIT $2) AS last ORDER BY part";
const NAME: &str = "SELECT name, pg_get_userbyid(author)::text, machine_name, project
    FROM contexture.source JOIN contexture.share ON share.id = share WHERE source.id = $1";

/// A text that a hub found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundText {
    /// Number of the session or memory in the hub.
    pub source: u64,
    /// Who shared it.
    pub author: String,
    /// Name of the machine that it is from.
    pub machine: String,
    /// Name of the session, or the beginning of the memory.
    pub name: String,
    /// Number of the message; 0 for a memory, and without words to find.
    pub part: u64,
    /// Author of the message.
    pub role: String,
    /// Time in Unix seconds.
    pub at: i64,
    pub score: f64,
    /// Text around the match.
    pub snippet: String,
}

/// A session of somebody else.
pub(crate) struct Whole {
    pub name: String,
    pub author: String,
    pub machine: String,
    /// What its project is called on all machines.
    pub project: String,
    /// Number, role, time and text of each message.
    pub messages: Vec<(u64, String, i64, String)>,
}

impl HubLink {
    /// Finds texts of others, best first; those that have all words, or else any. Without a word, finds
    /// all sessions and memories, newest first.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn search(
        to: &HubAddress,
        query: &str,
        projects: Option<Vec<String>>,
        machine: &str,
        most: u64,
    ) -> Result<Vec<FoundText>, String> {
        let time = to.time;
        let link = Self::open(to, time).await?;
        within(time, async {
            link.check().await?;
            let query = query.replace('\0', " ");
            let most = i32::try_from(most).unwrap_or(i32::MAX);
            let all = i64::from(most);
            let [both, any, list]: [(&str, &[&(dyn ToSql + Sync)]); 3] = [
                (SEARCH, &[&query, &true, &projects, &machine, &most]),
                (SEARCH, &[&query, &false, &projects, &machine, &most]),
                (LIST, &[&projects, &machine, &all]),
            ];
            let asked = if query.trim().is_empty() { vec![list] } else { vec![both, any] };
            for (sql, values) in asked {
                let rows = link.client.query(sql, values).await;
                let rows = rows.map_err(|error| link.failed(&error))?;
                if !rows.is_empty() {
                    let rows = rows.iter().take(usize::try_from(most).unwrap_or(0));
                    return rows.map(found).collect();
                }
            }
            Ok(Vec::new())
        })
        .await
    }

    /// Reads a session or a memory.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn read(to: &HubAddress, source: u64) -> Result<Whole, String> {
        let link = Self::open(to, to.time).await?;
        within(to.time, async {
            link.check().await?;
            let id = i64::try_from(source).map_err(|_| "the hub has no such session".to_owned())?;
            let about = link.client.query_opt(NAME, &[&id]).await;
            let about = about.map_err(|error| link.failed(&error))?;
            let about = about.ok_or("the hub has no such session that you may read")?;
            let rows = link.client.query(READ, &[&id, &MOST_READ]).await;
            let rows = rows.map_err(|error| link.failed(&error))?;
            let message = |row: &_| {
                Ok((number(get(row, 0)?), get(row, 1)?, get::<i64>(row, 2)?, get(row, 3)?))
            };
            Ok(Whole {
                name: short(get(&about, 0)?),
                author: short(get(&about, 1)?),
                machine: short(get(&about, 2)?),
                project: get(&about, 3)?,
                messages: rows.iter().map(message).collect::<Result<_, String>>()?,
            })
        })
        .await
    }
}

fn found(row: &tokio_postgres::Row) -> Result<FoundText, String> {
    let text = |at| get(row, at).map(short);
    let score: f32 = get(row, 7)?;
    Ok(FoundText {
        source: number(get(row, 0)?),
        author: text(1)?,
        machine: text(2)?,
        name: text(3)?,
        part: number(get(row, 4)?),
        role: text(5)?,
        at: get(row, 6)?,
        score: if score.is_finite() { score.into() } else { 0.0 },
        snippet: text(8)?.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}
