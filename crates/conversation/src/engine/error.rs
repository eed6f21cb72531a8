//! Errors of the engine.

use super::versioned::VersionedName;
use crate::context::item::ItemId;
use crate::context::manager::ManagerError;
use crate::curation::budget::WindowBudgetTooSmall;
use crate::curation::config::CurationConfigError;
use crate::curation::summary::SummaryError;
use crate::ids::CheckpointId;
use crate::store::StoreError;

/// Error of the engine. The failed request has changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The manager cannot carry out the operation.
    #[error("{manager:?}: {source}")]
    Manager {
        /// Name of the manager.
        manager: String,
        /// Reason.
        source: ManagerError,
    },
    /// The item is not in this manager.
    #[error("no item {id} in {manager:?}{}", elsewhere(.held_by.as_deref()))]
    NoSuchItem {
        /// Requested item.
        id: ItemId,
        /// Manager that was searched.
        manager: String,
        /// Manager that holds the item, if any.
        held_by: Option<String>,
    },
    /// The manager with this name has no change to undo.
    #[error("nothing to undo in {0:?}")]
    NothingToUndo(String),
    /// The manager with this name has no undone change to redo.
    #[error("nothing to redo in {0:?}: nothing was undone, or the manager has changed since")]
    NothingToRedo(String),
    /// The manager or session does not have the version that the caller expected.
    #[error("{}", conflict(.of, *.expected, *.version))]
    Conflict {
        /// The manager or session.
        of: VersionedName,
        /// Version that the caller expected.
        expected: u64,
        /// Current version; 0 if there is no such session.
        version: u64,
    },
    /// No set has this name.
    #[error("no set {name:?}; {}", known_names("set", "save-set", .known))]
    NoSuchSet {
        /// Requested name.
        name: String,
        /// Names of all sets.
        known: Vec<String>,
    },
    /// Another manager has since saved or dropped the set with this name, which was to be restored.
    #[error(
        "another manager has since saved or dropped the set {0:?}; undo that in the other manager \
         first"
    )]
    SetChanged(String),
    /// No session has this name or number, or no session exists.
    #[error("{}", no_session(.name.as_deref(), .known))]
    NoSuchSession {
        /// Requested name, if any.
        name: Option<String>,
        /// Existing names; the session with the latest message first.
        known: Vec<String>,
    },
    /// Another session has this name.
    #[error("a session {0:?} already exists; rename or delete it, or choose another name")]
    SessionExists(String),
    /// The session's log has no such message.
    #[error("no message msg-{number}; {}", known_messages(*.length))]
    NoSuchMessage {
        /// Requested number.
        number: u64,
        /// Number of messages in the log.
        length: u64,
    },
    /// The log of the manager or session has no such operation.
    #[error("no operation {number}; the newest is {newest}; list-operations lists them")]
    NoSuchOperation {
        /// Requested number.
        number: u64,
        /// Number of the newest operation; 0 if there is none.
        newest: u64,
    },
    /// The session has no such checkpoint, or none at all.
    #[error("no such checkpoint in {session:?}; {}", known_checkpoints(.known))]
    NoCheckpoint {
        /// Name of the session.
        session: String,
        /// Numbers of the existing checkpoints.
        known: Vec<u64>,
    },
    /// The setting `versioning` of the session with this name is off, so it cannot be rolled back.
    #[error("versioning is not enabled in {0:?}; turn it on with configure-session :versioning t")]
    NoVersioning(String),
    /// The view of the session with this name has no change to undo.
    #[error("nothing to undo in session {0:?}")]
    NoSessionUndo(String),
    /// The view of the session with this name has no undone change to redo.
    #[error(
        "nothing to redo in session {0:?}: nothing was undone, or the session has continued since"
    )]
    NoSessionRedo(String),
    /// No deleted session has this name or number.
    #[error("no deleted session {name:?}; {}", known_deleted(.known))]
    NotDeleted {
        /// Requested name.
        name: String,
        /// Names of the deleted sessions; the one with the latest message first.
        known: Vec<String>,
    },
    /// A model is answering in the session with this name.
    #[error(
        "a model is still answering in {0:?}; wait for the answer, or cancel the call in the client that made it"
    )]
    SessionBusy(String),
    /// No memory has this number.
    #[error("no memory mem-{0}; list-memories lists all memories")]
    NoSuchMemory(u64),
    /// The mandatory content exceeds the budget.
    #[error(transparent)]
    BudgetTooSmall(#[from] WindowBudgetTooSmall),
    /// A setting is unknown, or its value is not allowed.
    #[error(transparent)]
    BadSetting(#[from] CurationConfigError),
    /// There was nothing to summarize, the summary was not smaller, or the summarizer failed.
    #[error(transparent)]
    NotSummarized(SummaryError),
    /// Error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The commit that would have made the request durable failed.
    #[error("{why}")]
    NotKept {
        /// Kind of the error that made the commit fail.
        kind: &'static str,
        /// Description of the error that made the commit fail.
        why: String,
    },
    /// A defect: the operation panicked and was undone.
    #[error("internal error: {0}; the failed step was undone")]
    Panicked(String),
    /// The engine has ended.
    #[error("the server is shutting down")]
    Ended,
    /// The client cancelled the request or the turn.
    #[error("cancelled")]
    Cancelled,
}

impl EngineError {
    /// Returns the name of the error for programs: `:kind` in the reply's data.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Manager { source: ManagerError::CapacityFull { .. }, .. } => "capacity-full",
            Self::Manager { source: ManagerError::PinnedExceedCapacity { .. }, .. } => {
                "pinned-exceed-capacity"
            }
            Self::Manager { source: ManagerError::NoSuchItem(_), .. } | Self::NoSuchItem { .. } => {
                "no-such-item"
            }
            Self::NothingToUndo(_) | Self::NoSessionUndo(_) => "nothing-to-undo",
            Self::NothingToRedo(_) | Self::NoSessionRedo(_) => "nothing-to-redo",
            Self::Conflict { .. } => "conflict",
            Self::NoSuchSet { .. } => "no-such-set",
            Self::SetChanged(_) => "set-changed",
            Self::NoSuchSession { .. } | Self::NotDeleted { .. } => "no-such-session",
            Self::SessionExists(_) | Self::Store(StoreError::NameTaken(_)) => "session-exists",
            Self::NoSuchMessage { .. } => "no-such-message",
            Self::NoSuchOperation { .. } => "no-such-operation",
            Self::NoCheckpoint { .. } => "no-checkpoint",
            Self::NoVersioning(_) => "versioning-not-enabled",
            Self::SessionBusy(_) => "session-busy",
            Self::NoSuchMemory(_) => "no-such-memory",
            Self::BudgetTooSmall(_) => "budget-too-small",
            Self::BadSetting(_) => "bad-setting",
            Self::NotSummarized(SummaryError::Failed(_)) => "summarizer-failed",
            Self::NotSummarized(_) => "not-summarized",
            Self::Store(StoreError::Damaged(_)) => "store-damaged",
            Self::Store(StoreError::ReadOnly(_)) => "read-only",
            Self::Store(StoreError::Removed(_)) => "state-removed",
            Self::Store(StoreError::Backup { .. }) => "backup-failed",
            Self::Store(_) => "store-failed",
            Self::NotKept { kind, .. } => kind,
            Self::Panicked(_) => "internal",
            Self::Ended => "shutting-down",
            Self::Cancelled => "cancelled",
        }
    }
}

