//! The errors of the library.

use std::path::PathBuf;

use crate::agent::AgentError;
use crate::context::manager::ManagerError;
use crate::curation::budget::Irreducible;
use crate::curation::config::{CurationConfigError, Range, SettingValue};
use crate::engine::EngineError;
use crate::files::FileError;
use crate::provider::{ErrorKind, ProviderError};
use crate::store::StoreError;
use crate::store::ownership::{FolderError, Owner};
use crate::visible::visible_path;

/// An error of the library. The conversation still has everything that it had before the call.
///
/// ```
/// use contexture::{Error, ErrorKind};
///
/// fn is_worth_another_try(error: &Error) -> bool {
///     match error {
///         Error::Provider(error) => {
///             matches!(error.kind, ErrorKind::RateLimited | ErrorKind::Unavailable)
///         }
///         _ => false,
///     }
/// }
/// # assert!(!is_worth_another_try(&Error::Closed));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The parts that cannot be left out exceed the budget or the model's limit.
    #[error("{message}")]
    #[non_exhaustive]
    BudgetTooSmall {
        /// Smallest sufficient budget, in tokens.
        needed: u64,
        /// The parts, in the order of the window.
        parts: Vec<Irreducible>,
        /// Description of the failure, with the number of tokens needed.
        message: String,
    },
    /// The model failed to answer. [`ProviderError::kind`] gives the reason.
    #[error(transparent)]
    Provider(Box<ProviderError>),
    /// The conversation has no provider.
    #[error("the conversation has no provider; add one with Builder::provider")]
    NoProvider,
    /// A tool cannot be offered to models, or a named tool does not exist.
    #[error("the tool {name:?} {what}")]
    #[non_exhaustive]
    Tool {
        /// Name of the tool.
        name: String,
        /// The problem and what to do.
        what: String,
    },
    /// A setting has an invalid value or names something that does not exist.
    #[error("{0}")]
    Setting(String),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Another process, or this one, has the state folder open.
    #[error(
        "the state folder {} belongs to {}",
        visible_path(path),
        Owner { pid: pid.unwrap_or_default(), socket: None }
    )]
    #[non_exhaustive]
    FolderTaken {
        /// The folder.
        path: PathBuf,
        /// Id of the process that has the folder; `None` if it is not known.
        pid: Option<u32>,
    },
    /// The state folder cannot be used.
    #[error("{message}")]
    #[non_exhaustive]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Description of the problem and what to do.
        message: String,
    },
    /// The state cannot be read or stored.
    #[error("{message}")]
    #[non_exhaustive]
    Store {
        /// What is wrong with the state.
        kind: StoreErrorKind,
        /// Description of the problem and what to do.
        message: String,
    },
    /// The call is not possible now, or names something that does not exist.
    #[error("{message}")]
    #[non_exhaustive]
    Refused {
        /// The reason.
        why: Refusal,
        /// Description of the reason and what to do.
        message: String,
    },
    /// A turn of the conversation with this name waits for this call: a tool of the turn asks for
    /// another turn of the same conversation, which could never begin.
    #[error("a turn of {0:?} is under way, and waits for this call")]
    Busy(String),
    /// The conversation with this name is open with other settings. Clone its handle, or drop it
    /// first.
    #[error("the conversation {0:?} is open with other settings; use its handle, or drop it first")]
    AlreadyOpen(String),
    /// The turn was cancelled.
    #[error("the turn was cancelled")]
    Cancelled,
    /// The conversation is closed.
    #[error("the conversation is closed")]
    Closed,
    /// A defect in this library, or a panic in one of its tasks.
    #[error("{0}")]
    Internal(String),
}

/// What is wrong with the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The stored state is damaged.
    Damaged,
    /// The state can be read, but not changed.
    ReadOnly,
    /// Another version of this library wrote the state.
    OtherFormat,
    /// The state cannot be read or written, for instance because the disk is full.
    Failed,
}

/// Why a call is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The context is full of pinned items.
    Full,
    /// There is no such item.
    NoSuchItem,
    /// The conversation has no such message.
    NoSuchMessage,
    /// The conversation has no such checkpoint.
    NoSuchCheckpoint,
    /// There is no such conversation.
    NoSuchConversation,
    /// Another conversation has the name.
    NameTaken,
    /// There is no change to undo.
    NothingToUndo,
    /// There is no undone change to redo.
    NothingToRedo,
    /// There is no question to ask again.
    NothingToRetry,
    /// The conversation keeps no versions.
    NoVersioning,
    /// A summary would not help, or the summarizer failed.
    NotSummarized,
    /// Any other reason.
    Other,
}

