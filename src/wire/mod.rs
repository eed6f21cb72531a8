//! The languages of clients: s-expressions, frames, and the dialects built from them.
//!
//! Nothing here knows a method or the engine. Bytes become [`message`]s and back.

pub mod dialect;
mod foreign;
pub mod frame;
pub mod message;
