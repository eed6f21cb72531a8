//! Chooses a window from a session, by sections, units and strategies, and reports the reasons.
//!
//! The same input always gives the same result: nothing here depends on a store, a clock or a
//! client protocol.

pub mod budget;
pub mod config;
mod guard;
pub mod notes;
mod offer;
pub mod phase;
pub mod prune;
pub mod quality;
pub mod reading;
pub mod report;
pub mod said;
pub mod section;
pub mod similarity;
pub mod strategy;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod unit;
pub mod used;
pub mod window;
