//! Conversations: what was said, in an append-only log, and what of it is in view.
//!
//! Pure: positions, times and counts are arguments. How a window is chosen from what is in view
//! is [`curation`](crate::curation)'s.

pub mod message;
