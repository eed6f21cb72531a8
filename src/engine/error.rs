//! Why the engine refused a request.

use crate::context::item::ItemId;
use crate::context::manager::ManagerError;
use crate::store::StoreError;

/// An error of the engine; nothing was changed when it is returned.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The operation does not fit the manager.
    #[error("{manager:?}: {source}")]
    Manager {
        /// The manager's name.
        manager: String,
        /// Why not.
        source: ManagerError,
    },
    /// The item is not in this manager.
    #[error("no item {id} in {manager:?}{}", elsewhere(.held_by.as_deref()))]
    NoSuchItem {
        /// The item asked for.
        id: ItemId,
        /// The manager it was looked for in.
        manager: String,
        /// The manager that does hold it.
        held_by: Option<String>,
    },
    /// The manager's journal is empty.
    #[error("nothing to undo in {manager:?}")]
    NothingToUndo {
        /// The manager's name.
        manager: String,
    },
    /// No set has this name.
    #[error("no set {name:?}; {}", known_sets(.known))]
    NoSuchSet {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The set that is to be undone was changed from another manager since.
    #[error(
        "the set {name:?} was saved or dropped from another manager since; undo that there first"
    )]
    SetChanged {
        /// The set's name.
        name: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The commit that should have made the request durable failed.
    #[error("{0}")]
    NotKept(String),
    /// A defect: the operation panicked and was taken back.
    #[error("internal error: {0}; the call changed nothing and the server goes on")]
    Panicked(String),
    /// The engine has ended.
    #[error("the server is shutting down")]
    Ended,
    /// The client cancelled the request before it ran.
    #[error("cancelled")]
    Cancelled,
}

impl EngineError {
    /// The name under which programs know the error, `:kind` in the reply's data.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Manager { source: ManagerError::CapacityFull { .. }, .. } => "capacity-full",
            Self::Manager { source: ManagerError::PinnedExceedCapacity { .. }, .. } => {
                "pinned-exceed-capacity"
            }
            Self::Manager { source: ManagerError::NoSuchItem(_), .. } | Self::NoSuchItem { .. } => {
                "no-such-item"
            }
            Self::NothingToUndo { .. } => "nothing-to-undo",
            Self::NoSuchSet { .. } => "no-such-set",
            Self::SetChanged { .. } => "set-changed",
            Self::Store(StoreError::Damaged(_)) => "store-damaged",
            Self::Store(_) | Self::NotKept(_) => "store-failed",
            Self::Panicked(_) => "internal",
            Self::Ended => "shutting-down",
            Self::Cancelled => "cancelled",
        }
    }
}

fn elsewhere(held_by: Option<&str>) -> String {
    held_by.map_or_else(String::new, |name| format!("; it is in {name:?}"))
}

fn known_sets(known: &[String]) -> String {
    if known.is_empty() {
        return "there are none yet; save-set makes one".to_owned();
    }
    let quoted: Vec<_> = known.iter().map(|name| format!("{name:?}")).collect();
    format!("there are {}", quoted.join(", "))
}
