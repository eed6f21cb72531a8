//! The sources of a provider's answers.

use std::path::PathBuf;

#[cfg(feature = "providers")]
use super::Family;
#[cfg(feature = "providers")]
use super::secret::KeySource;
#[cfg(feature = "providers")]
use crate::tokens::model::Model;
use crate::visible::visible_path;

/// Name of the kind of provider that plays a script.
pub(super) const SCRIPTED: &str = "scripted";

/// How a server is asked, and how its answers are read.
#[cfg(feature = "providers")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Serving {
    /// File with certificates to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum time for an answer to begin, in seconds.
    pub first_byte: Option<u64>,
    /// Maximum time between two parts of an answer, in seconds.
    pub silence: Option<u64>,
    /// True if answers begin within reasoning.
    pub thinks: bool,
}

/// The source of a provider's answers.
#[derive(Debug, Clone)]
pub enum Origin {
    /// A server.
    #[cfg(feature = "providers")]
    Server {
        /// Kind of the server.
        family: Family,
        /// Address.
        url: String,
        /// Source of the key.
        key: KeySource,
        /// Window size in tokens to request.
        context: Option<u64>,
        /// How the server is asked.
        serving: Serving,
    },
    /// A script file.
    Script(PathBuf),
    /// The program that uses this library.
    Program,
}

impl Origin {
    /// Returns the kind of provider, as the configuration file names it.
    pub fn kind(&self) -> &'static str {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { family, .. } => family.name(),
            Self::Script(_) => SCRIPTED,
            Self::Program => "program",
        }
    }

    /// Returns the limit of the model that the user gives, in tokens.
    pub fn context(&self) -> Option<u64> {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { context, .. } => *context,
            Self::Script(_) | Self::Program => None,
        }
    }

    /// Returns whether the server must be asked for the model's limit. This is not necessary if the
    /// user sets the window size, or if the built-in table has the model and the vendor serves it.
    pub fn has_to_tell_limit(&self, _model: &str) -> bool {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { family, url, context: None, .. } => {
                url != family.usual_url() || !Model::named(_model, &[]).known
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { family, url, key, .. } => {
                write!(f, "{} at {url}, key {key}", family.name())
            }
            Self::Script(path) => write!(f, "the script {}", visible_path(path)),
            Self::Program => f.write_str("the program itself"),
        }
    }
}
