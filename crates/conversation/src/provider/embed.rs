//! Embeddings: vectors that are similar for texts of similar meaning.

#[cfg(feature = "providers")]
mod http;

use std::time::Duration;

use super::Answer;

#[cfg(feature = "providers")]
pub use self::http::HttpEmbedder;

/// Maximum number of texts in one request.
pub const BATCH: usize = 64;
/// Maximum number of characters of a text to embed: about 2,000 tokens, which embedding models
/// accept. The beginning of a text says most about its subject.
pub const MOST_CHARS: usize = 8_000;
/// A model that computes vectors for texts.
pub trait Embedder: Send + Sync {
    /// Returns the name of the model.
    fn model(&self) -> &str;

    /// Returns one vector for each text, in order. Uses only the first [`MOST_CHARS`] characters of
    /// a text. All vectors have the same length, above 0. Gives up after `time`.
    fn embed<'a>(&'a self, texts: &'a [String], time: Duration) -> Answer<'a, Vec<Vec<f32>>>;
}
