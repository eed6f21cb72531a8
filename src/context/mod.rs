//! The items kept for the model, and their rendering. Nothing here has side effects, or depends on
//! files, the clock or the client protocol.

pub(crate) mod change;
pub(crate) mod filter;
pub(crate) mod item;
pub(crate) mod language;
pub(crate) mod manager;
pub(crate) mod naming;
pub(crate) mod overlap;
pub(crate) mod place;
pub(crate) mod render;
pub(crate) mod repeat;
pub(crate) mod repeats;

#[cfg(test)]
pub(crate) mod testing;
