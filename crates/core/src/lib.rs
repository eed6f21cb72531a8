//! The parts of Contexture without side effects: no files, sockets, threads or clocks.
//!
//! [`curation`] chooses what a model sees from the [`context`] and from a [`session`]. The other
//! modules serve it: [`retrieval`] ranks texts, [`tokens`] counts them, [`memory`] ranks memories.
//! [`template`] fills prompts, and [`recorded`] reads the sessions that other agents recorded.
//!
//! This crate is for Contexture itself: anything here may change at any time.

#[cfg(feature = "engine")]
pub mod context;
pub mod curation;
pub mod ids;
pub mod memory;
pub mod names;
#[cfg(feature = "engine")]
pub mod recorded;
pub mod retrieval;
pub mod session;
#[cfg(feature = "engine")]
pub mod template;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tokens;
pub mod visible;
pub mod wording;
