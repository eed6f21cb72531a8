//! Methods that prune and measure a session.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::Call;
use super::history::{PruneStats, Told, history_stats, prune_history};
use super::messages::{HISTORY, MessageParam};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::undo::stepping;
use crate::curation::prune::HistoryStats;
use crate::engine::{Engine, EngineError, SessionContext};
use crate::session::message::Message;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PruneSession {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    /// Maximum number of tokens to keep; defaults to 80 % of the model's limit.
    keep_tokens: Option<i64>,
    /// Change nothing unless more than 80 % of the model's limit is used.
    if_needed: Option<bool>,
    model: Option<ModelName>,
    /// Answer with ids in place of messages.
    brief: Option<bool>,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

pub(super) fn prune_session(call: Call, given: PruneSession) -> Result<Step, WireError> {
    let target = not_negative("keep-tokens", given.keep_tokens)?;
    let if_needed = given.if_needed.unwrap_or(false);
    let brief = given.brief.unwrap_or(false);
    if let Some(messages) = given.messages {
        return prune_history(&call, messages, given.model, target, [if_needed, brief]);
    }
    stepping(given.dry_run, move |engine| {
        let session = given.session.as_deref();
        let (row, done) = engine.in_session(session, |engine, row| {
            let (row, model) = (row.clone(), given.model.as_deref());
            let context = call.tools.providers.context_of(engine, row.clone(), model)?;
            match if_needed {
                true => engine.auto_manage_session(row.id, target, &context.costs),
                false => engine.prune_session(row.id, target, &context.costs),
            }
        })?;
        let removed = messages_of(engine, row.id, &done.removed)?;
        let (count, session) = (done.removed.len() as u64, &*row.name);
        Ok(Value::of(&PrunedSession {
            session,
            removed: Told::of(removed.iter().map(|message| &**message), brief),
            stats: PruneStats::of(done.original, done.remaining, count, done.kept),
            archived: done.archived,
        }))
    })
}

fn messages_of(
    engine: &mut Engine,
    id: u64,
    numbers: &[u64],
) -> Result<Vec<Arc<Message>>, EngineError> {
    let log = engine.session(id)?.log();
    let at = |number: &u64| log.get(usize::try_from(number - 1).ok()?).cloned();
    Ok(numbers.iter().filter_map(at).collect())
}

/// A pruned session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedSession")]
pub(super) struct PrunedSession<'a> {
    /// Name of the session.
    session: &'a str,
    /// The pruned messages, or their ids if the call is `:brief`.
    removed: Told<'a>,
    /// Figures from before and after the pruning.
    stats: PruneStats,
    /// Number of memories made from the pruned messages.
    archived: u64,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SessionStatsCall {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    model: Option<ModelName>,
}

pub(super) fn session_stats(call: Call, given: SessionStatsCall) -> Result<Step, WireError> {
    if let Some(messages) = given.messages {
        return history_stats(&call, messages, given.model);
    }
    Step::state(move |engine| {
        let (session, model) = (given.session.as_deref(), given.model.as_deref());
        let row = engine.find_session(session)?;
        let context = call.tools.providers.context_of(engine, row, model)?;
        let SessionContext { row, costs, .. } = context;
        let stats = engine.session_stats(row.id, &costs)?;
        let session = engine.session(row.id)?;
        let state = session.state();
        let summary = state.summary.as_ref();
        Ok(Value::of(&SessionStats {
            session: &row.name,
            stats,
            log: session.length(),
            turns: session.turns(),
            pruned: state.pruned.len(),
            summarized: summary.map_or(0, |summary| summary.covers.len()),
            summaries: state.summaries,
            summary: summary.map(|summary| &*summary.text),
            pinned: state.pinned.len(),
            revision: session.revision(),
        }))
    })
}

/// The figures of a session's view.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SessionStats")]
pub(super) struct SessionStats<'a> {
    /// Name of the session.
    session: &'a str,
    #[serde(flatten)]
    stats: HistoryStats,
    /// Number of messages in the log.
    log: u64,
    /// Number of turns in the conversation, without those that were rolled back; `list-sessions`
    /// counts the turns of the log.
    turns: u64,
    /// Number of pruned messages.
    pruned: u64,
    /// Number of messages that the summary replaces.
    summarized: u64,
    /// Number of summaries made.
    summaries: u64,
    /// Summary in view; `nil` if there is none.
    summary: Option<&'a str>,
    /// Number of pinned messages.
    pinned: u64,
    /// Number of the newest revision of the view.
    revision: u64,
}
