//! Turns with models: their requests, windows, notes and tools.
//!
//! The interface consists of Rust types. Nothing in this module depends on protocol methods,
//! message formats or connections: the caller passes in [`Services`] and receives typed events and
//! errors.

mod approvals;
pub(crate) mod arriving;
mod backfill;
mod chat;
mod embedding;
mod error;
mod event;
pub(crate) mod found;
pub(crate) mod history;
pub(crate) mod items;
#[cfg(feature = "map")]
pub(crate) mod maps;
pub(crate) mod notes;
mod pictures;
mod providers;
pub(crate) mod refresh;
mod rooms;
mod services;
pub(crate) mod shown_version;
pub(crate) mod summary;
pub(crate) mod tools;
mod whole;
pub(crate) mod window;

use std::pin::Pin;

pub use self::approvals::{ApprovalQuestion, Decision};
pub(crate) use self::approvals::{Approvals, WaitingQuestion};
pub(crate) use self::backfill::backfill;
pub use self::chat::Reply;
pub(crate) use self::chat::{
    ChatRequest, MAX_CALLS, MAX_ROUNDS, Preview, RequestCount, chat, count, preview,
};
pub use self::embedding::Embedded;
pub(crate) use self::embedding::Embedding;
pub(crate) use self::error::{AgentError, BrokenOff};
pub(crate) use self::event::EventSink;
pub use self::event::TurnEvent;
pub(crate) use self::pictures::MOST_PICTURES;
pub(crate) use self::providers::{AvailableModel, MOST_PROVIDERS, Providers};
pub(crate) use self::rooms::Rooms;
pub use self::services::Limits;
pub(crate) use self::services::{Job, Services, WantedCounter};

/// A future that can be sent to other threads.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
