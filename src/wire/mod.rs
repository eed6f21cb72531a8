//! The formats in which clients speak: frames, which split a stream into messages, a guard against
//! streams of web browsers, and dialects, which are notations of messages.
//!
//! These modules convert bytes to [`message`]s and back. They know nothing of the methods or the
//! engine.

pub(crate) mod dialect;
mod foreign;
pub(crate) mod frame;
pub(crate) mod guard;
pub(crate) mod message;
