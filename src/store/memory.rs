//! Stored memories: texts that may help sessions in which they were not said.
//!
//! Plain data. [`memory`](crate::memory) rates and ranks memories.

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
    /// Number to pass to [`note_archived`](super::Writing::note_archived).
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
