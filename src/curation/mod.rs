//! Chooses a window from a session: sections, units, strategies, and a report that gives the
//! reasons.
//!
//! Everything here is a function: the same input gives the same bytes. It knows no store, no clock
//! and no wire.

pub mod budget;
pub mod config;
mod guard;
pub mod ledger;
pub mod notes;

mod offer;
pub mod phase;
pub mod prune;
pub mod quality;
pub mod report;
pub mod section;
pub mod strategy;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod unit;
pub mod window;
