//! Stored memories: texts that may be useful later, in the same session or in others.
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
    /// Number of the session.
    pub session: u64,
    /// Number of the first message.
    pub first: u64,
    /// Number of the last message.
    pub last: u64,
}

/// A memory to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMemory {
    /// Sessions that may see the memory.
    pub scope: MemoryScope,
    /// Kind: `note`, `context-summary` or `archived`.
    pub kind: String,
    /// Messages that the memory was made from, if any.
    pub origin: Option<MemoryOrigin>,
    /// The text.
    pub content: String,
    /// Creation time in Unix seconds.
    pub created: i64,
}

/// A stored memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Number of the memory, which never changes.
    pub id: u64,
    /// The memory as it was added.
    pub made: NewMemory,
    /// Time of the last use, or of the creation if the memory was never used; Unix seconds.
    pub accessed: i64,
    /// Number of uses.
    pub accesses: u64,
    /// Time at which the memory was forgotten, in Unix seconds; `None` if it is not forgotten. A
    /// forgotten memory can be restored.
    pub forgotten: Option<i64>,
    /// Name of the machine from which the memory came; `None` if it was made here.
    pub machine: Option<String>,
}

/// Messages waiting to become memories.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToArchive {
    /// Number to pass to [`note_archived`](super::Writing::note_archived).
    pub id: u64,
    /// Number of the session.
    pub session: u64,
    /// Numbers of the messages.
    pub messages: Spans,
    /// Number of the last message that has become a memory; 0 when none has.
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
    /// A session and a kind: the session's memories of this kind are left out, because the session
    /// already shows these texts.
    pub except: Option<(u64, String)>,
    /// True to include forgotten memories.
    pub with_forgotten: bool,
}
