//! Vectors for texts in calls: a call waits briefly for its vector, and continues without one if
//! necessary.

use super::Step;
use super::call::MethodCall;
use crate::agent::Embedded;
use crate::wire::message::WireError;

/// Computes the vector of a text, and continues with `then`: without a vector if no embedding model
/// is configured, the text is blank, or the model fails or does not answer in time.
pub(super) fn embedded(
    call: &MethodCall,
    text: String,
    then: impl FnOnce(Embedded) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let embedding = call.tools.embedding.clone().filter(|_| !text.trim().is_empty());
    let Some(embedding) = embedding else { return then(Embedded::default()) };
    Ok(Step::Await(Box::pin(async move { then(embedding.embed(text).await) })))
}
