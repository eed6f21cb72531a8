//! How a window is chosen from a session: sections, units, strategies, and the report of why.
//!
//! Everything here is a function: the same input gives the same bytes. It knows no store, no
//! clock and no wire.

mod account;
pub mod budget;
pub mod config;
mod guard;
pub mod ledger;
pub mod managed;
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
