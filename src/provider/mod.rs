//! Models behind the network: what is asked of them, and how failures are told.
//!
//! Leaves that speak to one kind of server each, behind traits that say nothing of HTTP. It knows
//! no engine, no store and no file of settings; keys are read when they are needed, and kept in
//! memory alone.

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

pub use self::error::{ErrorKind, ProviderError};
pub use self::family::Family;
pub use self::limits::Limit;
pub use self::overflow::Overflow;
pub use self::served::{HttpProvider, Times};

/// What a provider will have answered: traits with these are object safe.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;
