//! Contexture keeps what a language model needs to see within the model's context window.
//!
//! This is the library behind the server and the Emacs package. A [`Conversation`] takes turns with
//! a model and chooses what the model sees: items, messages, memories and summaries, always within
//! a budget. Checkpoints let you go back. When a method returns, its changes are stored durably.
//!
//! ```
#![doc = include_str!("../examples/readme.rs")]
//! ```
//!
//! # Where to go from here
//!
//! - [`Conversation`] has all operations on one conversation; [`Builder`] opens a conversation.
//! - [`Conversation::chat`] creates a [`Turn`]: await the turn for its [`Reply`], or
//!   [stream](Turn::stream) its [events](TurnEvent).
//! - [`Tool`] is a function that a model can call; calls that need the user's permission wait for
//!   [`Conversation::approve`].
//! - [`Provider`] is a model to talk to: a script, your own [`ChatProvider`], or, with the feature
//!   `providers`, a `Server`.
//! - [`window`] has the windows that models see, with their reports; [`outcome`] has the
//!   results of turns, summaries and rollbacks.
//! - [`Message`] is one message; it can be read from and written as JSON for chat completions.
//! - [`curate`] chooses messages from a history that your program keeps itself, and stores nothing.
//! - [`Error`] says what failed, and what can be done about it.
//!
//! # Features
//!
//! - `providers`: models and embeddings over HTTP.
//! - `server`: the server's methods, message formats and sockets. Includes `providers`.
//! - `mcp`: the server for agents that speak the Model Context Protocol. Includes `server`.
//! - `cli`, the default: the program `contexture`. Includes `mcp`.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation also links to items that are private to the crate"
)]
#![cfg_attr(
    not(feature = "cli"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "the program uses more than the library alone"
    )
)]

mod agent;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod config;
mod conversation;
#[cfg(feature = "mcp")]
mod dashboard;
mod engine;
mod files;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod internals;
#[cfg(feature = "mcp")]
mod mcp;
pub mod provider;
#[cfg(feature = "server")]
mod repl;
#[cfg(feature = "server")]
mod rpc;
#[cfg(feature = "server")]
mod server;
mod store;
#[cfg(feature = "server")]
mod sync;
mod system;
#[cfg(feature = "mcp")]
mod web;
mod whole_file;
#[cfg(feature = "server")]
mod wire;

use contexture_core::{
    context, curation, ids, memory, names, recorded, retrieval, session, template, tokens, visible,
    wording,
};
use contexture_value as value;

pub use self::agent::tools::{CalledTool, Outcome};
pub use self::agent::{Approval, Decision, Reply, TurnEvent};
pub use self::context::item::{Kind, State};
#[cfg(feature = "providers")]
pub use self::conversation::Server;
pub use self::conversation::{
    Builder, Conversation, Curate, Curated, Error, Item, ItemView, Message, Provider, Tool, Turn,
    TurnStream, WindowRequest, curate, strategies,
};
pub use self::curation::config::TurnConfig;
pub use self::curation::summary::{Extractive, Source as SummarySource, Summarizer, SummaryError};
pub use self::ids::ItemId;
pub use self::provider::chat::Provider as ChatProvider;
pub use self::provider::{ErrorKind, ProviderError};
pub use self::session::message::{Phase, Role, ToolCall};
pub use self::store::ownership::{FolderError, Owner};
pub use self::tokens::TokenizerName as Tokenizer;
pub use self::tokens::model::Override;

/// Windows and their reports, which list the parts that a model saw or that were left out, with the
/// reasons.
pub mod window {
    pub use crate::context::render::report::{ItemFate, ItemVerdict};
    pub use crate::curation::budget::Irreducible;
    pub use crate::curation::report::{Entry, Report, SectionTokens, Stable, What};
    pub use crate::curation::section::Section;
    pub use crate::curation::strategy::{Fate, Score};
    pub use crate::curation::window::{Part, Window, WindowUsage};
    pub use crate::engine::Noted;
}

/// Results of operations on conversations: turns, summaries, rollbacks, memories.
pub mod outcome {
    pub use crate::agent::Embedded;
    pub use crate::curation::prune::HistoryStats;
    pub use crate::curation::quality::{Quality, QualityPart};
    pub use crate::engine::{Grounded, PrunedView, RolledBack, Summarized, TurnDone, TurnsMoved};
    pub use crate::memory::grounding::Grounding;
    pub use crate::provider::chat::{Stop, Usage};
    pub use crate::store::memory::MemoryRow;
    pub use crate::store::session::CheckpointRow;
}
