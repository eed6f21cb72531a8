//! The results about windows: their reports, and the usage log.

use serde::Serialize;

use super::present::money;
use crate::context::render::report::ItemVerdict;
use crate::curation::report::{Entry, Report, Run, SectionTokens, Stable, What};
use crate::curation::section::Section;
use crate::curation::strategy::{Fate, Score};
use crate::ids::{MessageId, SessionId};
use crate::session::message::Phase;
use crate::store::session::{PhaseUsage, Spent, UsageRow};
use crate::value::{Keyword, Value};

/// The report of a window, with all its parts, or with neighbours of the same fate on one line.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct WindowReport<'a> {
    strategy: Keyword<&'a str>,
    phase: Option<Phase>,
    max_tokens: u64,
    tokens_before: u64,
    tokens_after: u64,
    exact: bool,
    sections: &'a [SectionTokens],
    missing: &'a [Section],
    parts: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stable: Option<Stable>,
}

/// A part of a window, or a run of parts.
#[derive(Serialize)]
struct Part<'a> {
    section: Section,
    what: String,
    fate: Keyword<&'static str>,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<u64>,
    before: u64,
    after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    highest_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Vec<MessageId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<ScoreResult>,
}

/// A score with its parts.
#[derive(Serialize)]
pub(super) struct ScoreResult {
    total: f64,
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
            sections: &report.sections,
            missing: &report.missing,
            parts,
            stable: report.stable,
        }
    }
}

fn part(part: &Entry) -> Part<'_> {
    let ids = match &part.what {
        What::Messages(numbers) => Some(MessageId::all(numbers)),
        _ => None,
    };
    Part {
        section: part.section,
        what: part.what.label(part.section),
        fate: fate(part.fate),
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

fn run<'a>(run: Run) -> Part<'a> {
    let (lowest_score, highest_score) = run.scores.unzip();
    Part {
        section: run.section,
        what: run.label,
        fate: fate(run.fate),
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

fn fate(fate: Fate) -> Keyword<&'static str> {
    Keyword(match fate {
        Fate::Kept => "kept",
        Fate::Shortened => "shortened",
        Fate::Dropped => "dropped",
    })
}

/// Returns the outcomes of items in the form for clients.
pub(super) fn verdicts(items: &[ItemVerdict]) -> Vec<Value> {
    items.iter().map(super::present::verdict).collect()
}

/// A line of the usage log.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct UsageResult<'a> {
    session: Option<SessionId>,
    at: i64,
    phase: Option<Phase>,
    strategy: Keyword<&'a str>,
    #[serde(flatten)]
    tokens: &'a UsageRow,
    #[serde(flatten)]
    spent: Option<SpentResult<'a>>,
}

/// The cost of asking a model. Values that the provider did not report are nil.
#[derive(Serialize)]
struct SpentResult<'a> {
    provider: &'a str,
    model: &'a str,
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    cost: Option<Value>,
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
        cost: spent.cost.map(money),
    }
}

/// A line of the usage by phase.
#[derive(Serialize)]
pub(super) struct PhaseResult<'a> {
    #[serde(flatten)]
    sums: &'a PhaseUsage,
    cost: Option<Value>,
}

impl<'a> PhaseResult<'a> {
    pub(super) fn of(sums: &'a PhaseUsage) -> Self {
        // Without a price, the cost is unknown and not 0.
        Self { sums, cost: (sums.priced > 0).then(|| money(sums.cost)) }
    }
}
