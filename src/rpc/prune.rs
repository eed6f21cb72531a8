//! Methods that prune and measure a session.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::Call;
use super::context::edit::stepping;
use super::params::{InSession, ModelName, not_negative};
use super::present::MessageShown;
use crate::curation::prune::HistoryStats;
use crate::engine::{Engine, EngineError, SessionContext};
use crate::ids::MessageId;
use crate::session::message::Message;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PruneSession {
    session: Option<InSession>,
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

/// Messages, or only their ids.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum Told<'a> {
    Ids(Vec<MessageId>),
    Messages(Vec<MessageShown<'a>>),
}

impl<'a> Told<'a> {
    pub(super) fn of(messages: impl Iterator<Item = &'a Message>, brief: bool) -> Self {
        match brief {
            true => Self::Ids(messages.map(|message| MessageId(message.number)).collect()),
            false => Self::Messages(messages.map(MessageShown::from).collect()),
        }
    }
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

/// The figures of a pruning.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PruneStats")]
pub(super) struct PruneStats {
    /// Tokens before.
    original: u64,
    /// Tokens after.
    r#final: u64,
    /// Number of tokens saved: `:original` minus `:final`.
    token_reduction: u64,
    /// Number of messages removed.
    items_removed: u64,
    /// Number of messages kept.
    items_kept: u64,
}

impl PruneStats {
    pub(super) fn of(original: u64, r#final: u64, items_removed: u64, items_kept: u64) -> Self {
        let token_reduction = original.saturating_sub(r#final);
        Self { original, r#final, token_reduction, items_removed, items_kept }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SessionForModel {
    pub(super) session: Option<InSession>,
    pub(super) model: Option<ModelName>,
}

pub(super) fn session_stats(call: Call, given: SessionForModel) -> Result<Step, WireError> {
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
