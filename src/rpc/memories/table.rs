//! The methods of the memory family.

use crate::agent::found::{GroundedShown, MemoryShown};
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("memory", "remember", super::remember => MemoryShown)
        .changes_after_work()
        .doc("Stores a text as a memory for later turns of a session, of a project, or everywhere.")
        .result("The memory.")
        .needs_session(super::is_for_session)
        .pace(Pace::InOrder),
    method!("memory", "ground-query", super::ground_query => GroundedShown)
        .changes()
        .doc(
            "Finds the memories that match a text best: by words, by neighbours in the \
              conversation, by age and strength, and, if embeddings are configured, by meaning. \
              Being found makes a memory stronger.",
        )
        .result("The memories with their relevance, and a text with these memories for a window.")
        .pace(Pace::InOrder),
    method!("memory", "update-memory", super::update_memory => MemoryShown)
        .changes_after_work()
        .doc(
            "Forgets a memory, or restores it. With `:write`, writes it into a file of its project, \
             below `.contexture/memories`, for all who work on the repository. Memories there are \
             read as those of the project, with the kind `:repository`.",
        )
        .result("The memory, and the `:path` of the file that was written.")
        .pace(Pace::InOrder),
    method!("memory", "list-memories", super::list_memories => Vec<MemoryShown>)
        .pages(&Paged { brief: &["content"], most: Some(super::MAX_LISTED), ..Paged::LIST })
        .doc("Lists memories, newest first.")
        .result("A list of memories.")
        .pace(Pace::InOrder),
];
