//! The results of `chat`, as clients get them.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::notes::NotesResult;
use super::super::present::{Decided, Money, verdicts};
use super::super::shapes::TemplateSource;
use super::super::turn::TurnResult;
use super::super::window::PartResult;
use crate::agent::tools::CalledTool;
use crate::agent::{Preview, Reply};
use crate::curation::report::SentCount;
use crate::ids::MessageId;
use crate::provider::chat::Stop;
use crate::template::TemplatePlace;
use crate::tokens::model::LimitFrom;
use crate::value::{Keyword, Value};

/// The answer of a model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChatReply")]
pub(in crate::rpc) struct ChatResult<'a> {
    /// Name of the session.
    session: &'a str,
    /// Id of the answer's message; `nil` if the answer is empty and was not stored.
    id: Option<MessageId>,
    /// Id of the user's message.
    question: MessageId,
    /// Text of the answer.
    content: &'a str,
    /// Reason why the answer ended. `:stop`: the model was done, or the reason is unknown;
    /// `:length`: the answer reached its limit of tokens; `:tool-calls`: the answer ends in tool
    /// calls; `:refused`: the model refused, or a filter stopped the answer; `:malformed-call`: the
    /// model made a call that its server could not read; `:paused`: the server paused the answer;
    /// `:other`: another reason.
    #[schemars(extend("enum" = ["stop", "length", "tool-calls", "refused", "malformed-call", "paused", "other"]))]
    stop_reason: Keyword<&'static str>,
    /// Why the answer is not whole, or is empty, as a phrase to show; absent for a usual answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<&'a str>,
    /// Tokens of all requests and answers of the turn.
    usage: ReplyUsage,
    /// Cost of the turn; `nil` if a price or a count is unknown.
    cost: Option<Money>,
    /// Name of the provider.
    provider: &'a str,
    /// Name of the model.
    model: &'a str,
    /// Tokens of the last window.
    window_tokens: u64,
    /// Items that are not complete in the last window.
    left_out: Vec<Decided>,
    /// Outcome of note-taking; `nil` if note-taking is off.
    management: Option<NotesResult<'a>>,
    /// Number of requests to the model, not counting retries with smaller windows.
    rounds: u64,
    /// Tools that the model called.
    tool_calls: &'a [CalledTool],
    /// Outcome of processing the turn, as in `process-turn`.
    turn: TurnResult<'a>,
    /// Kind of the error with which an earlier call with the same `:request-key` failed. It is
    /// `:shutting-down` if the server ended during that call, and `:hung-up` if the client hung up.
    /// Absent if no call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_before: Option<Keyword<&'a str>>,
    /// Version of the session after the turn.
    version: u64,
}

/// Tokens as counted by the provider. Counts that the provider did not report are nil.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Usage")]
struct ReplyUsage {
    /// Input tokens.
    input: Option<u64>,
    /// Output tokens.
    output: Option<u64>,
    /// Part of the input tokens that came from a cache.
    cached: Option<u64>,
}

/// Returns the result of a call. `failed_before` is the kind of the error with which an earlier
/// call with the same key failed, if any.
pub(super) fn reply(reply: &Reply, failed_before: Option<&str>) -> Value {
    let stop = match &reply.stop {
        Some(Stop::Finished) | None => "stop",
        Some(Stop::Length) => "length",
        Some(Stop::Calls) => "tool-calls",
        Some(Stop::Refused | Stop::Filtered) => "refused",
        Some(Stop::Malformed) => "malformed-call",
        Some(Stop::Paused) => "paused",
        Some(Stop::Other(_)) => "other",
    };
    let usage = &reply.usage;
    Value::of(&ChatResult {
        session: &reply.session,
        id: reply.answer.map(MessageId),
        question: MessageId(reply.question),
        content: &reply.text,
        stop_reason: Keyword(stop),
        ending: reply.ending.as_deref(),
        usage: ReplyUsage { input: usage.input, output: usage.output, cached: usage.cache_read },
        cost: reply.cost.map(Money),
        provider: &reply.provider,
        model: &reply.model,
        window_tokens: reply.window_tokens,
        left_out: verdicts(&reply.left_out),
        management: reply.managed.as_ref().map(NotesResult::of),
        rounds: reply.rounds,
        tool_calls: &reply.calls,
        turn: TurnResult::of(&reply.turn, reply.described.as_ref(), reply.embedded.outcome()),
        failed_before: failed_before.map(Keyword),
        version: reply.version,
    })
}

/// A request as it would be sent: the result of a dry run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChatPreview")]
pub(in crate::rpc) struct PreviewResult<'a> {
    /// Name of the session.
    session: &'a str,
    /// Name of the provider.
    provider: &'a str,
    /// Name of the model.
    model: &'a str,
    /// Tokens of the window.
    tokens: u64,
    /// Maximum number of tokens that the model takes.
    limit: u64,
    /// Source of the limit; `:default` if nobody tells it, so that it is assumed.
    limit_from: LimitFrom,
    /// Maximum number of tokens in the window.
    max_tokens: u64,
    /// How many of the messages would be sent.
    messages: SentCount,
    /// True if the counts are the model's own rather than estimates.
    exact: bool,
    /// Parts of the window, without their texts and tool calls.
    parts: Vec<PartResult<'a>>,
    /// Outcome for each item.
    items: Vec<Decided>,
    /// Body of the request.
    payload: &'a str,
    /// Template for notes; `nil` if note-taking is off.
    managed_by: Option<&'a str>,
    /// Place of the template; absent without a template, or if the template cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TemplateSource>")]
    template_source: Option<Keyword<&'static str>>,
    /// File of the template, `nil` for a built-in one; absent without a template, or if the
    /// template cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<&'a str>")]
    template_path: Option<Option<&'a str>>,
    /// Reason why the template cannot be used; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    template_error: Option<String>,
}

pub(super) fn preview(preview: &Preview) -> Value {
    let window = &preview.built.window;
    let (limit, limit_from) = preview.limit;
    let (found, error) = match &preview.template {
        Some(Ok(template)) => (Some(&template.source), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    Value::of(&PreviewResult {
        session: &preview.session,
        provider: &preview.provider,
        model: &preview.model,
        tokens: window.tokens,
        limit,
        limit_from,
        max_tokens: window.report.max_tokens,
        messages: window.report.messages,
        exact: window.report.exact,
        parts: window.parts.iter().map(PartResult::brief).collect(),
        items: verdicts(&preview.built.items),
        payload: &preview.payload,
        managed_by: preview.managed_by.as_deref(),
        template_source: found.map(|source| Keyword(source.kind())),
        template_path: found.map(TemplatePlace::path),
        template_error: error,
    })
}
