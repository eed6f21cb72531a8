//! The method that reports on a session: its size, its quality, and the windows that were built.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::history::history_stats;
use super::messages::{HISTORY, MessageParam};
use super::params::{InSession, ModelName, given_list, not_negative};
use super::present::{Decided, verdicts};
use super::report::{PhaseResult, UsageResult, WindowReport};
use super::turn::{QualityPartResult, parts};
use crate::curation::prune::HistoryStats;
use crate::engine::quality_parts;
use crate::session::message::Phase;
use crate::store::session::Spent;
use crate::value::Value;
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReportCall {
    session: Option<InSession>,
    #[schemars(description = HISTORY)]
    #[serde(default, deserialize_with = "given_list")]
    messages: Option<Vec<MessageParam>>,
    model: Option<ModelName>,
    /// Only rate the quality of the session's context, from 0 to 1.
    quality_only: Option<bool>,
    /// Number of the latest windows to list with their tokens, and with the usage that models
    /// reported. With this parameter, the totals by phase are there, too.
    windows: Option<i64>,
    /// List only windows of this phase of the work.
    phase: Option<Phase>,
    /// Number of the latest windows to explain. The server keeps only the reports of the last 64
    /// windows that it built, over all sessions, and loses them when it ends.
    reports: Option<i64>,
    /// Explain each part with its score, and do not group similar parts.
    explain: Option<bool>,
}

pub(super) fn session_report(call: MethodCall, given: ReportCall) -> Result<Step, WireError> {
    if let Some(messages) = given.messages {
        return history_stats(&call, messages, given.model);
    }
    let listed: Option<u64> = not_negative("windows", given.windows)?;
    let explained: Option<usize> = not_negative("reports", given.reports)?;
    let whole = given.explain.unwrap_or(false);
    Step::state(move |engine| {
        let (session, model) = (given.session.as_deref(), given.model.as_deref());
        let row = engine.find_session(session)?;
        let context = call.tools.providers.turn_context(engine, row, model)?;
        let (id, name) = (context.row.id, &*context.row.name);
        if given.quality_only.unwrap_or(false) {
            let quality = engine.quality_score(&context)?;
            let all = quality_parts(&quality);
            let (quality_score, quality) = (quality.score, parts(&all));
            return Ok(Value::of(&QualityResult { session: name, quality_score, quality }));
        }
        let usage = listed.map(|limit| {
            let of = Some(id);
            let mut rows = engine.read().usage(of, given.phase, limit)?;
            let unpriced = |spent: &&mut Spent| spent.provider.is_empty() && spent.cost.is_none();
            for spent in rows.iter_mut().filter_map(|row| row.spent.as_mut()).filter(unpriced) {
                // No provider of ours was asked. Agents tell their models and tokens, but seldom
                // prices.
                let (input, output) = (spent.input, spent.output);
                spent.cost = call.tools.providers.list_cost(&spent.model, input, output);
            }
            Ok::<_, crate::engine::EngineError>((rows, engine.read().usage_by_phase(of)?))
        });
        let usage = usage.transpose()?;
        let noted = explained.map(|most| {
            let mut latest = engine.windows(id);
            latest.truncate(most);
            latest.reverse();
            latest
        });
        let stats = engine.session_stats(id, &context.costs)?;
        let session = engine.session(id)?;
        let state = session.state();
        let summary = state.summary.as_ref();
        Ok(Value::of(&SessionReport {
            session: name,
            stats,
            log: session.length(),
            turns: session.turns(),
            pruned: state.pruned.len(),
            summarized: summary.map_or(0, |summary| summary.covers.len()),
            summaries: state.summaries,
            summary: summary.map(|summary| &*summary.text),
            pinned: state.pinned.len(),
            revision: session.revision(),
            factor: listed.map(|_| context.costs.measure.factor()),
            overhead: listed.map(|_| context.costs.measure.overhead()),
            windows: usage.as_ref().map(|(rows, _)| rows.iter().map(UsageResult::of).collect()),
            phases: usage.as_ref().map(|(_, sums)| sums.iter().map(PhaseResult::of).collect()),
            reports: noted.as_deref().map(|noted| {
                let reports = noted.iter().map(|noted| EarlierReport {
                    at: noted.at,
                    report: WindowReport::of(&noted.report, whole),
                    items: verdicts(&noted.items),
                });
                reports.collect()
            }),
        }))
    })
}

/// The figures of a session's view, and what else the call asks for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SessionReport")]
pub(super) struct SessionReport<'a> {
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
    /// Factor by which windows multiply the tokens of a message, rounded up; only with `:windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<f64>,
    /// Tokens that windows add for each message; only with `:windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    overhead: Option<u64>,
    /// The latest windows, newest last; only with `:windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    windows: Option<Vec<UsageResult<'a>>>,
    /// Totals over all windows of the session, by phase; only with `:windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    phases: Option<Vec<PhaseResult<'a>>>,
    /// Why each part of the latest windows is in or out, newest last; only with `:reports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reports: Option<Vec<EarlierReport<'a>>>,
}

/// The quality of a session's context.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Quality")]
pub(super) struct QualityResult<'a> {
    /// Name of the session.
    session: &'a str,
    /// Quality from 0 to 1.
    quality_score: f64,
    /// Parts of the quality.
    quality: Vec<QualityPartResult<'a>>,
}

/// A report of an earlier window.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ExplainedWindow")]
struct EarlierReport<'a> {
    /// Time at which the window was built, in Unix seconds.
    at: i64,
    #[serde(flatten)]
    report: WindowReport<'a>,
    /// Outcome for each item.
    items: Vec<Decided>,
}
