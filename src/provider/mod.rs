//! Model providers on the network: requests, answers, and errors.
//!
//! Each kind of server is one leaf module, behind traits that hide HTTP. Nothing here knows the
//! engine, the store or the configuration file. Keys are read when needed and kept only in memory.

pub mod chat;
pub mod embed;
mod error;
mod family;
mod http;
mod limits;
mod lines;
mod normal;
mod overflow;
mod refusal;
pub mod scripted;
pub mod secret;
mod served;
pub mod settings;

use std::pin::Pin;

pub use self::chat::Limit;
pub use self::error::{ErrorKind, ProviderError};
pub use self::family::Family;
pub use self::overflow::Overflow;
pub use self::served::{HttpProvider, Times};

/// Future answer of a provider. Boxed, so that traits with it are object safe.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;
