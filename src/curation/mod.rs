//! Chooses a window from a session, by sections, units and strategies, and reports the reasons.
//!
//! The same input always gives the same result: nothing here depends on a store, a clock or a
//! client protocol.

pub(crate) mod budget;
pub(crate) mod config;
mod guard;
pub(crate) mod ledger;
pub(crate) mod notes;
mod offer;
pub(crate) mod phase;
pub(crate) mod prune;
pub(crate) mod quality;
pub(crate) mod reading;
pub(crate) mod report;
pub(crate) mod section;
pub(crate) mod similarity;
pub(crate) mod strategy;
pub(crate) mod summary;
#[cfg(test)]
mod testing;
pub(crate) mod unit;
pub(crate) mod window;
