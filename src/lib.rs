//! Contexture keeps what a language model needs to see inside the model's window.
//!
//! Reading order: [`value`] is the data that every dialect speaks; [`context`] is what is kept
//! and how it is rendered; [`wire`] is how
//! clients say it.

pub mod context;
pub mod files;
pub mod tokens;
pub mod value;
pub mod wire;
