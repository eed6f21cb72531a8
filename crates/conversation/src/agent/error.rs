//! The reasons why a turn, or a part of one, fails.

use crate::curation::budget::Irreducible;
use crate::curation::strategy;
use crate::engine::EngineError;
use crate::provider::ProviderError;

/// An error of a turn with a model.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The engine refused an operation.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model failed to answer.
    #[error("{source}")]
    Provider {
        /// Name of the provider.
        name: String,
        /// The reason.
        source: Box<ProviderError>,
    },
    /// No model is configured.
    #[error(
        "no model is configured: put a [[providers]] table with name, kind and model into the \
         configuration file, for instance name = \"local\", kind = \"ollama\", model = \
         \"llama3.2\", and start the server again; or call configure-provider"
    )]
    Unconfigured,
    /// No provider has this name.
    #[error("there is no provider {name:?}; {}", existing(known))]
    NoSuchProvider {
        /// Name that was asked for.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// The maximum number of providers has been reached.
    #[error("there are already {most} providers, the maximum; give the name of one to replace")]
    TooManyProviders {
        /// Maximum number of providers.
        most: usize,
    },
    /// No strategy has this name.
    #[error("strategy must be one of {}, got {name:?}", strategy::names().join(", "))]
    NoSuchStrategy {
        /// Name that was asked for.
        name: String,
    },
    /// A picture of the question cannot be sent.
    #[error("{0}")]
    Picture(String),
    /// A project's folder is given as a relative path.
    #[error("project must be the absolute name of a folder")]
    RelativeProject,
    /// The parts that cannot be left out exceed the model's limit.
    #[error("{source}")]
    NeverFits {
        /// Name of the provider.
        name: String,
        /// The server's refusal, or an error that stands in for it.
        source: Box<ProviderError>,
        /// Number of tokens in the smallest possible window.
        needed: u64,
        /// The parts that cannot be left out.
        parts: Vec<Irreducible>,
    },
    /// The turn failed after its question was logged.
    #[error("{source}")]
    InTurn {
        /// Number of the question's message.
        question: u64,
        /// Last answer of the turn, or the beginning of an answer that broke off, if there is any.
        answer: Option<BrokenOff>,
        /// The reason.
        source: Box<AgentError>,
    },
    /// A defect in the named part.
    #[error("internal error in {0}")]
    Defect(&'static str),
}

/// Says which providers exist.
fn existing(known: &[String]) -> String {
    match known {
        [] => "no provider is configured".to_owned(),
        [only] => format!("the only provider is {only}"),
        known => format!("the providers are {}", known.join(", ")),
    }
}

/// The last answer of a turn that failed; the answer itself may be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenOff {
    /// Number of the message with the answer or its beginning; `None` if there was nothing to
    /// store, or if storing failed.
    pub message: Option<u64>,
}
