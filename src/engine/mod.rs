//! The engine: operations on managers, sessions and memories, and the loop that owns the state.
//!
//! One task owns the [`Engine`]. Each request runs in it to completion. Changes are stored before
//! they are applied, and a request that fails or panics leaves no trace.

mod archive;
mod archiving;
mod clock;
mod context;
mod core;
mod costs;
mod error;
mod event;
mod lend;
mod memory;
mod models;
mod queue;
mod reach;
mod run;
mod session;
mod sessions;
mod sets;
mod vectors;
mod windows;

pub use self::context::{Added, Listed, NewItem, Removed, Revision, Selection, Undone, View};
pub use self::core::{Clock, Engine, SHARED_MANAGER};
pub use self::error::EngineError;
pub use self::event::{Event, SessionName, Statistics};
pub use self::memory::{ARCHIVED, Grounded, NOTE, Query, SUMMARY, memories_for};
pub use self::models::{Costs, Models};
pub use self::queue::{Caller, Task};
pub use self::reach::Reach;
pub use self::run::{Handle, MAX_BURST, QUEUE_LENGTH, run};
pub use self::session::{
    AskedWindow, DEFAULT_TEMPLATE, Keep, Material, ModelAnswer, NewMessage, NewTurn, NotesMaterial,
    Opened, PrunedView, RollbackUndone, RolledBack, Said, SessionContext, SessionSettings,
    Summarized, TurnDone, quality_parts,
};
pub use self::sets::{Loaded, Saved};
pub use self::windows::Noted;

#[cfg(test)]
mod tests;
