//! The method that prunes a session or a history.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::history::{MessagesOrIds, PruneFigures, prune_history};
use super::messages::{HISTORY, MessageParam};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::undo::stepping;
use crate::engine::{Engine, EngineError};
use crate::session::message::Message;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PruneSession {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    /// Maximum number of tokens to keep; defaults to what `:if-needed` allows.
    keep_tokens: Option<i64>,
    /// Change nothing unless more than 80 % of the model's limit is used.
    if_needed: Option<bool>,
    model: Option<ModelName>,
    /// Answer with ids in place of messages.
    brief: Option<bool>,
    /// Only report what the call would do; defaults to `nil`.
    dry_run: Option<bool>,
}

pub(super) fn prune_session(call: MethodCall, given: PruneSession) -> Result<Step, WireError> {
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
            removed: MessagesOrIds::of(removed.iter().map(|message| &**message), brief),
            stats: PruneFigures::of(done.original, done.remaining, count, done.kept),
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
    removed: MessagesOrIds<'a>,
    /// Figures from before and after the pruning.
    stats: PruneFigures,
    /// Number of memories made from the pruned messages.
    archived: u64,
}
