//! Turns with models: the requests, the windows, and the notes and tools for them.
//!
//! The interface consists of Rust types. Nothing here knows a method, a wire or a connection: the
//! caller passes in [`Services`] and receives typed events and errors.

mod approvals;
mod backfill;
mod chat;
mod embedding;
mod error;
mod event;
pub mod found;
pub mod history;
pub mod items;
pub mod notes;
mod providers;
pub mod refresh;
mod rooms;
mod services;
pub mod tools;
pub mod window;

use std::pin::Pin;

pub use self::approvals::{Approvals, Decision, Question};
pub use self::backfill::backfill;
pub use self::chat::{ChatRequest, MAX_ROUNDS, Preview, Reply, chat, preview};
pub use self::embedding::{Embedded, Embedding};
pub use self::error::{AgentError, BrokenOff};
pub use self::event::{Approval, EventSink, TurnEvent};
pub use self::providers::{Configured, Providers};
pub use self::rooms::Rooms;
pub use self::services::{Job, Limits, Services, WantedCounter};

/// A future that can be sent to other threads.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
