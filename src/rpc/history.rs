//! Methods that prune and measure a session, or a client's own history.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::error::{engine_error, param_error};
use super::messages::{HISTORY, MessageParam, counted};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::present::MessageShown;
use super::report::ScoreResult;
use super::shapes::Either;
use super::{Finish, Step};
use crate::agent::history;
use crate::curation::prune::{
    HistoryStats, PruneStats as PruneFigures, Pruned, auto_manage, prune, stats,
};
use crate::curation::strategy::Fate;
use crate::curation::unit::History;
use crate::engine::{Costs, Engine, EngineError, PrunedView, SessionContext};
use crate::ids::MessageId;
use crate::session::message::Message;
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// The result of pruning a session or a history.
pub(super) type PruneResult = Either<PrunedSession<'static>, PrunedHistory<'static>>;

/// The figures of a session or a history.
pub(super) type Stats = Either<SessionStats<'static>, HistoryStats>;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Prune {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    /// Target size; defaults to 80 % of the model's limit.
    max_tokens: Option<i64>,
    model: Option<ModelName>,
    /// Answer with ids in place of messages.
    brief: Option<bool>,
}

pub(super) fn prune_context(call: Call, given: Prune) -> Result<Step, WireError> {
    let max_tokens = not_negative("max-tokens", given.max_tokens)?;
    prune_by(
        call,
        given,
        move |engine, id, costs| engine.prune_session(id, max_tokens, costs, "prune-context"),
        move |history, costs| prune(history, max_tokens, &costs.model),
    )
}

