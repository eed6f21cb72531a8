//! The formats in which clients speak. Frames split a stream into messages. A guard ends the streams
//! of web browsers. Dialects are notations of messages.
//!
//! These modules convert bytes to [`message`]s and back. They know nothing of the methods or the
//! engine.

pub(crate) mod dialect;
mod foreign;
pub(crate) mod frame;
pub(crate) mod guard;
pub(crate) mod message;
