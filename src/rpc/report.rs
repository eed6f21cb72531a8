//! Results about windows: their reports, and the usage log.

use schemars::JsonSchema;
use serde::Serialize;

use super::present::Money;
use crate::curation::report::{Entry, Report, ReportPart, Run, SectionTokens, SentCount, Stable};
use crate::curation::section::Section;
use crate::curation::strategy::{Fate, Score};
use crate::ids::{MessageId, SessionId};
use crate::session::message::Phase;
use crate::store::session::{PhaseUsage, Spent, UsageRow};
use crate::value::{Keyword, Value};

/// The report of a window. Without `:explain`, it groups similar neighbours among the parts.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WindowReport")]
pub(super) struct WindowReport<'a> {
    /// Strategy that chose the messages.
    strategy: Keyword<&'a str>,
    /// Phase for which the sections were chosen.
    phase: Option<Phase>,
    /// Maximum number of tokens in the window.
    max_tokens: u64,
    /// Tokens of everything that was offered.
    tokens_before: u64,
    /// Tokens of the window.
    tokens_after: u64,
    /// True if the counts are the model's own rather than estimates.
    exact: bool,
    /// How many of the messages are in the window.
    messages: SentCount,
    /// Tokens of each section, in order. Sections for which nothing was offered are not listed.
    sections: &'a [SectionTokens],
    /// Sections that the phase requires and the window lacks.
    missing: &'a [Section],
    /// Outcome of each part, in the window or left out; similar neighbours are grouped, unless the
    /// call has `:explain`.
    parts: Vec<WindowPart<'a>>,
    /// Comparison with the previous window; absent for the first window.
    #[serde(skip_serializing_if = "Option::is_none")]
    stable: Option<Stable>,
}

/// A part of a window, or a run of parts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReportPart")]
struct WindowPart<'a> {
    /// Section of the part.
    section: Section,
    /// Name of the part: `msg-3`, `msg-3…msg-5`, `note`, or the name of a section or of a unit of
    /// code.
    what: String,
    /// Outcome of the part.
    fate: Fate,
    /// Reason for the outcome.
    reason: &'a str,
    /// Number of parts in a run, 1 for a single part; absent with `:explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<u64>,
    /// Tokens of the whole part; 0 for a note that replaces messages.
    before: u64,
    /// Tokens of the part in the window. Lines that a note has of messages count for the messages,
    /// not for the note.
    after: u64,
    /// Lowest score in a run; absent if there are no scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_score: Option<f64>,
    /// Highest score in a run; absent if there are no scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    highest_score: Option<f64>,
    /// Ids of the messages; only with `:explain`, and if the part consists of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<MessageId>>,
    /// Score; only with `:explain`, and if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<ScoreResult>,
}

/// A score with its parts.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Score")]
pub(super) struct ScoreResult {
    /// Sum of the parts.
    total: f64,
    /// Parts of the score, by name.
    #[schemars(with = "std::collections::BTreeMap<String, f64>")]
    parts: Value,
}

impl<'a> WindowReport<'a> {
    pub(super) fn of(report: &'a Report, is_whole: bool) -> Self {
        let parts = match is_whole {
            true => report.entries.iter().map(part).collect(),
            false => report.condensed().into_iter().map(run).collect(),
        };
        Self {
            strategy: Keyword(report.strategy),
            phase: report.phase,
            max_tokens: report.max_tokens,
            tokens_before: report.tokens_before,
            tokens_after: report.tokens_after,
            exact: report.exact,
            messages: report.messages,
            sections: &report.sections,
            missing: &report.missing,
            parts,
            stable: report.stable,
        }
    }
}

fn part(part: &Entry) -> WindowPart<'_> {
    let ids = match &part.what {
        ReportPart::Messages(numbers) => Some(MessageId::all(numbers)),
        _ => None,
    };
    WindowPart {
        section: part.section,
        what: part.what.label(part.section),
        fate: part.fate,
        reason: part.reason,
        units: None,
        before: part.before,
        after: part.after,
        lowest_score: None,
        highest_score: None,
        ids,
        score: part.score.as_ref().map(ScoreResult::of),
    }
}

fn run<'a>(run: Run) -> WindowPart<'a> {
    let (lowest_score, highest_score) = run.scores.unzip();
    WindowPart {
        section: run.section,
        what: run.label,
        fate: run.fate,
        reason: run.reason,
        units: Some(run.units),
        before: run.before,
        after: run.after,
        lowest_score,
        highest_score,
        ids: None,
        score: None,
    }
}

impl ScoreResult {
    pub(super) fn of(score: &Score) -> Self {
        let parts = score.parts.iter().map(|(name, value)| ((*name).into(), Value::from(*value)));
        Self { total: score.total, parts: Value::Map(parts.collect()) }
    }
}

/// A line of the usage log.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WindowUsage")]
pub(super) struct UsageResult<'a> {
    /// Id of the session; `nil` for a window without a session.
    session: Option<SessionId>,
    /// Time at which the window was built, in Unix seconds.
    at: i64,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Strategy that chose the messages.
    strategy: Keyword<&'a str>,
    #[serde(flatten)]
    tokens: &'a UsageRow,
    #[serde(flatten)]
    spent: Option<SpentResult<'a>>,
}

/// The cost of asking a model. Values that the provider did not report are `nil`.
#[derive(Serialize, JsonSchema)]
struct SpentResult<'a> {
    /// Provider that was asked; empty if an agent asked. Only if a model was asked with the window.
    provider: &'a str,
    /// Model that was asked; only if a model was asked with the window.
    model: &'a str,
    /// Input tokens as counted by the provider, `nil` if unknown; only if a model was asked.
    input: Option<u64>,
    /// Output tokens as counted by the provider, `nil` if unknown; only if a model was asked.
    output: Option<u64>,
    /// Part of the input tokens that came from a cache, `nil` if unknown; only if a model was
    /// asked.
    cached: Option<u64>,
    /// Cost in US dollars by the prices that are configured for the model, or as the agent reported
    /// it; `nil` if unknown. Cached input has the price of other input. Only if a model was asked.
    cost: Option<Money>,
}

impl<'a> UsageResult<'a> {
    pub(super) fn of(row: &'a UsageRow) -> Self {
        Self {
            session: row.session.map(SessionId),
            at: row.at,
            phase: row.phase,
            strategy: Keyword(&row.strategy),
            tokens: row,
            spent: row.spent.as_ref().map(spent),
        }
    }
}

fn spent(spent: &Spent) -> SpentResult<'_> {
    SpentResult {
        provider: &spent.provider,
        model: &spent.model,
        input: spent.input,
        output: spent.output,
        cached: spent.cached,
        cost: spent.cost.map(Money),
    }
}

/// The totals over the windows of one phase.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PhaseUsage")]
pub(super) struct PhaseResult<'a> {
    #[serde(flatten)]
    sums: &'a PhaseUsage,
    /// Total cost of the windows that `:priced` counts; `nil` if `:priced` is 0.
    cost: Option<Money>,
}

impl<'a> PhaseResult<'a> {
    pub(super) fn of(sums: &'a PhaseUsage) -> Self {
        // Without a price, the cost is unknown and not 0.
        Self { sums, cost: (sums.priced > 0).then_some(Money(sums.cost)) }
    }
}
