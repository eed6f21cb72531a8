//! The sources of a provider's answers, and how a server among them is asked.

use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "providers")]
use super::Family;
#[cfg(feature = "providers")]
use super::chat::Effort;
#[cfg(feature = "providers")]
use super::secret::KeySource;
#[cfg(feature = "providers")]
use crate::tokens::model::Model;
use crate::visible::visible_path;

/// Name of the kind of provider that plays a script.
pub(super) const SCRIPTED: &str = "scripted";
/// The proxy that stands for none, whatever the environment says.
#[cfg(feature = "providers")]
pub(super) const NO_PROXY: &str = "none";

/// How a server is asked, and how its answers are read.
#[cfg(feature = "providers")]
#[derive(Debug, Clone, Default)]
pub struct Serving {
    /// Window size in tokens: the limit of the model, and what Ollama is asked for.
    pub context: Option<u64>,
    /// Header that carries the key, in lower case, in place of the usual one.
    pub key_header: Option<String>,
    /// Version of Azure's interface, which makes the model a deployment in the address.
    pub api_version: Option<String>,
    /// Further headers: their names in lower case, and the sources of their values.
    pub headers: Vec<(String, KeySource)>,
    /// Further members of each request.
    pub extra: serde_json::Map<String, serde_json::Value>,
    /// How much the model reasons.
    pub effort: Option<Effort>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Share of the likeliest tokens from which to pick.
    pub top_p: Option<f64>,
    /// File with certificates to trust besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Address of a proxy, or [`NO_PROXY`]; `None` for what the environment says.
    pub proxy: Option<String>,
    /// Maximum time for an answer to begin, in seconds.
    pub first_byte: Option<u64>,
    /// Maximum time between two parts of an answer, in seconds.
    pub silence: Option<u64>,
    /// True if answers begin within reasoning.
    pub thinks: bool,
    /// Maximum number of further attempts; `None` for as many as make sense.
    pub retries: Option<u32>,
    /// True if the server is not asked for the limit of its model.
    pub keeps_limit: bool,
}

/// The settings that are not the usual ones, without any secret.
#[cfg(feature = "providers")]
impl fmt::Display for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn told<T: fmt::Display>(name: &str, value: Option<&T>) -> Option<String> {
            value.map(|value| format!("{name} {value}"))
        }
        let names = || self.extra.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let header = |(name, source): &(String, KeySource)| format!("header {name} {source}");
        let file = self.ca_file.as_deref().map(|file| visible_path(file).to_string());
        let first = self.first_byte.map(|seconds| format!("{seconds} s"));
        let silence = self.silence.map(|seconds| format!("{seconds} s"));
        let all = [
            told("key in the header", self.key_header.as_ref()),
            told("api-version", self.api_version.as_ref()),
            told("effort", self.effort.as_ref()),
            told("temperature", self.temperature.as_ref()),
            told("top-p", self.top_p.as_ref()),
            (!self.extra.is_empty()).then(|| format!("extra members {}", names())),
            told("context", self.context.as_ref()),
            told("ca-file", file.as_ref()),
            told("proxy", self.proxy.as_ref()),
            told("first-byte", first.as_ref()),
            told("silence", silence.as_ref()),
            self.thinks.then(|| "thinks".to_owned()),
        ];
        let headers = self.headers.iter().map(header);
        let all: Vec<String> = all.into_iter().flatten().chain(headers).collect();
        f.write_str(&all.join(", "))
    }
}

/// The source of a provider's answers.
#[derive(Debug, Clone)]
pub enum AnswerOrigin {
    /// A server.
    #[cfg(feature = "providers")]
    Server {
        /// Kind of the server.
        family: Family,
        /// Address.
        url: String,
        /// Source of the key.
        key: KeySource,
        /// How the server is asked.
        serving: Box<Serving>,
    },
    /// A script file.
    Script(PathBuf),
    /// The program that uses this library.
    Program,
}

impl AnswerOrigin {
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
            Self::Server { serving, .. } => serving.context,
            Self::Script(_) | Self::Program => None,
        }
    }

    /// Returns whether the server must be asked for the model's limit. This is not necessary if the
    /// user sets the window size, or if the built-in table has the model and the vendor serves it.
    pub fn has_to_tell_limit(&self, _model: &str) -> bool {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { family, url, serving, .. }
                if serving.context.is_none() && !serving.keeps_limit =>
            {
                url != family.usual_url() || !Model::named(_model, &[]).known
            }
            _ => false,
        }
    }
}

impl fmt::Display for AnswerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "providers")]
            Self::Server { family, url, key, serving } => {
                write!(f, "{} at {url}, key {key}", family.name())?;
                let more = serving.to_string();
                if more.is_empty() { Ok(()) } else { write!(f, ", {more}") }
            }
            Self::Script(path) => write!(f, "the script {}", visible_path(path)),
            Self::Program => f.write_str("the program itself"),
        }
    }
}
