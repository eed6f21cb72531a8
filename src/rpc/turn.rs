//! Methods about turns: processing one, and learning from usage reports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;
use super::call::MethodCall;
use super::embedding::embedded;
use super::error::param_error;
use super::messages::MessageParam;
use super::params::{InSession, ModelName, Short, not_negative};
use super::summarize::{SummaryDescription, prepared};
use crate::agent::summary::{Described, DescriptionOutcome};
use crate::agent::{Embedded, Providers};
use crate::engine::{Engine, NewMessage, NewTurn, TurnDone};
use crate::ids::{CheckpointId, MemoryId, MessageId};
use crate::session::message::Phase;
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ProcessTurn {
    session: Option<InSession>,
    /// The user's message.
    content: String,
    /// Phase of the work.
    phase: Option<Phase>,
    /// Quality of the last answer, from 0 to 1.
    coherence: Option<f64>,
    model: Option<ModelName>,
}

pub(super) fn process_turn(call: MethodCall, mut given: ProcessTurn) -> Result<Step, WireError> {
    if let Some(wrong) = given.coherence.filter(|coherence| !(0.0..=1.0).contains(coherence)) {
        return Err(param_error("coherence", &format!("must be from 0 to 1, got {wrong}")));
    }
    let message = MessageParam::of_user(std::mem::take(&mut given.content), given.phase);
    let message = message.counted(&call.counter())?;
    let text = message.content.to_string();
    let after = call.clone();
    embedded(&call, text, move |embedded| {
        let (session, model) = (given.session.clone(), given.model.clone());
        let new = message.clone();
        let providers = after.tools.providers.clone();
        let of_turn = providers.clone();
        let ahead = move |engine: &mut Engine| {
            let row = engine.find_session(session.as_deref())?;
            let context = of_turn.turn_context(engine, row, model.as_deref())?;
            engine.turn_ahead(&context, &new)
        };
        prepared(&after, ahead, move |prepared| turn(providers, given, message, embedded, prepared))
    })
}

fn turn(
    providers: Providers,
    given: ProcessTurn,
    message: NewMessage,
    embedded: Embedded,
    Described { prepared, outcome: description }: Described,
) -> Result<Step, WireError> {
    Step::state(move |engine| {
        let (outcome, vector) = (embedded.outcome(), embedded.vector);
        let session = given.session.as_deref();
        let (row, done) = engine.between_turns(session, |engine, row| {
            let context = providers.turn_context(engine, row.clone(), given.model.as_deref())?;
            let turn =
                NewTurn { method: "process-turn", message, coherence: given.coherence, vector };
            engine.process_turn(&context, turn, &prepared)
        })?;
        let turn = TurnResult::of(&done, description.as_ref(), outcome);
        Ok(Value::of(&ProcessedTurn { session: &row.name, turn }))
    })
}

/// A processed turn, with its session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ProcessedTurn")]
pub(super) struct ProcessedTurn<'a> {
    /// Name of the session.
    session: &'a str,
    #[serde(flatten)]
    turn: TurnResult<'a>,
}

/// The outcome of a turn, as clients get it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Turn")]
pub(super) struct TurnResult<'a> {
    /// Id of the user's message.
    id: MessageId,
    /// Number of turns in the conversation, without those that were rolled back.
    turn: u64,
    /// Ids of the memories that were found, best first.
    grounding_used: Vec<MemoryId>,
    /// Relevance of each memory in `:grounding-used`, from 0 to 1.
    relevance_scores: &'a [f64],
    /// Text of the memories in `:grounding-used`, for the window.
    grounding: &'a str,
    /// True if older messages were summarized.
    summarization_triggered: bool,
    /// Id of the checkpoint that was taken; `nil` if none was taken.
    checkpoint_created: Option<CheckpointId>,
    /// True if the session was rolled back.
    rollback_triggered: bool,
    /// Quality of the context, from 0 to 1.
    quality_score: f64,
    /// Parts of the quality.
    quality: Vec<QualityPartResult<'a>>,
    /// Tokens in view, including the grounding.
    token_count: u64,
    #[serde(flatten)]
    summary: Option<SummaryResult<'a>>,
    /// Reason why a summary that was due was not made; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_summarized: Option<&'a str>,
    #[serde(flatten)]
    rollback: Option<RollbackResult>,
    /// Reason why a rollback that was due was not made; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_rolled_back: Option<&'a str>,
    /// `:used` if the memories were found by their meaning too, or the reason why only words
    /// counted; absent if no embedding model is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "keyword or text"))]
    embedding: Option<Value>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct SummaryResult<'a> {
    /// Tokens in view before the summary; only with a summary.
    tokens_before: u64,
    /// Tokens in view after the summary; only with a summary.
    tokens_after: u64,
    /// Number of turns that the summary replaces; only with a summary.
    turns_summarized: u64,
    /// Text of the summary; only with a summary.
    summary: &'a str,
    /// The description in the summary; absent if no model was asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<SummaryDescription<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct RollbackResult {
    /// Id of the checkpoint that was restored; only with a rollback.
    commit_restored: CheckpointId,
    /// Number of turns that left the conversation; only with a rollback.
    turns_lost: u64,
}

