//! The program `contexture`: methods, dialects, connections, REPLs, MCP, hooks and commands around the
//! library of the same name.

mod cli;
mod config;
mod dashboard;
mod hub;
#[doc(hidden)]
pub mod internals;
mod mcp;
mod repl;
mod rpc;
mod server;
mod web;
mod wire;

use contexture::{agent, engine, files, provider, store, sync, system, whole_file};
use contexture_core::{
    context, curation, ids, names, recorded, retrieval, session, template, tokens, visible, wording,
};
use contexture_value as value;
