//! The items kept for the model, and their rendering. Pure: no files, no clock, no wire.

pub mod change;
pub mod filter;
pub mod item;
pub mod language;
pub mod manager;
pub mod render;

#[cfg(test)]
pub(crate) mod testing;
