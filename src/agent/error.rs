//! The reasons why a turn, or a part of one, fails.

use crate::curation::budget::Irreducible;
use crate::curation::strategy;
use crate::engine::EngineError;
use crate::provider::ProviderError;

/// An error of a turn with a model.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model did not answer.
    #[error("{source}")]
    Provider {
        /// Name of the provider.
        name: String,
        /// The reason.
        source: Box<ProviderError>,
    },
    /// There is no model to talk to.
    #[error(
        "no model is configured: put a [[providers]] table with name, kind and model into the \
         configuration file, for instance name = \"local\", kind = \"ollama\", model = \
         \"llama3.2\", and start the server again; or call configure-provider"
    )]
    Unconfigured,
    /// No provider has this name.
    #[error("no provider {name:?}; there are {}", known.join(", "))]
    NoSuchProvider {
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// There are as many providers as there can be.
    #[error(
        "there are {most} providers, which is all that there can be; give the name of one that is \
         to be replaced"
    )]
    TooManyProviders {
        /// Number of providers that there can be.
        most: usize,
    },
    /// No strategy has this name.
    #[error("strategy must be one of {}, got {name:?}", strategy::names().join(", "))]
    NoSuchStrategy {
        /// Name that was asked for.
        name: String,
    },
    /// The folder of a project is given relative to another.
    #[error("project must be an absolute folder name")]
    RelativeProject,
    /// The model takes less than what can never be left out of its window.
    #[error("{source}")]
    NeverFits {
        /// Name of the provider.
        name: String,
        /// The refusal.
        source: Box<ProviderError>,
        /// Tokens of the smallest window.
        needed: u64,
        /// The parts that cannot be left out.
        parts: Vec<Irreducible>,
    },
    /// The turn failed when its question was in the log already.
    #[error("{source}")]
    InTurn {
        /// Number of the question's message.
        question: u64,
        /// Beginning of an answer that broke off, if there was one.
        answer: Option<BrokenOff>,
        /// The reason.
        source: Box<AgentError>,
    },
    /// A defect in the part that is named.
    #[error("internal error in {0}")]
    Defect(&'static str),
}

/// An answer that broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenOff {
    /// Number of the message with its beginning; `None` if there was nothing to keep.
    pub message: Option<u64>,
}
