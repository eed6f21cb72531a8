//! Search: ranks texts by their words, compares vectors, and joins several rankings into one.
//!
//! Nothing here has side effects or depends on messages, memories or stores.

pub mod bm25;
pub mod cosine;
pub mod excerpt;
pub(crate) mod fusion;
pub mod index;
pub mod names;
pub mod scan;

mod split;
pub mod stop;
#[cfg(test)]
mod testing;
pub mod words;
