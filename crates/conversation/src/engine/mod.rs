//! The engine: operations on managers, sessions and memories, and the loop that owns the state.
//!
//! One task owns the [`Engine`], and runs one request after the other, each to completion. Changes
//! are stored before they are applied, and a request that fails or panics leaves no trace.

mod archive;
mod archiving;
mod clock;
mod context;
mod core;
mod costs;
mod error;
mod event;
mod follow;
mod held;
mod layers;
mod lend;
mod memory;
mod models;
mod operations;
mod pushes;
mod queue;
mod reach;
mod repair;
mod run;
mod select;
mod session;
mod sessions;
mod sets;
#[cfg(feature = "program")]
mod sync;
mod transfer;
mod undo;
mod vectors;
mod version;
mod versioned;
mod windows;

pub use self::context::{Added, ItemChanges, ListedContext, NewItem, Removed};
pub use self::core::Clock;
pub use self::core::Engine;
pub use self::error::EngineError;
pub use self::event::{Event, SessionName, Statistics};
pub use self::follow::{Again, Following, VersionStep};
pub use self::held::ELSEWHERE;
pub use self::layers::{Layer, OpenLayer, OpenLayers, WantedLayer, WantedLayers};
pub use self::memory::Grounded;
pub use self::memory::{Query, memories_for};
pub use self::models::{Costs, Models};
pub use self::operations::Operation;
pub use self::pushes::{NewPush, QueuedItem};
pub use self::reach::{Caller, Reach};
pub use self::run::Handle;
pub use self::run::{Pending, run};
pub use self::select::{Selection, View, name_views};
pub use self::session::{
    AskedWindow, Keep, KnownRecording, Lacking, Material, ModelAnswer, Moved, NewMessage, NewTurn,
    NotesMaterial, OpenedSession, Portion, SessionContext, Summarizing, quality_parts,
};
pub use self::session::{
    DEFAULT_TEMPLATE, PrunedView, RolledBack, SessionSettings, Summarized, TurnDone, TurnsMoved,
};
#[cfg(feature = "program")]
pub use self::sync::{SyncAsked, SyncRefusal};
pub use self::versioned::{Beside, Versioned, VersionedName};
pub use self::windows::Noted;
pub use self::windows::REPORTS_KEPT;
pub use crate::context::place::SHARED as SHARED_MANAGER;

#[cfg(test)]
mod tests;
