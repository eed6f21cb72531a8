//! Turns with models: their requests, windows, notes and tools.
//!
//! The interface consists of Rust types. Nothing in this module depends on protocol methods,
//! message formats or connections: the caller passes in [`Services`] and receives typed events and
//! errors.

mod approvals;
pub mod arriving;
mod backfill;
mod chat;
mod embedding;
mod error;
mod event;
pub mod found;
pub mod history;
pub mod items;
#[cfg(feature = "map")]
pub mod maps;
pub mod notes;
mod pictures;
mod providers;
pub mod refresh;
mod rooms;
mod services;
pub mod shown_version;
pub mod summary;
pub mod tools;
mod whole;
pub mod window;

use std::pin::Pin;

pub use self::approvals::{ApprovalQuestion, Decision};
pub use self::approvals::{Approvals, WaitingQuestion};
pub use self::backfill::backfill;
pub use self::chat::Reply;
pub use self::chat::{
    ChatRequest, MAX_CALLS, MAX_ROUNDS, Preview, RequestCount, chat, count, preview,
};
pub use self::embedding::Embedded;
pub use self::embedding::Embedding;
pub use self::error::{AgentError, BrokenOff};
pub use self::event::EventSink;
pub use self::event::TurnEvent;
pub use self::pictures::MOST_PICTURES;
pub use self::providers::{AvailableModel, MOST_PROVIDERS, Providers};
pub use self::rooms::Rooms;
pub use self::services::Limits;
pub use self::services::{Job, Services, WantedCounter};

/// A future that can be sent to other threads.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
