//! Methods that prune, summarize and measure a client's own history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::Call;
use super::messages::{HISTORY, MessageParam, counted};
use super::params::{ModelName, not_negative, required_list};
use super::present::MessageShown;
use super::prune::{PruneStats, Told};
use super::report::ScoreResult;
use super::summarize::{SummaryStats, keep, keep_messages};
use super::{Finish, Step};
use crate::agent::history::{self, SummarizedHistory};
use crate::curation::prune::{PruneStats as PruneFigures, Pruned, auto_manage, prune, stats};
use crate::curation::strategy::Fate;
use crate::curation::unit::History;
use crate::engine::{Costs, EngineError};
use crate::ids::MessageId;
use crate::session::message::{Message, Role};
use crate::value::{Keyword, Value};
use crate::wire::message::WireError;

#[derive(Deserialize, JsonSchema)]
pub(super) struct PruneMessages {
    #[schemars(description = HISTORY)]
    #[serde(deserialize_with = "required_list")]
    messages: Vec<MessageParam>,
    /// Maximum number of tokens to keep; defaults to 80 % of the model's limit.
    keep_tokens: Option<i64>,
    /// Remove nothing unless more than 80 % of the model's limit is used.
    if_needed: Option<bool>,
    model: Option<ModelName>,
    /// Answer with ids in place of messages.
    brief: Option<bool>,
}

pub(super) fn prune_messages(call: Call, given: PruneMessages) -> Result<Step, WireError> {
    let target = not_negative("keep-tokens", given.keep_tokens)?;
    let (if_needed, brief) = (given.if_needed.unwrap_or(false), given.brief.unwrap_or(false));
    with_history(&call, given.messages, given.model, move |messages, costs| {
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
    call: &Call,
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
    let PruneFigures { original, remaining, items_removed, items_kept } = pruned.stats;
    Value::of(&PrunedHistory {
        pruned: Told::of(of(&pruned.kept).into_iter(), brief),
        removed: Told::of(of(&pruned.removed).into_iter(), brief),
        stats: PruneStats::of(original, remaining, items_removed, items_kept),
        units: units.collect(),
    })
}

/// The client's own history after pruning.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PrunedHistory")]
pub(super) struct PrunedHistory<'a> {
    /// The pruned history: the messages that remain, or their ids if the call is `:brief`.
    pruned: Told<'a>,
    /// The messages that were removed, or their ids if the call is `:brief`.
    removed: Told<'a>,
    /// Figures from before and after the pruning.
    stats: PruneStats,
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

#[derive(Deserialize, JsonSchema)]
pub(super) struct SummarizeMessages {
    #[schemars(description = HISTORY)]
    #[serde(deserialize_with = "required_list")]
    messages: Vec<MessageParam>,
    #[schemars(description = keep_messages())]
    keep_messages: Option<i64>,
    /// Number of recent turns to keep; not together with `:keep-messages`.
    keep_turns: Option<i64>,
    model: Option<ModelName>,
}

pub(super) fn summarize_messages(call: Call, given: SummarizeMessages) -> Result<Step, WireError> {
    let keep = keep(given.keep_messages, given.keep_turns)?;
    with_history(&call, given.messages, given.model, move |messages, costs| {
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

#[derive(Deserialize, JsonSchema)]
pub(super) struct MessageStats {
    #[schemars(description = HISTORY)]
    #[serde(deserialize_with = "required_list")]
    messages: Vec<MessageParam>,
    model: Option<ModelName>,
}

pub(super) fn message_stats(call: Call, given: MessageStats) -> Result<Step, WireError> {
    with_history(&call, given.messages, given.model, |messages, costs| {
        let history = History::new(messages.iter().collect(), &costs.measure);
        Ok(Value::of(&stats(&history, &costs.model)))
    })
}
