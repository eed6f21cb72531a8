//! The method that summarizes a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::error::param_error;
use super::history::{SummaryStats, summarize_history};
use super::messages::{HISTORY, MessageParam};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::undo::stepping;
use crate::agent::Providers;
use crate::agent::summary::{Described, DescriptionOutcome, described};
use crate::curation::prune::SUMMARIZED_BUT;
use crate::curation::summary::Ahead;
use crate::engine::{Engine, EngineError, Keep};
use crate::ids::MemoryId;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SummarizeSession {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    #[schemars(description = keep_messages())]
    keep_messages: Option<i64>,
    /// Number of recent turns to keep; not together with `:keep-messages`.
    keep_turns: Option<i64>,
    model: Option<ModelName>,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

/// Returns the description of the parameter `:keep-messages`.
fn keep_messages() -> String {
    format!("Number of recent messages to keep; defaults to {SUMMARIZED_BUT}.")
}

/// Reads the parameters that say which messages a summary leaves alone; only one may be given.
fn keep(messages: Option<i64>, turns: Option<i64>) -> Result<Keep, WireError> {
    let messages = not_negative("keep-messages", messages)?;
    let turns = not_negative("keep-turns", turns)?;
    if messages.is_some() && turns.is_some() {
        return Err(param_error(
            "keep-turns",
            "cannot be combined with the parameter keep-messages",
        ));
    }
    Ok(turns.map_or(Keep::Messages(messages.unwrap_or(SUMMARIZED_BUT)), Keep::Turns))
}

pub(super) fn summarize_session(
    call: MethodCall,
    mut given: SummarizeSession,
) -> Result<Step, WireError> {
    let keep = keep(given.keep_messages, given.keep_turns)?;
    if let Some(messages) = given.messages.take() {
        return summarize_history(&call, messages, given.model, keep);
    }
    let (session, model) = (given.session.clone(), given.model.clone());
    let providers = call.tools.providers.clone();
    let of_call = providers.clone();
    let is_dry = given.dry_run.unwrap_or(false);
    let ahead = move |engine: &mut Engine| {
        if is_dry {
            // A report asks no model.
            return Ok(None);
        }
        let row = engine.find_session(session.as_deref())?;
        let context = of_call.turn_context(engine, row, model.as_deref())?;
        let max_tokens = context.max_tokens();
        engine.summary_ahead(context.row.id, keep, max_tokens, &context.costs).map(Some)
    };
    prepared(&call, ahead, move |prepared| summarized(providers, given, keep, prepared))
}

/// Lets the model that is configured for it describe a summary, and passes the description to
/// `then`. `ahead` returns what is to be described; `None` if no summary is due. If the session
/// changes in the meantime, the summary is made without the description.
pub(super) fn prepared(
    call: &MethodCall,
    ahead: impl FnOnce(&mut Engine) -> Result<Option<Ahead>, EngineError> + Send + 'static,
    then: impl FnOnce(Described) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let (engine, job) = (call.tools.engine.clone(), call.job());
    Ok(Step::Await(Box::pin(async move {
        if job.services.summarizer.is_none() {
            return then(Described::default());
        }
        // Errors are left to the call itself, which reports them.
        let ahead = engine.ask(ahead).await.ok().flatten();
        then(match ahead {
            Some(ahead) => described(&job, ahead).await?,
            None => Described::default(),
        })
    })))
}

fn summarized(
    providers: Providers,
    given: SummarizeSession,
    keep: Keep,
    Described { prepared, outcome }: Described,
) -> Result<Step, WireError> {
    stepping(given.dry_run, move |engine| {
        let session = given.session.as_deref();
        let (row, done) = engine.between_turns(session, |engine, row| {
            let context = providers.turn_context(engine, row.clone(), given.model.as_deref())?;
            let max_tokens = context.max_tokens();
            engine.summarize_session(row.id, keep, max_tokens, &context.costs, &prepared)
        })?;
        let stats = SummaryStats { summarized_items: done.messages, kept_items: done.kept };
        Ok(Value::of(&SummarizedSession {
            session: &row.name,
            tokens_before: done.tokens_before,
            tokens_after: done.tokens_after,
            turns_summarized: done.turns,
            stats,
            summary: &done.text,
            description: outcome.as_ref().map(SummaryDescription::from),
            memory: done.memory.map(MemoryId),
        }))
    })
}

/// A summarized session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SummarizedSession")]
pub(super) struct SummarizedSession<'a> {
    /// Name of the session.
    session: &'a str,
    /// Tokens in view before.
    tokens_before: u64,
    /// Tokens in view after.
    tokens_after: u64,
    /// Number of turns that the summary replaces.
    turns_summarized: u64,
    /// Message counts.
    stats: SummaryStats,
    /// Text of the summary.
    summary: &'a str,
    /// The description in the summary; absent if no model was asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<SummaryDescription<'a>>,
    /// Id of the memory made from the summary; `nil` if none was made.
    memory: Option<MemoryId>,
}

/// A description that a model was asked to write for a summary.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Description")]
pub(super) struct SummaryDescription<'a> {
    /// Name of the provider that was asked.
    provider: &'a str,
    /// Reason why the summary is without a description; absent if the model wrote one.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
}

impl<'a> From<&'a DescriptionOutcome> for SummaryDescription<'a> {
    fn from(DescriptionOutcome { provider, failure }: &'a DescriptionOutcome) -> Self {
        Self { provider, failure: failure.as_deref() }
    }
}
