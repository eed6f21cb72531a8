//! Search: ranks texts by their words, compares vectors, and joins several rankings into one.
//!
//! Nothing here has side effects or depends on messages, memories or stores.

pub(crate) mod bm25;
pub(crate) mod cosine;
pub(crate) mod excerpt;
pub(crate) mod fusion;
pub(crate) mod index;
pub(crate) mod names;
pub(crate) mod scan;

mod split;
pub(crate) mod stop;
#[cfg(test)]
mod testing;
pub(crate) mod words;
