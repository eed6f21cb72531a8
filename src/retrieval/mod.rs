//! Search by words: splits texts into words and finds the texts that fit a query best.
//!
//! Pure. It knows nothing of messages, memories or stores.

pub mod bm25;
pub mod excerpt;
pub mod fusion;
pub mod scan;
#[cfg(test)]
mod testing;
pub mod words;
