//! Contexture keeps what a language model needs to see inside the model's window.
//!
//! This is the library behind the server and the Emacs package. A [`Conversation`] takes turns with
//! a model, and keeps its context good: within a budget, with the items that matter, with memories,
//! summaries and checkpoints. Everything that a method has returned is durable.
//!
//! ```
#![doc = include_str!("../examples/readme.rs")]
//! ```
//!
//! # Where to go from here
//!
//! - [`Conversation`] has everything about one conversation; [`Builder`] opens it.
//! - [`Conversation::chat`] begins a [`Turn`]: await it for its [`Reply`], or [stream](Turn::stream)
//!   its [events](TurnEvent).
//! - [`Tool`] is what a model can call; calls that need a person's permission wait for
//!   [`Conversation::approve`].
//! - [`Provider`] is a model to talk to: a script, your own [`ChatProvider`], or, with the feature
//!   `providers`, a `Server`.
//! - [`window`] has the windows that models see, with their reports; [`outcome`] has the
//!   results of turns, summaries and rollbacks.
//! - [`Message`] is one message. It reads and writes the form of chat completions.
//! - [`curate`] chooses from a history that your program keeps itself. Nothing is stored then.
//! - [`Error`] says what failed, and what can be done about it.
//!
//! # Features
//!
//! - `providers`: models and embeddings over HTTP.
//! - `server`: the server's methods, dialects and sockets. It has `providers`.
//! - `cli`, the default: the program `contexture`. It has `server`.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation inside names what only the crate can"
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
mod context;
mod conversation;
mod curation;
mod engine;
mod files;
mod ids;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod internals;
mod memory;
mod names;
pub mod provider;
#[cfg(feature = "server")]
mod repl;
mod retrieval;
#[cfg(feature = "server")]
mod rpc;
#[cfg(feature = "server")]
mod server;
mod session;
mod store;
mod template;
mod tokens;
mod value;
mod visible;
mod whole_file;
#[cfg(feature = "server")]
mod wire;

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
    pub use crate::engine::{
        Grounded, PrunedView, RollbackUndone, RolledBack, Summarized, TurnDone,
    };
    pub use crate::memory::grounding::Grounding;
    pub use crate::provider::chat::{Stop, Usage};
    pub use crate::store::memory::MemoryRow;
    pub use crate::store::session::CheckpointRow;
}
