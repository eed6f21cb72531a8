//! Vectors for texts in calls: a call waits briefly for its vector, and continues without one if
//! necessary.

use super::Step;
use super::call::Call;
use crate::value::Value;
use crate::wire::message::WireError;

/// The outcome of embedding a text, for a method that stores the vector and reports the outcome.
#[derive(Default)]
pub(super) struct Embedded {
    /// The text's vector, with the name of the embedding model.
    pub(super) vector: Option<(String, Vec<f32>)>,
    /// `:used`, or the reason why there is no vector; `None` if no embedding model is configured or
    /// the text is blank.
    pub(super) outcome: Option<Value>,
}

/// Computes the vector of a text, and continues with `then`: without a vector if no embedding model
/// is configured, the text is blank, or the model fails or does not answer in time.
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
