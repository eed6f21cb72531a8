//! Memories and search hits, in the form for clients and models.

use serde::{Deserialize, Serialize};

use crate::engine::Grounded;
use crate::ids::{MemoryId, MessageId, SessionId};
use crate::session::message::Role;
use crate::store::memory::{MemoryRow, MemoryScope};
use crate::store::session::SearchHit;
use crate::value::{Keyword, Value};

/// Sessions that a memory is for.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "MemoryScope"))]
pub enum Scope {
    /// For one session.
    Session,
    /// For the sessions of a project.
    Project,
    /// For all sessions.
    Everywhere,
}

/// Memories that were found for a query.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Grounding"))]
pub struct GroundedShown {
    /// The memories, best first.
    memories: Vec<MemoryShown>,
    /// The memories as one text, for a model's window.
    summary: String,
    /// Relevance of each memory, from 0 to 1.
    relevance_scores: Vec<f64>,
    /// Mean relevance of the memories; 0 if nothing matches.
    relevance: f64,
    /// `:used` if the vector of the query was used, or the reason why the memories were found by
    /// their words alone. Absent if no embedding model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "keyword or text")))]
    embedding: Option<Value>,
}

impl GroundedShown {
    /// Adds the outcome of embedding the query; see
    /// [`Embedded::outcome`](super::Embedded::outcome).
    #[must_use]
    pub fn with_embedding(self, embedding: Option<Value>) -> Self {
        Self { embedding, ..self }
    }
}

impl From<Grounded> for GroundedShown {
    fn from(Grounded { memories, grounding }: Grounded) -> Self {
        let rows = memories.into_iter().zip(&grounding.relevances);
        let shown =
            |(row, at): (_, &f64)| MemoryShown { relevance: Some(*at), ..MemoryShown::from(row) };
        Self {
            memories: rows.map(shown).collect(),
            relevance: grounding.relevance(),
            summary: grounding.text,
            relevance_scores: grounding.relevances,
            embedding: None,
        }
    }
}

/// A memory, in the form for clients and models.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Memory"))]
pub struct MemoryShown {
    /// Id of the memory, `mem-N`.
    id: MemoryId,
    /// Text of the memory.
    content: String,
    /// Kind of the memory, such as `:note` or `:summary`.
    kind: Keyword<String>,
    #[serde(flatten)]
    scope: ScopeShown,
    #[serde(flatten)]
    origin: Option<OriginShown>,
    /// Time at which the memory was made, in Unix seconds.
    created: i64,
    /// Time at which the memory was last found, or was made if it was never found; in Unix seconds.
    accessed: i64,
    /// Number of times that the memory was found.
    accesses: u64,
    /// Time at which the memory was forgotten, in Unix seconds; absent if it was not forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<i64>,
    /// Name of the machine from which the memory came; absent if it was made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Relevance to the query, from 0 to 1; only in the result of a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    relevance: Option<f64>,
    /// `:used` if the memory was stored with a vector, or the reason why it has none. Present only
    /// in the result of the call that stores the memory, if an embedding model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "keyword or text")))]
    embedding: Option<Value>,
    /// Path of the file that the call has written the memory to.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ScopeShown {
    /// Sessions that the memory is for.
    scope: Scope,
    /// Folder of the project, if the memory is for a project.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// Id of the session, if the memory is for one session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

/// The messages that a memory was made from.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
struct OriginShown {
    /// Id of the session that the memory was made from, if any.
    from: SessionId,
    /// Id of the first message that the memory was made from.
    first_message: MessageId,
    /// Id of the last message that the memory was made from.
    last_message: MessageId,
}

impl MemoryShown {
    /// Adds the outcome of embedding the text; see [`Embedded::outcome`](super::Embedded::outcome).
    #[must_use]
    pub fn with_embedding(self, embedding: Option<Value>) -> Self {
        Self { embedding, ..self }
    }

    /// Adds the path of the file to which the memory was written.
    #[cfg(feature = "program")]
    #[must_use]
    pub fn with_path(self, path: Option<String>) -> Self {
        Self { path, ..self }
    }
}

impl From<MemoryRow> for MemoryShown {
    fn from(MemoryRow { id, made, accessed, accesses, forgotten, machine }: MemoryRow) -> Self {
        let (scope, project, session) = match made.scope {
            MemoryScope::Everywhere => (Scope::Everywhere, None, None),
            MemoryScope::Project(path) => (Scope::Project, Some(path), None),
            MemoryScope::Session(id) => (Scope::Session, None, Some(SessionId(id))),
        };
        let origin = made.origin.map(|origin| OriginShown {
            from: SessionId(origin.session),
            first_message: MessageId(origin.first),
            last_message: MessageId(origin.last),
        });
        Self {
            id: MemoryId(id),
            content: made.content,
            kind: Keyword(made.kind),
            scope: ScopeShown { scope, project, session },
            origin,
            created: made.created,
            accessed,
            accesses,
            forgotten,
            machine,
            relevance: None,
            embedding: None,
            path: None,
        }
    }
}

/// A hit of a search over sessions.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SearchHit"))]
#[serde(rename_all = "kebab-case")]
pub struct Hit {
    /// Name of the session.
    pub session: String,
    /// Id of the session; of one on the hub, or of a memory there, `hub-N`.
    pub id: String,
    /// Score of the hit; higher is better.
    pub score: f64,
    /// Text around the match.
    pub snippet: String,
    /// Id of the message that matches; absent if the session's name matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Author of the message that matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Time of the message that matches, in Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// Name of the machine from which the session came; absent if it began here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Who shared it on the hub; absent if it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<String>,
}

impl From<SearchHit> for Hit {
    fn from(hit: SearchHit) -> Self {
        let SearchHit { session, name, message, role, timestamp, snippet, score } = hit;
        let (id, message) = (SessionId(session).to_string(), message.map(MessageId));
        let (machine, shared_by) = (None, None);
        Self { session: name, id, score, snippet, message, role, timestamp, machine, shared_by }
    }
}
