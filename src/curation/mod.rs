//! Chooses a window from a session: sections, units, strategies, and a report that gives the
//! reasons.
//!
//! Everything here is a function: the same input gives the same bytes. It knows no store, no clock
//! and no wire.

pub(crate) mod budget;
pub(crate) mod config;
mod guard;
pub(crate) mod ledger;
pub(crate) mod notes;

mod offer;
pub(crate) mod phase;
pub(crate) mod prune;
pub(crate) mod quality;
pub(crate) mod report;
pub(crate) mod section;
pub(crate) mod strategy;
pub(crate) mod summary;
#[cfg(test)]
mod testing;
pub(crate) mod unit;
pub(crate) mod window;
