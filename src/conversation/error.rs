//! The errors of the library.

use crate::agent::AgentError;
use crate::curation::budget::Irreducible;
use crate::curation::config::ConfigError;
use crate::engine::EngineError;
use crate::files::FileError;
use crate::provider::{ErrorKind, ProviderError};
use crate::store::StoreError;
use crate::store::ownership::FolderError;

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
    /// The state folder cannot be used. [`FolderError::Taken`] names the process that has it.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The state cannot be read or stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that the call names does not exist, or the call is not possible now. The message
    /// says why.
    #[error("{0}")]
    Refused(String),
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

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::BudgetTooSmall(error) => {
                Self::BudgetTooSmall { needed: error.needed, parts: error.parts, message }
            }
            EngineError::Store(error) => Self::Store(error),
            EngineError::BadSetting(error) => error.into(),
            EngineError::Cancelled => Self::Cancelled,
            EngineError::Ended => Self::Closed,
            EngineError::Panicked(_) => Self::Internal(message),
            _ => Self::Refused(message),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
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
