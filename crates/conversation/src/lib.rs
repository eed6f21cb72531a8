//! Contexture keeps what a language model needs to see within the model's context window.
//!
//! This is the library behind the server and the Emacs package. A [`Conversation`] takes turns with
//! a model and chooses what the model sees: items, messages, memories and summaries, always within
//! a budget. Checkpoints let you go back. When a method returns, its changes are stored durably.
//!
//! # A first conversation
//!
//! ```toml
//! [dependencies]
//! contexture-conversation = { version = "0.1", features = ["providers"] }
//! serde = { version = "1", features = ["derive"] }
//! serde_json = "1"
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```
//!
//! The library is called `contexture` in your program.
//!
#![cfg_attr(feature = "providers", doc = "```no_run")]
#![cfg_attr(not(feature = "providers"), doc = "```ignore")]
//! use contexture::{Conversation, Server};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), contexture::Error> {
//!     // The key is in the environment variable ANTHROPIC_API_KEY.
//!     let model = Server::anthropic("claude-sonnet-4-5");
//!     let conversation = Conversation::builder("hello").provider(model).open().await?;
//!     println!("{}", conversation.chat("What is a context window?").await?.text);
//!     println!("{}", conversation.chat("Say it in one sentence.").await?.text);
//!     Ok(())
//! }
//! ```
//!
//! [`Conversation::builder`] takes the models and the tools, and [`Builder::open`] opens the
//! conversation. [`Conversation::chat`] creates a [`Turn`]: await the turn for its [`Reply`], or
//! [stream](Turn::stream) its [events](TurnEvent).
//!
//! A model is a [`Provider`]: with the feature `providers`, a [`Server`] of OpenAI, Anthropic, Google or
//! Ollama, or one that speaks like them. Without it, a model is a [script](Provider::scripted) or
//! [your own](Provider::custom) implementation of [`ChatProvider`].
//!
#![cfg_attr(feature = "providers", doc = "[`Server`]: crate::Server")]
#![cfg_attr(not(feature = "providers"), doc = "[`Server`]: #features")]
//!
//! # A first agent
//!
//! A tool is a type with the trait [`Tool`], or a [function](Builder::function). A turn carries out the
//! model's tool calls, and asks the model again until an answer contains no calls:
//!
//! ```
#![doc = include_str!("../examples/readme.rs")]
//! ```
//!
//! Calls of the tools named by [`Builder::ask_before`] wait until [`Conversation::approve`] allows
//! them:
//!
//! ```
#![doc = include_str!("../examples/approval.rs")]
//! ```
//!
//! # What a model sees
//!
//! - [`Conversation::add_file`] and [`Conversation::add`] show files, pictures and texts; a file is
//!   shown as it is when the model is asked.
//! - [`Conversation::remember`] keeps a text for the turns that it matches.
//! - [`Builder::max_tokens`] sets the budget. Older turns are summarized when it is full.
//! - [`Conversation::window`] is for a program that asks the model itself, and
//!   [`Conversation::report`] tells what the last window had, and why.
//! - [`Conversation::checkpoint`], [`rollback`](Conversation::rollback),
//!   [`retry`](Conversation::retry), [`fork`](Conversation::fork) and
//!   [`remove_message`](Conversation::remove_message) change what was said.
//! - [`Builder::state_folder`] keeps all of this in a folder. When a method returns, its changes are
//!   stored durably. Several conversations share a folder by [`Builder::beside`].
//!
//! # A history of your own
//!
//! A program that keeps its messages itself needs no conversation. [`curate`] chooses which of them
//! fit, for messages of any type, and stores nothing. It is a crate of its own, `contexture-curate`,
//! for programs that need nothing else. [`Message`] can be read from and written as JSON for chat
//! completions, and can be curated, too:
//!
//! ```
//! use contexture::Message;
//! use contexture::curate::{Part, curate};
//!
//! # fn main() -> Result<(), contexture::curate::BudgetTooSmall> {
//! let mut history = vec![Message::system("Answer in one word.")];
//! for number in 1..200 {
//!     history.push(Message::user(format!("What is {number} plus {number}?")));
//!     history.push(Message::assistant(format!("{}", 2 * number)));
//! }
//! let window = curate(&history, 500).window()?;
//! assert!(window.tokens <= 500 && window.parts[0] == Part::Message(0));
//! # Ok(())
//! # }
//! ```
//!
//! # When something fails
//!
//! [`Error`] says what failed, and what can be done about it. The conversation still has everything
//! that it had before the call. A turn that is cancelled or fails keeps the part of the answer that
//! came. Turns of one conversation wait for each other, whatever the handles.
//!
//! # What the library does to your program
//!
//! It sets no default of the process, and turns on no feature of another crate that changes the types
//! of your program. It runs on your tokio runtime: a conversation is owned by a task, and long work
//! runs on the runtime's blocking threads. It links SQLite, which a program can do only once.
//! Your program shares it if you use `sqlx` 0.9, or `rusqlite` from 0.39 to 0.41.
//!
//! # Features
//!
//! - `map`: a tool with which models map the project, among [`Builder::context_tools`].
//! - `providers`: models and embeddings over HTTP.
//!
//! The feature `program` and the modules that this page does not show are for the program
//! `contexture` alone: they may change at any time.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the documentation also links to items that are private to the crate"
)]
#![cfg_attr(
    not(feature = "program"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        reason = "the program uses more than the library alone"
    )
)]

