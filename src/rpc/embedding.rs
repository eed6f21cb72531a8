//! Vectors of the texts that calls bring: a call waits a little for one, and goes on without it.

use super::Step;
use super::call::Call;
use crate::value::Value;
use crate::wire::message::WireError;

/// The outcome of embedding a text, for a method that keeps the vector and tells the client.
#[derive(Default)]
pub(super) struct Embedded {
    /// The text's vector, with the name under which such vectors are kept.
    pub(super) vector: Option<(String, Vec<f32>)>,
    /// `:used`, or the reason why there is no vector; `None` when nothing makes vectors.
    pub(super) outcome: Option<Value>,
}

/// Goes on with the vector of a text; at once when nothing makes vectors, or when the text says
/// nothing.
pub(super) fn embedded(
    call: &Call,
    text: String,
    then: impl FnOnce(Embedded) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let embedding = call.tools.embedding.clone().filter(|_| !text.trim().is_empty());
    let Some(embedding) = embedding else { return then(Embedded::default()) };
    Ok(Step::Await(Box::pin(async move {
        let embedded = embedding.embed(text).await;
        then(Embedded { outcome: embedded.outcome(), vector: embedded.vector })
    })))
}
