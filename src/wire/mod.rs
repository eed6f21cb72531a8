//! The languages of clients: s-expressions, frames, and the dialects built from them.
//!
//! Nothing here knows a method or the engine. Bytes become [`message`]s and back.

pub(crate) mod dialect;
mod foreign;
pub(crate) mod frame;
pub(crate) mod message;
