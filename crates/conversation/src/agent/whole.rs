//! Asks a model for a text that is useful only when it is complete.

use super::Job;
use crate::provider::ProviderError;
use crate::provider::chat::{ChatProvider, Request, Response, Stop};

/// The reason why there is no whole answer.
#[derive(Debug)]
pub(super) enum Unheard {
    Cancelled,
    Failed(String),
}

/// The text that an answer must have.
pub(super) struct WantedAnswer {
    /// Noun for the text, as the object of a sentence, in the plural.
    pub(super) what: &'static str,
    /// Noun for the text with its article and the verb "have".
    pub(super) it_has: &'static str,
    /// Maximum length of the text, in bytes.
    pub(super) most: usize,
}

/// Asks a model and reads its answer into `whole`, which keeps the received part if an error
/// occurs. Stops a model whose text grows too long.
///
/// # Errors
/// [`Unheard`].
pub(super) async fn hear(
    job: &Job,
    provider: &dyn ChatProvider,
    request: &Request,
    wanted: &WantedAnswer,
    whole: &mut Response,
) -> Result<(), Unheard> {
    let reading = async {
        let mut reply = provider.chat(request).await?;
        while let Some(piece) = reply.next().await? {
            whole.add(piece);
            if whole.text.len() > wanted.most {
                return Ok(Some(format!("{} more than {} bytes", wanted.it_has, wanted.most)));
            }
        }
        Ok::<_, ProviderError>(flaw(whole, provider, wanted.what))
    };
    match job.cancelled.run_until_cancelled(reading).await {
        Some(Ok(None)) => Ok(()),
        Some(Ok(Some(flaw))) => Err(Unheard::Failed(flaw)),
        Some(Err(error)) if !job.cancelled.is_cancelled() => {
            Err(Unheard::Failed(error.to_string()))
        }
        Some(Err(_)) | None => Err(Unheard::Cancelled),
    }
}

/// Returns the reason why a finished answer is not complete; `None` if it is complete. `what` is
/// the noun for the text in the returned reason, in the plural.
fn flaw(whole: &Response, provider: &dyn ChatProvider, what: &str) -> Option<String> {
    let name = provider.model();
    match whole.stop {
        _ if whole.text.trim().is_empty() => Some(format!("{name} returned no {what}")),
        Some(Stop::Length) => Some(format!(
            "{name} was cut off before its {what} were complete; raise the provider's max-tokens"
        )),
        Some(Stop::Refused | Stop::Filtered) => {
            Some(format!("{name} refused to finish its {what}"))
        }
        _ => None,
    }
}
