//! Stored memories: texts that may help sessions in which they were not said.
//!
//! Plain data and a trait. [`memory`](crate::memory) rates and ranks memories.

use super::StoreError;
use crate::session::spans::Spans;

/// Sessions that may see a memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MemoryScope {
    /// One session.
    Session(u64),
    /// The sessions of the project in this folder.
    Project(String),
    /// All sessions.
    Everywhere,
}

/// Range of messages that a memory was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOrigin {
    /// The session.
    pub session: u64,
    /// The number of the first message.
    pub first: u64,
    /// The number of the last message.
    pub last: u64,
}

/// A memory to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Sessions that may see it.
    pub scope: MemoryScope,
    /// Kind: `note`, `context-summary` or `archived`.
    pub kind: String,
    /// Messages that it was made from, if any.
    pub origin: Option<MemoryOrigin>,
    /// The text.
    pub content: String,
    /// Creation time in Unix seconds.
    pub created: i64,
}

/// A stored memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its number, which never changes.
    pub id: u64,
    /// The memory as it was added.
    pub made: NewMemory,
    /// Time of its last use, or of its creation if it was never used; Unix seconds.
    pub accessed: i64,
    /// Number of times it was used.
    pub accesses: u64,
    /// Time at which it was forgotten, in Unix seconds. It can be restored.
    pub forgotten: Option<i64>,
}

/// Messages waiting to become memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToArchive {
    /// Number to pass to [`WriteMemories::note_archived`].
    pub id: u64,
    /// The session.
    pub session: u64,
    /// Numbers of the messages.
    pub messages: Spans,
    /// Number of the last message that is a memory already; 0 when none is.
    pub done: u64,
    /// Creation time of the memories, in Unix seconds.
    pub created: i64,
}

/// Filter for memories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryFilter {
    /// Scopes to include; all when `None`.
    pub scopes: Option<Vec<MemoryScope>>,
    /// Kind to include; all when `None`.
    pub kind: Option<String>,
    /// A session and a kind whose memories are left out: a summary must not ground the session that
    /// still shows it.
    pub except: Option<(u64, String)>,
    /// Include forgotten memories.
    pub with_forgotten: bool,
}

/// Reads memories.
pub trait ReadMemories {
    /// Returns a memory, forgotten or not.
    fn memory(&mut self, id: u64) -> Result<Option<MemoryRow>, StoreError>;

    /// Returns at most `limit` memories that match the filter, newest first.
    fn memories(&mut self, filter: &MemoryFilter, limit: u64)
    -> Result<Vec<MemoryRow>, StoreError>;

    /// Returns at most `limit` memories that match the filter and contain at least one significant
    /// word of `text`, best first, each with its BM25 score (above 0).
    fn search_memories(
        &mut self,
        text: &str,
        filter: &MemoryFilter,
        limit: u64,
    ) -> Result<Vec<(MemoryRow, f64)>, StoreError>;

    /// Returns the neighbours of these memories that match the filter: memories of the same session
    /// and kind with at most [`MOST_BETWEEN`](crate::memory::ranking::MOST_BETWEEN) messages in
    /// between. They follow the order of `ids`, each once, without those in `ids`.
    fn memories_beside(
        &mut self,
        ids: &[u64],
        filter: &MemoryFilter,
    ) -> Result<Vec<MemoryRow>, StoreError>;

    /// Returns the numbers of the memories that match the filter, in ascending order.
    fn memory_ids(&mut self, filter: &MemoryFilter) -> Result<Vec<u64>, StoreError>;

    /// Returns this model's vectors of the memories that match the filter, in ascending order of
    /// number.
    fn memory_vectors(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
    ) -> Result<Vec<(u64, Vec<f32>)>, StoreError>;

    /// Returns at most `limit` memories that match the filter and have no vector by this model,
    /// newest first.
    fn memories_without_vector(
        &mut self,
        filter: &MemoryFilter,
        model: &str,
        limit: u64,
    ) -> Result<Vec<MemoryRow>, StoreError>;

    /// Returns the messages that were queued first.
    fn next_to_archive(&mut self) -> Result<Option<ToArchive>, StoreError>;
}

/// Changes memories. Writes belong to the running request.
pub trait WriteMemories: ReadMemories {
    /// Adds a memory and returns its number.
    fn add_memory(&mut self, memory: &NewMemory) -> Result<u64, StoreError>;

    /// Stores the vector that an embedding model computed for a memory, in place of the model's
    /// earlier one.
    fn set_memory_vector(&mut self, id: u64, model: &str, vector: &[f32])
    -> Result<(), StoreError>;

    /// Counts one more use of each of these memories, at this time in Unix seconds.
    fn touch_memories(&mut self, ids: &[u64], at: i64) -> Result<(), StoreError>;

    /// Forgets a memory at this time in Unix seconds, or restores it when `at` is `None`. Returns
    /// whether the memory exists.
    fn set_memory_forgotten(&mut self, id: u64, at: Option<i64>) -> Result<bool, StoreError>;

    /// Queues messages of a session to become memories, created at this time in Unix seconds.
    fn put_off_archive(
        &mut self,
        session: u64,
        messages: &Spans,
        created: i64,
    ) -> Result<(), StoreError>;

    /// Records the last message that became a memory; `None` when all of them did.
    fn note_archived(&mut self, id: u64, done: Option<u64>) -> Result<(), StoreError>;
}
