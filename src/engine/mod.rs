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
#[cfg(feature = "server")]
mod sync;
mod transfer;
mod undo;
mod vectors;
mod version;
mod versioned;
mod windows;

pub(crate) use self::context::{Added, ItemChanges, ListedContext, NewItem, Removed};
pub(crate) use self::core::Clock;
pub use self::core::Engine;
pub(crate) use self::error::EngineError;
pub(crate) use self::event::{Event, SessionName, Statistics};
pub(crate) use self::follow::{Again, Following, VersionStep};
pub(crate) use self::held::ELSEWHERE;
pub(crate) use self::layers::{Layer, OpenLayer, OpenLayers, WantedLayer, WantedLayers};
pub use self::memory::Grounded;
pub(crate) use self::memory::{Query, memories_for};
pub(crate) use self::models::{Costs, Models};
pub(crate) use self::operations::Operation;
pub(crate) use self::pushes::{NewPush, QueuedItem};
pub(crate) use self::reach::{Caller, Reach};
pub use self::run::Handle;
pub(crate) use self::run::{Pending, run};
pub(crate) use self::select::{Selection, View, name_views};
pub(crate) use self::session::{
    AskedWindow, Keep, KnownRecording, Lacking, Material, ModelAnswer, Moved, NewMessage, NewTurn,
    NotesMaterial, OpenedSession, Portion, SessionContext, Summarizing, quality_parts,
};
pub use self::session::{
    DEFAULT_TEMPLATE, PrunedView, RolledBack, SessionSettings, Summarized, TurnDone, TurnsMoved,
};
#[cfg(feature = "server")]
pub(crate) use self::sync::{SyncAsked, SyncRefusal};
pub(crate) use self::versioned::{Beside, Versioned, VersionedName};
pub use self::windows::Noted;
pub(crate) use self::windows::REPORTS_KEPT;
pub(crate) use crate::context::place::SHARED as SHARED_MANAGER;

#[cfg(test)]
mod tests;
