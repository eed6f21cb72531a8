//! Methods that prune and summarize: a session, or a history that a client keeps itself.

use std::sync::Arc;

use serde::Deserialize;

use super::call::Call;
use super::error::{engine_error, param_error};
use super::messages::{MessageParam, counted, names};
use super::params::{Name, RequestKey, decode, not_negative};
use super::present::{self, entry, figure, keyword};
use super::{Finish, Step, report};
use crate::curation::prune::{HistoryStats, Pruned, SUMMARIZED_BUT, auto_manage, prune, stats};
use crate::curation::strategy::Fate;
use crate::curation::summary::{
    Ahead, Extractive, Prepared, Source, folding, folding_messages, summarize,
};
use crate::curation::unit::History;
use crate::engine::{Costs, Engine, EngineError, Keep, NewMessage, PrunedView, SessionSettings};
use crate::ids::MemoryId;
use crate::session::message::{Message, Signals};
use crate::value::Value;
use crate::wire::message::WireError;

/// The share of what a history has, in tokens, that the ledger of its summary may have.
const LEDGER_SHARE: f64 = 0.2;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Prune {
    session: Option<Name>,
    messages: Option<Vec<MessageParam>>,
    max_tokens: Option<i64>,
    model: Option<String>,
    brief: Option<bool>,
    request_key: Option<RequestKey>,
}

pub(super) fn prune_context(call: Call, params: Value) -> Result<Step, WireError> {
    let given: Prune = decode(params)?;
    let max_tokens = not_negative("max-tokens", given.max_tokens)?;
    prune_by(
        "prune-context",
        call,
        given,
        move |engine, id, costs| engine.prune_session(id, max_tokens, costs, "prune-context"),
        move |history, costs| prune(history, max_tokens, &costs.model),
    )
}

