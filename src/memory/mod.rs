//! What is worth remembering now: how strong a memory is, which memories are best for a query,
//! and the text that brings them into a window.
//!
//! Pure: the memories, what was found of them and the time are arguments. Where they are kept is
//! the store's.

pub mod grounding;
pub mod ranking;
pub mod strength;