#[doc(hidden)]
pub mod agent;
mod conversation;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod files;
pub mod provider;
#[doc(hidden)]
pub mod store;
#[cfg(feature = "program")]
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod system;
#[doc(hidden)]
pub mod whole_file;

use contexture_core::{
    context, curation, ids, memory, names, retrieval, session, template, tokens, visible, wording,
};
use contexture_value as value;

pub use self::agent::tools::{CalledTool, Outcome};
pub use self::agent::{ApprovalQuestion, Decision, Reply, TurnEvent};
pub use self::context::item::{Kind, State};
#[cfg(feature = "providers")]
pub use self::conversation::Server;
pub use self::conversation::{
    Builder, Conversation, ConversationInfo, Error, Item, ItemView, Message, PartialReply,
    Provider, Refusal, StoreErrorKind, Tool, ToolContext, Turn, TurnStream, WindowRequest,
    strategies,
};
pub use self::curation::config::TurnConfig;
pub use self::curation::summary::{Extractive, Summarizer, SummaryError};
pub use self::files::FileError;
pub use self::ids::ItemId;
pub use self::provider::chat::{ChatProvider, OutputSchema, ToolChoice};
pub use self::provider::{ErrorKind, ProviderError};
pub use self::session::message::{Phase, Role, ToolCall};
pub use self::tokens::TokenizerName as Tokenizer;
pub use self::tokens::model::Override;
pub use contexture_curate as curate;

/// Windows and their reports, which list the parts that a model saw or that were left out, with the
/// reasons.
pub mod window {
    pub use crate::context::render::report::{ItemFate, ItemVerdict};
    pub use crate::curation::budget::Irreducible;
    pub use crate::curation::report::{
        Entry, Report, ReportPart, SectionTokens, SentCount, Stable,
    };
    pub use crate::curation::section::Section;
    pub use crate::curation::strategy::{Fate, Score};
    pub use crate::curation::window::{MessagePart, Window, WindowUsage};
    pub use crate::engine::Noted;
}

/// Results of operations on conversations: turns, summaries, rollbacks, memories.
pub mod outcome {
    pub use crate::agent::Embedded;
    pub use crate::agent::notes::TurnNotes;
    pub use crate::curation::prune::HistoryStats;
    pub use crate::curation::quality::{Quality, QualityPart};
    pub use crate::engine::{Grounded, PrunedView, RolledBack, Summarized, TurnDone, TurnsMoved};
    pub use crate::memory::grounding::Grounding;
    pub use crate::provider::chat::{Stop, Usage};
    pub use crate::store::memory::{MemoryOrigin, MemoryRow, MemoryScope, NewMemory};
    pub use crate::store::notes::NewNotes;
    pub use crate::store::session::{CheckpointRow, NewCheckpoint};
}

/// Summaries of older turns: what a [`Summarizer`] is given, and what comes of it.
pub mod summary {
    pub use crate::curation::said::UserWords;
    pub use crate::curation::summary::{Summarizer, SummaryError, SummarySource, SummaryText};
    pub use crate::session::message::Message as SummarizedMessage;
    pub use crate::tokens::Measure;
}

/// The settings for processing turns, with their ranges.
pub mod settings {
    pub use crate::curation::config::{
        CurationConfigError, Range, Setting, SettingValue, TurnConfig,
    };
}
