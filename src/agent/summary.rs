//! Asks a model to describe the messages that a summary replaces.
//!
//! A summary consists of this description and of a ledger, a list of facts that needs no model. If
//! there is no description, for whatever reason, the summary consists of the ledger alone.

use std::time::Duration;

use tokio::time::timeout;

use super::whole::{Unheard, Wanted, hear};
use super::{AgentError, Configured, Job};
use crate::curation::budget::usable;
use crate::curation::ledger::Ledger;
use crate::curation::summary::{Ahead, Asked, Prepared, TASK};
use crate::engine::{EngineError, WORTH_PREPARING};
use crate::provider::chat::{ChatMessage, Request, Response};
use crate::session::message::Role;

/// Maximum time for a description, while somebody waits for the summary.
const DEADLINE: Duration = Duration::from_mins(2);
/// Maximum length of a description, in bytes. A model that writes more is stopped. A summary
/// contains far less text than this.
const MAX_DESCRIPTION_BYTES: usize = 64 << 10;

/// A prepared summary, and the outcome of asking for its description.
#[derive(Default)]
pub(crate) struct Described {
    /// The prepared summary.
    pub prepared: Prepared,
    /// Outcome of asking for a description; `None` if no model was asked.
    pub outcome: Option<Outcome>,
}

/// The outcome of asking a model for a description.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Name of the provider.
    pub provider: String,
    /// Reason why there is no description; `None` if there is one.
    pub failure: Option<String>,
}

/// Returns the minimum number of messages in view for which a summary is prepared: one if a model
/// is to describe the messages, otherwise the number for which building the ledger takes long.
pub(crate) fn worth_preparing(job: &Job) -> usize {
    match job.services.summarizer {
        Some(_) => 1,
        None => WORTH_PREPARING,
    }
}

/// Prepares a summary, and asks the configured model, if there is one, to describe the messages
/// that the summary replaces. Prepares nothing if `ahead` is `None`.
///
/// # Errors
/// [`EngineError::Cancelled`], and [`AgentError::Defect`] if the preparation panics.
pub(crate) async fn described(job: &Job, ahead: Option<Ahead>) -> Result<Described, AgentError> {
    let Some(ahead) = ahead else { return Ok(Described::default()) };
    let prepared = job.aside("preparing a summary", |_| ahead.prepare()).await?;
    let (Some(provider), Some(expected)) = (&job.services.summarizer, prepared.expected()) else {
        return Ok(Described { prepared, outcome: None });
    };
    let asked = timeout(DEADLINE, description(job, provider, expected)).await;
    let late = || Unheard::Failed(format!("no description came within {} s", DEADLINE.as_secs()));
    let (prepared, failure) = match asked.unwrap_or_else(|_| Err(late())) {
        Ok(text) => (prepared.described(text), None),
        Err(Unheard::Failed(reason)) => {
            tracing::warn!(provider, reason, "a summary is made without a description");
            (prepared, Some(reason))
        }
        Err(Unheard::Cancelled) => return Err(EngineError::Cancelled.into()),
    };
    let outcome = Outcome { provider: provider.clone(), failure };
    Ok(Described { prepared, outcome: Some(outcome) })
}

/// Asks the provider's model for a description.
async fn description(
    job: &Job,
    provider: &str,
    (ahead, ledger): (&Ahead, &Ledger),
) -> Result<String, Unheard> {
    let failed = |error: AgentError| Unheard::Failed(error.to_string());
    let configured = job.services.providers.find(Some(provider), None).map_err(failed)?;
    configured.find_limit().await;
    let prompt = prompt(job, &configured, ahead, ledger).await.map_err(failed)?;
    let messages =
        vec![ChatMessage::new(Role::System, TASK), ChatMessage::new(Role::User, &prompt)];
    let request = Request { messages, max_tokens: configured.max_tokens, ..Request::default() };
    let mut whole = Response::default();
    let wanted =
        Wanted { what: "sentences", it_has: "the description has", most: MAX_DESCRIPTION_BYTES };
    hear(job, &*configured.provider, &request, &wanted, &mut whole).await?;
    Ok(whole.text)
}

/// Returns the prompt. Leaves out the oldest messages if the model would not accept all of them.
async fn prompt(
    job: &Job,
    configured: &Configured,
    ahead: &Ahead,
    ledger: &Ledger,
) -> Result<String, AgentError> {
    let model = configured.provider.model().to_owned();
    let costs = configured.with_room(job.ask(move |engine| engine.costs(Some(&model))).await?);
    let room = usable(costs.model.limit);
    let asked = Asked::of(ahead, ledger);
    let written = move |_: &Job| asked.prompt(room, &costs.measure);
    job.aside("writing a prompt for a summary", written).await
}
