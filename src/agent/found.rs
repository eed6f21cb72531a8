//! Memories and hits of searches, as clients and models see them.

use serde::{Deserialize, Serialize};

use crate::engine::Grounded;
use crate::ids::{MemoryId, MessageId, SessionId};
use crate::session::message::Role;
use crate::store::memory::{MemoryRow, MemoryScope};
use crate::store::session::SearchHit;
use crate::value::{Keyword, Value};

/// Sessions that a memory is for.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    /// For one session.
    Session,
    /// For the sessions of a project.
    Project,
    /// For all sessions.
    Everywhere,
}

/// Memories that were found for a query.
#[derive(Serialize)]
pub(crate) struct GroundedShown {
    memories: Vec<MemoryShown>,
    summary: String,
    relevance_scores: Vec<f64>,
    relevance: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<Value>,
}

impl GroundedShown {
    /// Adds the outcome of embedding the query; see
    /// [`Embedded::outcome`](super::Embedded::outcome).
    #[must_use]
    pub(crate) fn with_embedding(self, embedding: Option<Value>) -> Self {
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

/// A memory as clients see it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MemoryShown {
    id: MemoryId,
    content: String,
    kind: Keyword<String>,
    #[serde(flatten)]
    scope: ScopeShown,
    #[serde(flatten)]
    origin: Option<OriginShown>,
    created: i64,
    accessed: i64,
    accesses: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    forgotten: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relevance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<Value>,
}

#[derive(Serialize)]
struct ScopeShown {
    scope: Scope,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
}

/// The messages that a memory was made from.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct OriginShown {
    from: SessionId,
    first_message: MessageId,
    last_message: MessageId,
}

impl MemoryShown {
    /// Adds the outcome of embedding the text; see [`Embedded::outcome`](super::Embedded::outcome).
    #[must_use]
    pub(crate) fn with_embedding(self, embedding: Option<Value>) -> Self {
        Self { embedding, ..self }
    }
}

impl From<MemoryRow> for MemoryShown {
    fn from(MemoryRow { id, made, accessed, accesses, forgotten }: MemoryRow) -> Self {
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
            relevance: None,
            embedding: None,
        }
    }
}

/// A hit of a search over sessions.
#[derive(Serialize)]
pub(crate) struct Hit {
    session: String,
    id: SessionId,
    score: f64,
    snippet: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
}

impl From<SearchHit> for Hit {
    fn from(SearchHit { session, name, message, role, snippet, score }: SearchHit) -> Self {
        let (id, message) = (SessionId(session), message.map(MessageId));
        Self { session: name, id, score, snippet, message, role }
    }
}
