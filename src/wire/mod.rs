//! How clients speak: s-expressions, frames, and the dialects built from them.
//!
//! Nothing here knows a method or the engine: bytes become [`message`]s and back.

pub mod dialect;
pub mod frame;
pub mod message;
pub mod sexp;
