//! Contexture keeps what a language model needs to see inside the model's window.
//!
//! Reading order: [`value`] is the data that every dialect speaks; [`context`] is what is kept
//! and how it is rendered; [`session`] is what was said, and [`curation`] chooses what of it a model
//! is shown; [`memory`] chooses what is worth remembering;
//! [`retrieval`] finds texts by words; [`tokens`] counts; [`files`] reads from disk;
//! [`store`] keeps everything; [`provider`] asks models; [`engine`] owns it; [`agent`] takes turns with models; [`rpc`] is what can be asked of it; [`wire`] is how clients say it; and
//! [`server`] is where they are heard. [`cli`] and [`config`] are the program around them.

pub mod agent;
pub mod cli;
pub mod config;
pub mod context;
pub mod conversation;
pub mod curation;
pub mod engine;
pub mod files;
pub mod ids;
pub mod memory;
mod names;
pub mod provider;
pub mod repl;
pub mod retrieval;
pub mod rpc;
pub mod server;
pub mod session;
pub mod store;
pub mod template;
pub mod tokens;
pub mod value;
mod visible;
mod whole_file;
pub mod wire;
