//! Asks a model to describe the messages that a summary replaces.
//!
//! A summary has this description and the user's words. If there is no description, for whatever
//! reason, it has the words alone.

use std::time::Duration;

use tokio::time::timeout;

use super::whole::{Unheard, WantedAnswer, hear};
use super::{AgentError, AvailableModel, Job};
use crate::curation::budget::usable;
use crate::curation::summary::{Ahead, Asked, Prepared, TASK};
use crate::engine::EngineError;
use crate::provider::chat::{ChatMessage, Request, Response};
use crate::session::message::Role;

/// Maximum time for a description, while somebody waits for the summary.
const DEADLINE: Duration = Duration::from_mins(2);
/// Maximum length of a description, in bytes. A model that writes more is stopped. A summary
/// contains far less text than this.
const MAX_DESCRIPTION_BYTES: usize = 64 << 10;

/// A summarizer with a model's description, and the outcome of asking for it.
#[derive(Default)]
pub struct Described {
    /// The summarizer.
    pub prepared: Prepared,
    /// Outcome of asking for a description; `None` if no model was asked.
    pub outcome: Option<DescriptionOutcome>,
}

/// The outcome of asking a model for a description.
#[derive(Debug, Clone)]
pub struct DescriptionOutcome {
    /// Name of the provider.
    pub provider: String,
    /// Reason why there is no description; `None` if there is one.
    pub failure: Option<String>,
}

/// Asks the configured model to describe the messages that a summary replaces. Asks nobody if no
/// model is configured, or there are no such messages.
///
/// # Errors
/// [`EngineError::Cancelled`].
pub async fn described(job: &Job, ahead: Ahead) -> Result<Described, AgentError> {
    let provider = job.services.summarizer.as_ref().filter(|_| !ahead.messages.is_empty());
    let Some(provider) = provider else { return Ok(Described::default()) };
    let asked = timeout(DEADLINE, description(job, provider, &ahead)).await;
    let late = || Unheard::Failed(format!("no description came within {} s", DEADLINE.as_secs()));
    let (prepared, failure) = match asked.unwrap_or_else(|_| Err(late())) {
        Ok(text) => (ahead.described(text), None),
        Err(Unheard::Failed(reason)) => {
            tracing::warn!(provider, reason, "a summary is made without a description");
            (Prepared::default(), Some(reason))
        }
        Err(Unheard::Cancelled) => return Err(EngineError::Cancelled.into()),
    };
    let outcome = DescriptionOutcome { provider: provider.clone(), failure };
    Ok(Described { prepared, outcome: Some(outcome) })
}

/// Asks the provider's model for a description.
async fn description(job: &Job, provider: &str, ahead: &Ahead) -> Result<String, Unheard> {
    let failed = |error: AgentError| Unheard::Failed(error.to_string());
    let configured = job.services.providers.find(Some(provider), None).map_err(failed)?;
    configured.find_limit().await;
    let prompt = prompt(job, &configured, ahead).await.map_err(failed)?;
    let messages =
        vec![ChatMessage::new(Role::System, TASK), ChatMessage::new(Role::User, &prompt)];
    let request = Request { messages, max_tokens: configured.max_tokens, ..Request::default() };
    let mut whole = Response::default();
    let wanted = WantedAnswer {
        what: "sentences",
        it_has: "the description has",
        most: MAX_DESCRIPTION_BYTES,
    };
    hear(job, &*configured.provider, &request, &wanted, &mut whole).await?;
    Ok(whole.text)
}

/// Returns the prompt. Leaves out the oldest messages if the model would not accept all of them.
async fn prompt(
    job: &Job,
    configured: &AvailableModel,
    ahead: &Ahead,
) -> Result<String, AgentError> {
    let model = configured.provider.model().to_owned();
    let costs = configured.with_room(job.ask(move |engine| engine.costs(Some(&model))).await?);
    let room = usable(costs.model.limit);
    let asked = Asked::of(ahead);
    let written = move |_: &Job| asked.prompt(room, &costs.measure);
    job.aside("writing a prompt for a summary", written).await
}
