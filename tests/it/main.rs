//! Integration tests: the real program, the server in memory, and the wire's text against the
//! installed Emacs, as clients meet them.
//! One binary, so that the crate is linked once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod abuse;
mod batch;
mod browser;
mod chat;
mod circles;
mod configure;
mod conformance;
mod curation;
mod damage;
mod dialects;
mod docs;
mod door;
mod durability;
mod embeddings;
mod endpoint;
mod facts;
mod files;
mod framed;
mod given;
mod hidden;
mod house;
mod introduced;
mod keys;
mod leaving;
mod length_fuzz;
mod library;
mod lines;
mod long;
mod managed;
mod markdown;
mod memories;
mod model;
mod model_tools;
mod names;
mod notified;
mod opaque;
mod order;
mod others;
mod pages;
mod pairs;
mod peers;
mod program;
mod protocol;
mod providers;
mod random_calls;
mod recorded;
mod repls;
mod rooms;
mod schema;
mod scripted;
mod sent;
mod session_input;
mod sessions;
mod sexp_oracle;
mod shared_script;
mod streams;
mod strict;
mod support;
mod transports;
mod trust;
mod turns;
mod wire_fuzz;