pub(super) fn auto_manage_context(call: Call, params: Value) -> Result<Step, WireError> {
    let AutoManage { session, messages, model, brief, request_key } = decode(params)?;
    let given = Prune { session, messages, max_tokens: None, model, brief, request_key };
    prune_by(
        "auto-manage-context",
        call,
        given,
        |engine, id, costs| engine.auto_manage_session(id, costs),
        |history, costs| auto_manage(history, &costs.model),
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AutoManage {
    session: Option<Name>,
    messages: Option<Vec<MessageParam>>,
    model: Option<String>,
    brief: Option<bool>,
    request_key: Option<RequestKey>,
}

/// Prunes the session by `of_session`, or the messages that were given by `of_history`.
fn prune_by(
    method: &'static str,
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
    let Prune { session, messages, model, brief, request_key, .. } = given;
    let brief = brief.unwrap_or(false);
    if let Some(messages) = messages {
        not_beside_session(session.as_ref())?;
        let messages = history(counted(messages, &call.counter())?);
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
        let (session, key) = (session.as_deref(), request_key.as_deref());
        let (row, done) = engine.once_in(method, key, session, |engine, row| {
            let costs = session_costs(engine, &row.settings, model.as_deref())?;
            of_session(engine, row.id, &costs)
        })?;
        let removed = messages_of(engine, row.id, &done.removed)?;
        let mut map = vec![entry("session", row.name)];
        map.push(entry("removed", told(&removed, brief)));
        map.push(entry(
            "stats",
            prune_stats(done.original, done.remaining, done.removed.len() as u64, done.kept),
        ));
        map.push(entry("archived", figure(done.archived)));
        Ok(Value::Map(map))
    })
}

/// What things cost for a session's model, unless another is named.
pub(super) fn session_costs(
    engine: &mut Engine,
    settings: &str,
    model: Option<&str>,
) -> Result<Costs, EngineError> {
    let settings = SessionSettings::parse(settings)?;
    engine.costs(model.or(settings.model.as_deref()))
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

fn told<M: std::ops::Deref<Target = Message>>(messages: &[M], brief: bool) -> Value {
    match brief {
        true => names(&messages.iter().map(|message| message.number).collect::<Vec<_>>()),
        false => Value::List(messages.iter().map(|message| present::message(message)).collect()),
    }
}

fn pruned_history(history: &History<'_>, pruned: &Pruned, brief: bool) -> Value {
    let of = |numbers: &[u64]| -> Vec<&Message> {
        let wanted = |message: &&&Message| numbers.binary_search(&message.number).is_ok();
        history.messages.iter().filter(wanted).copied().collect()
    };
    let units = history.units.iter().zip(&pruned.verdicts).map(|(unit, verdict)| {
        let numbers: Vec<u64> = history.members(unit).map(|message| message.number).collect();
        let fate = if verdict.fate == Fate::Dropped { "dropped" } else { "kept" };
        let mut map = vec![
            entry("ids", names(&numbers)),
            entry("fate", keyword(fate)),
            entry("reason", verdict.reason),
            entry("tokens", figure(unit.tokens)),
        ];
        map.extend(verdict.score.as_ref().map(|score| entry("score", report::scored(score))));
        Value::Map(map)
    });
    let figures = &pruned.stats;
    Value::Map(vec![
        entry("pruned", told(&of(&pruned.kept), brief)),
        entry("removed", told(&of(&pruned.removed), brief)),
        entry(
            "stats",
            prune_stats(
                figures.original,
                figures.remaining,
                figures.items_removed,
                figures.items_kept,
            ),
        ),
        entry("units", Value::List(units.collect())),
    ])
}

fn prune_stats(original: u64, remaining: u64, removed: u64, kept: u64) -> Value {
    Value::Map(vec![
        entry("original", figure(original)),
        entry("final", figure(remaining)),
        entry("token-reduction", figure(original.saturating_sub(remaining))),
        entry("items-removed", figure(removed)),
        entry("items-kept", figure(kept)),
    ])
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct StatsOf {
    session: Option<Name>,
    messages: Option<Vec<MessageParam>>,
    model: Option<String>,
}

pub(super) fn context_stats(call: Call, params: Value) -> Result<Step, WireError> {
    let given: StatsOf = decode(params)?;
    if let Some(messages) = given.messages {
        not_beside_session(given.session.as_ref())?;
        let messages = history(counted(messages, &call.counter())?);
        return Step::state(move |engine| {
            let costs = engine.costs(given.model.as_deref())?;
            let history = History::new(messages.iter().collect(), &costs.measure);
            Ok(Value::Map(stats_map(&stats(&history, &costs.model), &costs)))
        });
    }
    Step::state(move |engine| {
        let row = engine.find_session(given.session.as_deref())?;
        let costs = session_costs(engine, &row.settings, given.model.as_deref())?;
        let mut map = vec![entry("session", &*row.name)];
        map.extend(stats_map(&engine.session_stats(row.id, &costs)?, &costs));
        let session = engine.session(row.id)?;
        let state = session.state();
        let summary = state.summary.as_ref();
        let summarized = summary.map_or(0, |summary| summary.covers.len());
        map.extend([
            entry("log", figure(session.length())),
            entry("turns", figure(session.turns())),
            entry("pruned", figure(state.pruned.len())),
            entry("summarized", figure(summarized)),
            entry("summaries", figure(state.summaries)),
            entry("summary", summary.map_or(Value::Nil, |summary| Value::from(&*summary.text))),
            entry("pinned", figure(state.pinned.len())),
            entry("revision", figure(session.revision())),
        ]);
        Ok(Value::Map(map))
    })
}

fn stats_map(stats: &HistoryStats, costs: &Costs) -> Vec<(Box<str>, Value)> {
    vec![
        entry("items", figure(stats.items)),
        entry("tokens", figure(stats.tokens)),
        entry("limit", figure(stats.limit)),
        entry("utilization-percent", stats.utilization_percent),
        entry("needs-pruning", stats.needs_pruning),
        entry("model", &*costs.model.name),
        entry("model-known", costs.model.known),
        entry("exact", stats.exact),
    ]
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SummarizeContext {
    session: Option<Name>,
    messages: Option<Vec<MessageParam>>,
    max_items: Option<i64>,
    keep_turns: Option<i64>,
    model: Option<String>,
    request_key: Option<RequestKey>,
}

pub(super) fn summarize_context(call: Call, params: Value) -> Result<Step, WireError> {
    let given: SummarizeContext = decode(params)?;
    let items = not_negative("max-items", given.max_items)?;
    let turns = not_negative("keep-turns", given.keep_turns)?;
    if items.is_some() && turns.is_some() {
        return Err(param_error("keep-turns", "cannot be given beside max-items"));
    }
    let keep = turns.map_or(Keep::Messages(items.unwrap_or(SUMMARIZED_BUT)), Keep::Turns);
    if let Some(messages) = given.messages {
        not_beside_session(given.session.as_ref())?;
        let messages = history(counted(messages, &call.counter())?);
        return Step::then(move |engine| {
            let costs = engine.costs(given.model.as_deref())?;
            Ok(Finish::Later(Box::new(move || summarize_history(&messages, keep, &costs))))
        });
    }
    let (session, model) = (given.session.clone(), given.model.clone());
    let ahead = move |engine: &mut Engine| {
        let row = engine.find_session(session.as_deref())?;
        let costs = session_costs(engine, &row.settings, model.as_deref())?;
        let max_tokens = SessionSettings::parse(&row.settings)?.turn.max_tokens;
        engine.summary_ahead(row.id, keep, max_tokens, &costs)
    };
    prepared(&call, ahead, move |prepared| summarize_session(given, keep, prepared))
}

/// Makes what a long summary needs beside the engine, and goes on with it. A summary for which that
/// does not fit, because the session changed since, is made without.
pub(super) fn prepared(
    call: &Call,
    ahead: impl FnOnce(&mut Engine) -> Result<Option<Ahead>, EngineError> + Send + 'static,
    then: impl FnOnce(Prepared) -> Result<Step, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let engine = call.tools.engine.clone();
    Ok(Step::Await(Box::pin(async move {
        // What is wrong, the call itself says.
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
        let (session, key) = (given.session.as_deref(), given.request_key.as_deref());
        let (row, done) = engine.once_in("summarize-context", key, session, |engine, row| {
            let costs = session_costs(engine, &row.settings, given.model.as_deref())?;
            let max_tokens = SessionSettings::parse(&row.settings)?.turn.max_tokens;
            engine.summarize_session(row.id, keep, max_tokens, &costs, &prepared)
        })?;
        Ok(Value::Map(vec![
            entry("session", row.name),
            entry("tokens-before", figure(done.tokens_before)),
            entry("tokens-after", figure(done.tokens_after)),
            entry("turns-summarized", figure(done.turns)),
            entry("stats", summary_stats(done.messages, done.kept)),
            entry("summary", done.text),
            entry("memory", done.memory.map_or(Value::Nil, |id| MemoryId(id).into())),
        ]))
    })
}

/// A history is no session's: whoever names one beside it means something else.
fn not_beside_session(session: Option<&Name>) -> Result<(), WireError> {
    match session {
        None => Ok(()),
        Some(_) => Err(param_error("messages", "cannot be given beside session")),
    }
}

fn summarize_history(messages: &[Message], keep: Keep, costs: &Costs) -> Result<Value, WireError> {
    let history = History::new(messages.iter().collect(), &costs.measure);
    let folding = match keep {
        Keep::Messages(count) => folding_messages(&history, count),
        Keep::Turns(count) => folding(&history, count),
    };
    let folded = folding.messages(&history);
    let source = Source {
        prior: None,
        messages: &folded,
        turns: folding.turns,
        measure: &costs.measure,
        ledger_tokens: (history.tokens() as f64 * LEDGER_SHARE) as u64,
    };
    let summary = summarize(&source, &Extractive)
        .map_err(|error| engine_error(EngineError::NotSummarized(error)))?;
    let text = summary.render();
    let stays = |message: &&&Message| {
        folded.binary_search_by_key(&message.number, |folded| folded.number).is_err()
    };
    let kept: Vec<&Message> = history.messages.iter().filter(stays).copied().collect();
    let note = Value::Map(vec![
        entry("role", keyword("system")),
        entry("content", &*text),
        entry("tokens", figure(costs.measure.note(&text))),
    ]);
    // The note stands behind the system prompts, before what comes after them.
    let prompts = kept
        .iter()
        .take_while(|message| message.role == crate::session::message::Role::System)
        .count();
    let mut shown: Vec<Value> = kept.iter().map(|message| present::message(message)).collect();
    shown.insert(prompts, note.clone());
    Ok(Value::Map(vec![
        entry("summarized", Value::List(shown)),
        entry("summary", note),
        entry("stats", summary_stats(folded.len() as u64, kept.len() as u64)),
    ]))
}

fn summary_stats(summarized: u64, kept: u64) -> Value {
    Value::Map(vec![
        entry("summarized-items", figure(summarized)),
        entry("kept-items", figure(kept)),
    ])
}

/// A client's own history as messages, numbered from 1.
fn history(new: Vec<NewMessage>) -> Vec<Message> {
    let message = |(number, new): (u64, NewMessage)| Message {
        number,
        signals: Signals::of(new.role, &new.content, &new.tool_calls),
        role: new.role,
        content: new.content,
        timestamp: new.timestamp.unwrap_or_default(),
        phase: new.phase,
        tool_calls: new.tool_calls,
        tool_call_id: new.tool_call_id,
        pinned: new.pinned,
        tokens: new.tokens,
        counted_by: new.counted_by,
    };
    (1..).zip(new).map(message).collect()
}
