//! Vectors of texts, from the server that `EMBEDDINGS` names, such as `http://localhost:11434/v1`,
//! by the model that `EMBEDDINGS_MODEL` names.

use std::time::Duration;

use contexture_program::internals::provider::embed::{Embedder, HttpEmbedder};
use contexture_program::internals::provider::secret::KeySource;

/// Number of texts in a request.
const BATCH: usize = 64;
/// Maximum time for a request.
const TIME: Duration = Duration::from_secs(600);

/// Returns the vectors of the texts; `None` if no server is named.
pub(crate) fn vectors(texts: &[String]) -> anyhow::Result<Option<Vec<Vec<f32>>>> {
    let named = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(url) = named("EMBEDDINGS") else { return Ok(None) };
    let model = named("EMBEDDINGS_MODEL").unwrap_or_else(|| "default".to_owned());
    let embedder = HttpEmbedder::new(&url, &model, KeySource::None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut vectors = Vec::new();
    for batch in texts.chunks(BATCH) {
        vectors.extend(runtime.block_on(embedder.embed(batch, TIME))?);
    }
    Ok(Some(vectors))
}
