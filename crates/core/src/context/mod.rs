//! The items kept for the model, and their rendering. Nothing here has side effects, or depends on
//! files, the clock or the client protocol.

pub mod change;
pub mod filter;
pub mod item;
pub mod language;
pub mod manager;
pub mod naming;
pub mod overlap;
pub mod picture;
pub mod place;
pub mod render;
pub mod repeat;
pub mod repeats;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