fn conflict(of: &VersionedName, expected: u64, version: u64) -> String {
    match of {
        VersionedName::Session(_, None) => {
            format!("{of} does not exist, so it does not have version {expected}")
        }
        of => format!(
            "{of} has version {version}, not {expected}: it has changed since; read it again"
        ),
    }
}

fn elsewhere(held_by: Option<&str>) -> String {
    held_by.map_or_else(String::new, |name| format!("; it is in {name:?}"))
}

fn no_session(name: Option<&str>, known: &[String]) -> String {
    match name {
        Some(name) => format!("no session {name:?}; {}", known_sessions(known)),
        None if known.is_empty() => {
            "no session is open; call open-session to create one".to_owned()
        }
        None => format!("no session is open; {}", known_sessions(known)),
    }
}

fn known_sessions(known: &[String]) -> String {
    known_names("session", "open-session", known)
}

fn known_messages(length: u64) -> String {
    match length {
        0 => "the log is empty".to_owned(),
        1 => "the log has only msg-1".to_owned(),
        _ => format!("the log has msg-1 to msg-{length}"),
    }
}

fn known_deleted(known: &[String]) -> String {
    match known.is_empty() {
        true => "there are no deleted sessions".to_owned(),
        false => known_names("deleted session", "delete-session", known),
    }
}

fn known_checkpoints(known: &[u64]) -> String {
    if known.is_empty() {
        return "there are no checkpoints; call checkpoint to take one".to_owned();
    }
    let newest_first = known.iter().rev().map(|number| CheckpointId(*number).to_string());
    listed("checkpoint", newest_first)
}

/// Maximum number of names to list in an error.
const NAMES_LISTED: usize = 10;

fn known_names(noun: &str, maker: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("there are no {noun}s; call {maker} to create one");
    }
    listed(noun, known.iter().map(|name| format!("{name:?}")))
}

/// Lists the first names, and says how many are left out.
fn listed(noun: &str, mut names: impl ExactSizeIterator<Item = String>) -> String {
    let listed: Vec<String> = names.by_ref().take(NAMES_LISTED).collect();
    let shown = listed.join(", ");
    match names.len() {
        0 if listed.len() == 1 => format!("the only {noun} is {shown}"),
        0 => format!("the {noun}s are {shown}"),
        more => format!("the {noun}s are {shown} and {more} more"),
    }
}
