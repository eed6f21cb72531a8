//! Asks a model for a text that is useful only when it is complete.

use super::Job;
use crate::provider::ProviderError;
use crate::provider::chat::{Provider, Request, Response, Stop};

/// The reason why there is no whole answer.
#[derive(Debug)]
pub(super) enum Unheard {
    Cancelled,
    /// The answer has more text than allowed.
    TooLong,
    Failed(ProviderError),
}

/// Asks a model and reads its answer into `whole`, which keeps the received part if an error
/// occurs. Stops a model whose text grows beyond `most` bytes.
///
/// # Errors
/// [`Unheard`].
pub(super) async fn hear(
    job: &Job,
    provider: &dyn Provider,
    request: &Request,
    most: usize,
    whole: &mut Response,
) -> Result<(), Unheard> {
    let reading = async {
        let mut reply = provider.chat(request).await?;
        while let Some(piece) = reply.next().await? {
            whole.add(piece);
            if whole.text.len() > most {
                return Ok(true);
            }
        }
        Ok(false)
    };
    match job.cancelled.run_until_cancelled(reading).await {
        Some(Ok(false)) => Ok(()),
        Some(Ok(true)) => Err(Unheard::TooLong),
        Some(Err(_)) if job.cancelled.is_cancelled() => Err(Unheard::Cancelled),
        Some(Err(error)) => Err(Unheard::Failed(error)),
        None => Err(Unheard::Cancelled),
    }
}

/// Returns the reason why a finished answer is not complete; `None` if it is complete. `what` is
/// the noun for the text in the returned reason, in the plural.
pub(super) fn flaw(whole: &Response, provider: &dyn Provider, what: &str) -> Option<String> {
    let name = provider.model();
    match whole.stop {
        _ if whole.text.trim().is_empty() => Some(format!("{name} returned no {what}")),
        Some(Stop::Length) => Some(format!(
            "{name} was cut off before its {what} were complete; raise the provider's max-tokens"
        )),
        Some(Stop::Refused) => Some(format!("{name} refused to finish its {what}")),
        _ => None,
    }
}