/// A part of the quality.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QualityPart")]
pub(super) struct QualityPartResult<'a> {
    /// Name of the part.
    part: Keyword<&'a str>,
    /// Value of the part, from 0 to 1.
    value: f64,
    /// Weight of the part.
    weight: f64,
    /// Reason for the value.
    reason: &'a str,
}

impl<'a> TurnResult<'a> {
    pub(super) fn of(
        done: &'a TurnDone,
        description: Option<&'a DescriptionOutcome>,
        embedding: Option<Value>,
    ) -> Self {
        let summary = done.summarized.as_ref().map(|done| SummaryResult {
            tokens_before: done.tokens_before,
            tokens_after: done.tokens_after,
            turns_summarized: done.turns,
            summary: &done.text,
            description: description.map(SummaryDescription::from),
        });
        let rollback = done.rolled_back.as_ref().map(|done| RollbackResult {
            commit_restored: CheckpointId(done.checkpoint),
            turns_lost: done.turns_lost,
        });
        Self {
            id: MessageId(done.message),
            turn: done.turn,
            grounding_used: MemoryId::all(&done.grounding_used),
            relevance_scores: &done.relevance_scores,
            grounding: &done.grounding,
            summarization_triggered: summary.is_some(),
            checkpoint_created: done.checkpoint.map(CheckpointId),
            rollback_triggered: rollback.is_some(),
            quality_score: done.quality_score,
            quality: parts(&done.quality_parts),
            token_count: done.token_count,
            summary,
            not_summarized: done.not_summarized.as_deref(),
            rollback,
            not_rolled_back: done.not_rolled_back.as_deref(),
            embedding,
        }
    }
}

pub(super) fn parts(parts: &[(String, f64, f64, String)]) -> Vec<QualityPartResult<'_>> {
    let parts = parts.iter().map(|(name, value, weight, reason)| QualityPartResult {
        part: Keyword(name.as_str()),
        value: *value,
        weight: *weight,
        reason,
    });
    parts.collect()
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReportUsage {
    /// Name of the model.
    model: Short,
    /// Number of tokens that `build-window` counted.
    counted: i64,
    /// Number of input tokens that the provider reported.
    reported: i64,
}

pub(super) fn report_usage(_: MethodCall, given: ReportUsage) -> Result<Step, WireError> {
    let counted = not_negative("counted", Some(given.counted))?.unwrap_or(0);
    let reported = not_negative("reported", Some(given.reported))?.unwrap_or(0);
    Step::state(move |engine| {
        let model = &given.model.0;
        let learned = engine.report_usage(model, counted, reported)?;
        let costs = engine.costs(Some(model))?;
        Ok(Value::of(&LearnedResult {
            model,
            ratio: learned.ratio(),
            reports: learned.reports(),
            factor: costs.measure.factor(),
        }))
    })
}

/// The calibration of a model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Calibration")]
pub(super) struct LearnedResult<'a> {
    /// Name of the model.
    model: &'a str,
    /// Smoothed ratio of the tokens that the provider reported to ours before calibration, from 0.8
    /// to 2; 1 before any report.
    ratio: f64,
    /// Number of reports from which the ratio is made.
    reports: u64,
    /// Factor by which counts for this model are multiplied from now on.
    factor: f64,
}
