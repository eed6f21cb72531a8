//! Memories that are worth a place in the window: how strong a memory is, how well it fits a query,
//! and the text that brings the best ones into a window.
//!
//! Nothing here has side effects: the memories, the search results and the time are arguments. The
//! store keeps the memories.

pub(crate) mod grounding;
pub(crate) mod ranking;
pub(crate) mod strength;