impl Error {
    /// Creates the error of a call that is not possible.
    pub(super) fn refused(why: Refusal, message: impl Into<String>) -> Self {
        Self::Refused { why, message: message.into() }
    }
}

/// Refuses a value that is out of its range. `None` is in every range.
pub(super) fn check_range(
    name: &'static str,
    value: Option<SettingValue>,
    range: Range,
) -> Result<(), Error> {
    match value {
        Some(value) if !range.has(value) => {
            Err(CurationConfigError::OutOfRange { name, value, range }.into())
        }
        _ => Ok(()),
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let why = match error {
            EngineError::BudgetTooSmall(error) => {
                return Self::BudgetTooSmall { needed: error.needed, parts: error.parts, message };
            }
            EngineError::Store(StoreError::NameTaken(_)) | EngineError::SessionExists(_) => {
                Refusal::NameTaken
            }
            EngineError::Store(StoreError::NoSuchSession(_)) => Refusal::NoSuchConversation,
            EngineError::Store(error) => return error.into(),
            EngineError::NotKept { .. } => {
                return Self::Store { kind: StoreErrorKind::Failed, message };
            }
            EngineError::BadSetting(error) => return error.into(),
            EngineError::SessionBusy(name) => return Self::Busy(name),
            EngineError::Cancelled => return Self::Cancelled,
            EngineError::Ended => return Self::Closed,
            EngineError::Panicked(_) => return Self::Internal(message),
            EngineError::Manager { source: ManagerError::NoSuchItem(_), .. }
            | EngineError::NoSuchItem { .. } => Refusal::NoSuchItem,
            EngineError::Manager { .. } => Refusal::Full,
            EngineError::NoSuchSession { .. } | EngineError::NotDeleted { .. } => {
                Refusal::NoSuchConversation
            }
            EngineError::NoSuchMessage { .. } => Refusal::NoSuchMessage,
            EngineError::NoCheckpoint { .. } => Refusal::NoSuchCheckpoint,
            EngineError::NothingToUndo(_) | EngineError::NoSessionUndo(_) => Refusal::NothingToUndo,
            EngineError::NothingToRedo(_) | EngineError::NoSessionRedo(_) => Refusal::NothingToRedo,
            EngineError::NoVersioning(_) => Refusal::NoVersioning,
            EngineError::NotSummarized(_) => Refusal::NotSummarized,
            _ => Refusal::Other,
        };
        Self::Refused { why, message }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Damaged(_) => StoreErrorKind::Damaged,
            StoreError::ReadOnly(_) => StoreErrorKind::ReadOnly,
            StoreError::OtherFormat { .. } => StoreErrorKind::OtherFormat,
            _ => StoreErrorKind::Failed,
        };
        Self::Store { kind, message: error.to_string() }
    }
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Self {
        let message = error.to_string();
        match error {
            FolderError::Taken { path, owner } => {
                Self::FolderTaken { path, pid: Some(owner.pid).filter(|pid| *pid != 0) }
            }
            FolderError::Unusable { path, .. }
            | FolderError::Foreign { path, .. }
            | FolderError::NotPrivate(path) => Self::Folder { path, message },
        }
    }
}

impl From<CurationConfigError> for Error {
    fn from(error: CurationConfigError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        match error.kind {
            ErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Provider(Box::new(error)),
        }
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        let message = error.to_string();
        match error {
            AgentError::Engine(error) => error.into(),
            AgentError::Provider { source, .. } => (*source).into(),
            AgentError::Unconfigured => Self::NoProvider,
            AgentError::NeverFits { needed, parts, .. } => {
                Self::BudgetTooSmall { needed, parts, message }
            }
            AgentError::InTurn { source, .. } => (*source).into(),
            AgentError::NoSuchProvider { .. }
            | AgentError::TooManyProviders { .. }
            | AgentError::NoSuchStrategy { .. }
            | AgentError::RelativeProject
            | AgentError::Picture(_) => Self::Setting(message),
            AgentError::Defect(_) => Self::Internal(message),
        }
    }
}
