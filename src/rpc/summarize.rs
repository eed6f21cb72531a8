//! The method that summarizes a session, or a client's own history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::error::{agent_error, param_error};
use super::history::not_beside_session;
use super::messages::{HISTORY, MessageParam, counted};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::present::MessageShown;
use super::shapes::Either;
use super::{Finish, Step};
use crate::agent::history::{self, SummarizedHistory};
use crate::curation::prune::SUMMARIZED_BUT;
use crate::curation::summary::{Ahead, Prepared};
use crate::engine::{Engine, EngineError, Keep};
use crate::ids::MemoryId;
use crate::session::message::Role;
use crate::value::Value;
use crate::wire::message::WireError;

/// The result of summarizing a session or a history.
pub(super) type SummaryAnswer = Either<SummarizedSession<'static>, SummarizedResult<'static>>;

#[derive(Deserialize, JsonSchema)]
pub(super) struct SummarizeContext {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    #[schemars(description = format!("Number of recent messages to keep; defaults to {SUMMARIZED_BUT}."))]
    max_items: Option<i64>,
    /// Number of recent turns to keep instead.
    keep_turns: Option<i64>,
    model: Option<ModelName>,
}

pub(super) fn summarize_context(call: Call, given: SummarizeContext) -> Result<Step, WireError> {
    let items = not_negative("max-items", given.max_items)?;
    let turns = not_negative("keep-turns", given.keep_turns)?;
    if items.is_some() && turns.is_some() {
        return Err(param_error("keep-turns", "cannot be combined with max-items"));
    }
    let keep = turns.map_or(Keep::Messages(items.unwrap_or(SUMMARIZED_BUT)), Keep::Turns);
    if let Some(messages) = given.messages {
        not_beside_session(&given.session)?;
        let messages = history::messages(counted(messages, &call.counter())?);
        return Step::then(move |engine| {
            let costs = engine.costs(given.model.as_deref())?;
            Ok(Finish::Later(Box::new(move || {
                let summarized = history::summarized(messages, keep, &costs);
                summarized.map(|done| summarized_history(&done)).map_err(agent_error)
            })))
        });
    }
    let (session, model) = (given.session.clone(), given.model.clone());
    let ahead = move |engine: &mut Engine| {
        let context = engine.session_context(session.as_deref(), model.as_deref())?;
        let max_tokens = context.settings.turn.max_tokens;
        engine.summary_ahead(context.row.id, keep, max_tokens, &context.costs)
    };
    prepared(&call, ahead, move |prepared| summarize_session(given, keep, prepared))
}

/// Prepares the slow part of a long summary outside the engine, and continues with it. If the
/// session changes in the meantime, the summary is made without it.
pub(super) fn prepared(
    call: &Call,
    ahead: impl FnOnce(&mut Engine) -> Result<Option<Ahead>, EngineError> + Send + 'static,
    then: impl FnOnce(Prepared) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let engine = call.tools.engine.clone();
    Ok(Step::Await(Box::pin(async move {
        // Errors are left to the call itself, which reports them.
        let ahead = engine.ask(ahead).await.ok().flatten();
        let prepare = || ahead.map(Ahead::prepare).unwrap_or_default();
        then(tokio::task::spawn_blocking(prepare).await.unwrap_or_default())
    })))
}

fn summarize_session(
    given: SummarizeContext,
    keep: Keep,
    prepared: Prepared,
) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let session = given.session.as_deref();
        let (row, done) = engine.in_session(session, |engine, row| {
            let context = engine.context_of(row.clone(), given.model.as_deref())?;
            let max_tokens = context.settings.turn.max_tokens;
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
    /// Numbers of messages.
    stats: SummaryStats,
    /// Text of the summary.
    summary: &'a str,
    /// Id of the memory made from the messages; `nil` if none was made.
    memory: Option<MemoryId>,
}

fn summarized_history(summarized: &SummarizedHistory) -> Value {
    let note =
        NoteResult { role: Role::System, content: &summarized.note, tokens: summarized.tokens };
    // The note comes after the system prompts, before everything else.
    let kept = summarized.kept.iter().map(|message| MessageOrNote::Message(message.into()));
    let mut shown: Vec<MessageOrNote<'_>> = kept.collect();
    shown.insert(summarized.prompts, MessageOrNote::Note(note));
    let stats = SummaryStats {
        summarized_items: summarized.summarized,
        kept_items: summarized.kept.len() as u64,
    };
    Value::of(&SummarizedResult { summarized: shown, summary: note, stats })
}

/// A message, or the summary in the place of others.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum MessageOrNote<'a> {
    Message(MessageShown<'a>),
    Note(NoteResult<'a>),
}

/// A summary as a message.
#[derive(Serialize, JsonSchema, Clone, Copy)]
#[schemars(rename = "SummaryNote")]
struct NoteResult<'a> {
    /// Always `:system`.
    role: Role,
    /// Text of the summary.
    content: &'a str,
    /// Tokens of the summary.
    tokens: u64,
}

/// A summarized history of the client's own.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SummarizedHistory")]
pub(super) struct SummarizedResult<'a> {
    /// The new history: messages, with the summary in the place of the older ones.
    summarized: Vec<MessageOrNote<'a>>,
    /// The summary.
    summary: NoteResult<'a>,
    /// Numbers of messages.
    stats: SummaryStats,
}

/// Numbers of messages in a summary.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SummaryStats")]
struct SummaryStats {
    /// Number of messages that the summary replaces.
    summarized_items: u64,
    /// Number of messages that stay.
    kept_items: u64,
}
