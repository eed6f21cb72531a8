//! Prunes, summarizes and measures a client's own history, of which nothing is stored.

use schemars::JsonSchema;
use serde::Serialize;

use super::call::MethodCall;
use super::messages::{MessageParam, counted};
use super::params::ModelName;
use super::present::MessageShown;
use super::report::ScoreResult;
use super::{Finish, Step};
use crate::agent::history::{self, SummarizedHistory};
use crate::curation::prune::{PruneStats, Pruned, auto_manage, prune, stats};
use crate::curation::strategy::Fate;
use crate::curation::unit::History;
use crate::engine::{Costs, EngineError, Keep};
use crate::ids::MessageId;
use crate::session::message::{Message, Role};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

/// Prunes a history to `target` tokens; with `if_needed` only if it is large.
pub(super) fn prune_history(
    call: &MethodCall,
    messages: Vec<MessageParam>,
    model: Option<ModelName>,
    target: Option<u64>,
    [if_needed, brief]: [bool; 2],
) -> Result<Step, WireError> {
    with_history(call, messages, model, move |messages, costs| {
        let history = History::new(messages.iter().collect(), &costs.measure);
        let pruned = match if_needed {
            true => auto_manage(&history, target, &costs.model),
            false => prune(&history, target, &costs.model),
        };
        Ok(pruned_history(&history, &pruned.map_err(EngineError::from)?, brief))
    })
}

/// Counts the tokens of `messages`, and answers with what `work` returns for them. `work` runs
/// outside the engine.
fn with_history(
    call: &MethodCall,
    messages: Vec<MessageParam>,
    model: Option<ModelName>,
    work: impl FnOnce(Vec<Message>, &Costs) -> Result<Value, WireError> + Send + 'static,
) -> Result<Step, WireError> {
    let messages = history::messages(counted(messages, &call.counter())?);
    Step::then(move |engine| {
        let costs = engine.costs(model.as_deref())?;
        Ok(Finish::Later(Box::new(move || work(messages, &costs))))
    })
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
    let PruneStats { original, remaining, items_removed, items_kept } = pruned.stats;
    Value::of(&PrunedHistory {
        pruned: MessagesOrIds::of(of(&pruned.kept).into_iter(), brief),
        removed: MessagesOrIds::of(of(&pruned.removed).into_iter(), brief),
        stats: PruneFigures::of(original, remaining, items_removed, items_kept),
        units: units.collect(),
    })
}

/// The client's own history after pruning.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedHistory")]
pub(super) struct PrunedHistory<'a> {
    /// The pruned history: the messages that remain, or their ids if the call is `:brief`.
    pruned: MessagesOrIds<'a>,
    /// The messages that were removed, or their ids if the call is `:brief`.
    removed: MessagesOrIds<'a>,
    /// Figures from before and after the pruning.
    stats: PruneFigures,
    /// Outcome for each unit: a message, or messages that belong together, such as a call and its
    /// results.
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
    /// Score of the messages; absent if they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<ScoreResult>,
}

pub(super) fn summarize_history(
    call: &MethodCall,
    messages: Vec<MessageParam>,
    model: Option<ModelName>,
    keep: Keep,
) -> Result<Step, WireError> {
    with_history(call, messages, model, move |messages, costs| {
        Ok(summarized_history(&history::summarized(messages, keep, costs)?))
    })
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

/// A message, or the summary that replaces messages.
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

/// The client's own history after summarizing.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SummarizedHistory")]
pub(super) struct SummarizedResult<'a> {
    /// The new history, in which the summary replaces the older messages.
    summarized: Vec<MessageOrNote<'a>>,
    /// The summary.
    summary: NoteResult<'a>,
    /// Message counts.
    stats: SummaryStats,
}

pub(super) fn history_stats(
    call: &MethodCall,
    messages: Vec<MessageParam>,
    model: Option<ModelName>,
) -> Result<Step, WireError> {
    with_history(call, messages, model, |messages, costs| {
        let history = History::new(messages.iter().collect(), &costs.measure);
        Ok(Value::of(&stats(&history, &costs.model)))
    })
}

/// Messages, or only their ids.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(super) enum MessagesOrIds<'a> {
    Ids(Vec<MessageId>),
    Messages(Vec<MessageShown<'a>>),
}

impl<'a> MessagesOrIds<'a> {
    pub(super) fn of(messages: impl Iterator<Item = &'a Message>, brief: bool) -> Self {
        match brief {
            true => Self::Ids(messages.map(|message| MessageId(message.number)).collect()),
            false => Self::Messages(messages.map(MessageShown::from).collect()),
        }
    }
}

/// The figures of a pruning.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PruneStats")]
pub(super) struct PruneFigures {
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

impl PruneFigures {
    pub(super) fn of(original: u64, r#final: u64, items_removed: u64, items_kept: u64) -> Self {
        let token_reduction = original.saturating_sub(r#final);
        Self { original, r#final, token_reduction, items_removed, items_kept }
    }
}

/// The message counts of a summary.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SummaryStats")]
pub(super) struct SummaryStats {
    /// Number of messages that the summary replaces.
    pub(super) summarized_items: u64,
    /// Number of messages that stay unchanged.
    pub(super) kept_items: u64,
}
