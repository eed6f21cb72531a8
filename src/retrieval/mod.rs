//! Finding texts by words: how texts become words, and which texts fit a query best.
//!
//! Pure, and it knows nothing of messages, memories or stores.

pub mod bm25;
pub mod excerpt;
pub mod fusion;
pub mod scan;
pub mod words;
