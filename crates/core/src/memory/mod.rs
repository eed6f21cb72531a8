//! Chooses the memories that are worth a place in the window: how strong a memory is, how well it
//! matches a query, which of the best matches answer the query, and the text that shows them.
//!
//! Nothing here has side effects: the memories, the search results and the time are arguments. The
//! store keeps the memories.

pub mod answers;
pub mod grounding;
pub mod ranking;
pub mod strength;