pub(super) fn auto_manage_context(call: Call, given: AutoManage) -> Result<Step, WireError> {
    let AutoManage { session, messages, model, brief } = given;
    let given = Prune { session, messages, max_tokens: None, model, brief };
    prune_by(
        call,
        given,
        |engine, id, costs| engine.auto_manage_session(id, costs),
        |history, costs| auto_manage(history, &costs.model),
    )
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AutoManage {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    model: Option<ModelName>,
    /// Answer with ids in place of messages.
    brief: Option<bool>,
}

/// Prunes the session with `of_session`, or the given messages with `of_history`.
fn prune_by(
    call: Call,
    given: Prune,
    of_session: impl FnOnce(&mut Engine, u64, &Costs) -> Result<PrunedView, EngineError>
    + Send
    + 'static,
    of_history: impl FnOnce(
        &History<'_>,
        &Costs,
    ) -> Result<Pruned, crate::curation::budget::BudgetTooSmall>
    + Send
    + 'static,
) -> Result<Step, WireError> {
    let Prune { session, messages, model, brief, .. } = given;
    let brief = brief.unwrap_or(false);
    if let Some(messages) = messages {
        not_beside_session(&session)?;
        let messages = history::messages(counted(messages, &call.counter())?);
        return Step::then(move |engine| {
            let costs = engine.costs(model.as_deref())?;
            Ok(Finish::Later(Box::new(move || {
                let history = History::new(messages.iter().collect(), &costs.measure);
                let pruned = of_history(&history, &costs);
                let pruned = pruned.map_err(|error| engine_error(EngineError::from(error)))?;
                Ok(pruned_history(&history, &pruned, brief))
            })))
        });
    }
    Step::state(move |engine| {
        let (row, done) = engine.in_session(session.as_deref(), |engine, row| {
            let context = engine.context_of(row.clone(), model.as_deref())?;
            of_session(engine, row.id, &context.costs)
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
enum Told<'a> {
    Ids(Vec<MessageId>),
    Messages(Vec<MessageShown<'a>>),
}

impl<'a> Told<'a> {
    fn of(messages: impl Iterator<Item = &'a Message>, brief: bool) -> Self {
        match brief {
            true => Self::Ids(messages.map(|message| MessageId(message.number)).collect()),
            false => Self::Messages(messages.map(MessageShown::from).collect()),
        }
    }
}

fn pruned_history(history: &History<'_>, pruned: &Pruned, brief: bool) -> Value {
    let of = |numbers: &[u64]| -> Vec<&Message> {
        let wanted = |message: &&&Message| numbers.binary_search(&message.number).is_ok();
        history.messages.iter().filter(wanted).copied().collect()
    };
    let units = history.units.iter().zip(&pruned.verdicts).map(|(unit, verdict)| {
        let numbers: Vec<u64> = history.members(unit).map(|message| message.number).collect();
        UnitResult {
            ids: MessageId::all(&numbers),
            fate: Keyword(if verdict.fate == Fate::Dropped { "dropped" } else { "kept" }),
            reason: verdict.reason,
            tokens: unit.tokens,
            score: verdict.score.as_ref().map(ScoreResult::of),
        }
    });
    let PruneFigures { original, remaining, items_removed, items_kept } = pruned.stats;
    Value::of(&PrunedHistory {
        pruned: Told::of(of(&pruned.kept).into_iter(), brief),
        removed: Told::of(of(&pruned.removed).into_iter(), brief),
        stats: PruneStats::of(original, remaining, items_removed, items_kept),
        units: units.collect(),
    })
}

/// A pruned session.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedSession")]
pub(super) struct PrunedSession<'a> {
    /// Name of the session.
    session: &'a str,
    /// The pruned messages, or their ids if the call is `:brief`.
    removed: Told<'a>,
    /// Figures before and after.
    stats: PruneStats,
    /// Number of memories made from the pruned messages.
    archived: u64,
}

/// A pruned history of the client's own.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedHistory")]
pub(super) struct PrunedHistory<'a> {
    /// The remaining messages, or their ids if the call is `:brief`.
    pruned: Told<'a>,
    /// The pruned messages, or their ids.
    removed: Told<'a>,
    /// Figures before and after.
    stats: PruneStats,
    /// Outcome for each unit: messages that belong together.
    units: Vec<UnitResult<'a>>,
}

/// The outcome for messages that belong together.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedUnit")]
struct UnitResult<'a> {
    /// Ids of the messages.
    ids: Vec<MessageId>,
    /// Outcome for the messages.
    #[schemars(extend("enum" = ["kept", "dropped"]))]
    fate: Keyword<&'static str>,
    /// Reason for the outcome.
    reason: &'a str,
    /// Tokens of the messages.
    tokens: u64,
    /// Score; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<ScoreResult>,
}

/// The figures of a pruning.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PruneStats")]
struct PruneStats {
    /// Tokens before.
    original: u64,
    /// Tokens after.
    r#final: u64,
    /// Difference of the two.
    token_reduction: u64,
    /// Number of messages removed.
    items_removed: u64,
    /// Number of messages kept.
    items_kept: u64,
}

impl PruneStats {
    fn of(original: u64, r#final: u64, items_removed: u64, items_kept: u64) -> Self {
        let token_reduction = original.saturating_sub(r#final);
        Self { original, r#final, token_reduction, items_removed, items_kept }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct StatsOf {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    model: Option<ModelName>,
}

pub(super) fn context_stats(call: Call, given: StatsOf) -> Result<Step, WireError> {
    if let Some(messages) = given.messages {
        not_beside_session(&given.session)?;
        let messages = history::messages(counted(messages, &call.counter())?);
        return Step::state(move |engine| {
            let costs = engine.costs(given.model.as_deref())?;
            let history = History::new(messages.iter().collect(), &costs.measure);
            Ok(Value::of(&stats(&history, &costs.model)))
        });
    }
    Step::state(move |engine| {
        let (session, model) = (given.session.as_deref(), given.model.as_deref());
        let SessionContext { row, costs, .. } = engine.session_context(session, model)?;
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
    /// Number of turns.
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
    /// Number of the revision of the view.
    revision: u64,
}

/// Refuses a session's name together with a history, which belongs to no session.
pub(super) fn not_beside_session(session: &Option<InSession>) -> Result<(), WireError> {
    match session {
        None => Ok(()),
        Some(_) => Err(param_error("messages", "cannot be combined with session")),
    }
}
