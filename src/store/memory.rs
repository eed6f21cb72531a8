//! What a store keeps of memories: texts that may be of use to sessions that did not hear them.
//!
//! Plain data and a trait. How strong a memory is and which are best is
//! [`memory`](crate::memory)'s.

use super::StoreError;
use crate::session::spans::Spans;

/// Whom a memory is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemoryScope {
    /// One session.
    Session(u64),
    /// The sessions of the project in this folder.
    Project(String),
    /// All.
    Everywhere,
}

/// The messages that a memory is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOrigin {
    /// The session.
    pub session: u64,
    /// The number of the first message.
    pub first: u64,
    /// The number of the last message.
    pub last: u64,
}

/// A memory about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Whom it is for.
    pub scope: MemoryScope,
    /// What it is: `note`, `context-summary`, `archived`.
    pub kind: String,
    /// What it is made of, if it is of messages.
    pub origin: Option<MemoryOrigin>,
    /// The text.
    pub content: String,
    /// Unix seconds.
    pub created: i64,
}

/// A memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its number; the same for ever.
    pub id: u64,
    /// What it was made of.
    pub made: NewMemory,
    /// When it was last of use, or made; Unix seconds.
    pub accessed: i64,
    /// How often it was of use.
    pub accesses: u64,
    /// When it was forgotten, Unix seconds; it can be brought back.
    pub forgotten: Option<i64>,
}

/// Messages that are to become memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToArchive {
    /// The number by which [`MemoryStore::note_archived`] knows them.
    pub id: u64,
    /// The session.
    pub session: u64,
    /// The messages, by number.
    pub messages: Spans,
    /// The last of them that is a memory already, 0 when none is.
    pub done: u64,
    /// Creation time of the memories, in Unix seconds.
    pub created: i64,
}

/// Which memories are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryFilter {
    /// Those of these scopes; of all when `None`.
    pub scopes: Option<Vec<MemoryScope>>,
    /// Those of this kind.
    pub kind: Option<String>,
    /// Not those of this kind that come from this session. So a summary is kept from grounding the
    /// session that still has it.
    pub except: Option<(u64, String)>,
    /// Forgotten ones too.
    pub with_forgotten: bool,
}

/// The memories' part of a [`Store`](super::Store). Writes belong to the request that is running,
/// like all others.
pub trait MemoryStore {
    /// Adds a memory and gives its number.
    fn add_memory(&mut self, memory: &NewMemory) -> Result<u64, StoreError>;

    /// A memory, forgotten or not.
    fn memory(&mut self, id: u64) -> Result<Option<MemoryRow>, StoreError>;

    /// The memories that pass, at most `limit`, newest first.
    fn memories(&mut self, filter: &MemoryFilter, limit: u64)
    -> Result<Vec<MemoryRow>, StoreError>;

    /// The memories that pass and have some word of a free text that says something, at most
    /// `limit`, best first, each with its score by BM25, above 0.
    fn search_memories(
        &mut self,
        text: &str,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<(MemoryRow, f64)>, StoreError>;

    /// The memories that pass and are next to one of these: of the same session and kind, and with
    /// at most [`MOST_BETWEEN`](crate::memory::ranking::MOST_BETWEEN) messages between. In the order
    /// of `ids`, each once, and none that is one of them.
    fn memories_beside(
        &mut self,
        ids: &[u64],
        filter: &MemoryFilter,
    ) -> Result<Vec<MemoryRow>, StoreError>;

    /// Keeps what a model of embeddings made of a memory, in the place of what it made before.
    fn set_memory_vector(&mut self, id: u64, model: &str, vector: &[f32])
    -> Result<(), StoreError>;

    /// The numbers of the memories that pass, the smallest first.
    fn memory_ids(&mut self, filter: &MemoryFilter) -> Result<Vec<u64>, StoreError>;

    /// The vectors by this model of the memories that pass, by number of the memory.
    fn memory_vectors(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError>;

    /// The memories that pass and have no vector by this model, at most `limit`, newest first.
    fn memories_without_vector(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError>;

    /// Notes that these memories were of use, once more each, at this time in Unix seconds.
    fn touch_memories(&mut self, ids: &[u64], at: i64) -> Result<(), StoreError>;

    /// Forgets a memory, with the time in Unix seconds, or brings it back. Says whether there is
    /// such a memory.
    fn set_memory_forgotten(&mut self, id: u64, at: Option<i64>) -> Result<bool, StoreError>;

    /// Notes that messages of a session are to become memories, made at this time in Unix seconds.
    fn put_off_archive(
        &mut self,
        session: u64,
        messages: &Spans,
        created: i64,
    ) -> Result<(), StoreError>;

    /// Returns the oldest messages that are to become memories.
    fn next_to_archive(&mut self) -> Result<Option<ToArchive>, StoreError>;

    /// Notes the last message that became a memory, or that all did when it is `None`.
    fn note_archived(&mut self, id: u64, done: Option<u64>) -> Result<(), StoreError>;
}
