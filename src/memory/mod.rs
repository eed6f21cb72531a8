//! Chooses the memories that are worth a place in the window: how strong a memory is, how well it
//! matches a query, which of the best matches answer the query, and the text that shows them.
//!
//! Nothing here has side effects: the memories, the search results and the time are arguments. The
//! store keeps the memories.

pub(crate) mod answers;
pub(crate) mod grounding;
pub(crate) mod ranking;
pub(crate) mod strength;
