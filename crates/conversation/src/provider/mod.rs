//! Model providers: requests, answers, and errors.
//!
//! Each kind of server has a module of its own, behind traits that hide HTTP. Nothing here uses the
//! engine, the store or the configuration file. Keys are read when needed and kept only in memory.

#[cfg(feature = "providers")]
mod abilities;
#[cfg(feature = "providers")]
mod address;
#[cfg(feature = "providers")]
mod attempts;
pub mod chat;
mod choice;
pub mod embed;
mod error;
#[cfg(feature = "providers")]
mod family;
#[cfg(feature = "providers")]
mod http;
#[cfg(feature = "providers")]
mod learned;
#[cfg(feature = "providers")]
mod limits;
#[cfg(feature = "providers")]
mod lines;
mod listed;
#[cfg(feature = "providers")]
mod network;
mod normal;
mod origin;
mod overflow;
#[cfg(feature = "providers")]
mod pieces;
#[cfg(feature = "providers")]
mod plain;
#[cfg(feature = "providers")]
mod refusal;
#[cfg(feature = "providers")]
mod reply;
pub mod scripted;
#[cfg(feature = "providers")]
#[doc(hidden)]
pub mod secret;
#[cfg(feature = "providers")]
mod served;
#[cfg(feature = "providers")]
pub mod settings;
mod shown;
#[cfg(feature = "providers")]
mod trusted;
mod waiting;

use std::pin::Pin;

/// Returns how to connect to a server that shows a certificate which the system trusts.
#[cfg(feature = "program")]
pub fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    trusted::config(Vec::new())
}

pub use self::chat::Limit;
pub use self::error::{ErrorKind, ProviderError};
#[cfg(feature = "providers")]
#[doc(hidden)]
pub use self::family::Family;
pub use self::origin::AnswerOrigin;
#[cfg(feature = "providers")]
#[doc(hidden)]
pub use self::origin::Serving;
pub use self::overflow::Overflow;
#[cfg(feature = "providers")]
#[doc(hidden)]
pub use self::reply::Times;
#[cfg(feature = "providers")]
#[doc(hidden)]
pub use self::served::HttpProvider;

/// Maximum amount of text, reasoning and arguments in an answer, in bytes: some millions of tokens.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Maximum number of pieces in which an answer comes. Most servers send one for each token.
pub const MAX_ANSWER_PIECES: usize = 1 << 18;
/// Maximum length of a provider's list of its models, in bytes.
pub const MAX_MODEL_LIST_BYTES: usize = 4 << 20;
/// Maximum number of models in such a list.
pub const MAX_LISTED_MODELS: usize = 10_000;

/// The answer of a provider, as a future. Boxed, so that traits that return it are object safe.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;
