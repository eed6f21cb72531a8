//! The results of `chat` in the form for clients.

use serde::Serialize;

use super::super::notes::NotesResult;
use super::super::present::{money, verdict};
use super::super::turn::TurnResult;
use super::super::window::PartResult;
use crate::agent::tools::Outcome;
use crate::agent::{Preview, Reply};
use crate::ids::MessageId;
use crate::provider::chat::Stop;
use crate::template::Source;
use crate::value::{Keyword, Value};

#[derive(Serialize)]
struct ChatResult<'a> {
    session: &'a str,
    id: Option<MessageId>,
    question: MessageId,
    content: &'a str,
    stop_reason: Keyword<&'static str>,
    usage: UsageResult,
    cost: Option<Value>,
    provider: &'a str,
    model: &'a str,
    window_tokens: u64,
    left_out: Vec<Value>,
    management: Option<NotesResult>,
    rounds: u64,
    tool_calls: Vec<CallResult<'a>>,
    turn: TurnResult<'a>,
}

#[derive(Serialize)]
struct UsageResult {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
}

#[derive(Serialize)]
struct CallResult<'a> {
    tool: &'a str,
    arguments: &'a str,
    outcome: Outcome,
    text: &'a str,
}

/// Returns the result of the call.
pub(super) fn reply(reply: &Reply) -> Value {
    let stop = match &reply.stop {
        Some(Stop::Finished) | None => "stop",
        Some(Stop::Length) => "length",
        Some(Stop::Calls) => "tool-calls",
        Some(Stop::Refused) => "refused",
        Some(Stop::Other(_)) => "other",
    };
    let (usage, calls) = (&reply.usage, reply.calls.iter());
    Value::of(&ChatResult {
        session: &reply.session,
        id: reply.answer.map(MessageId),
        question: MessageId(reply.question),
        content: &reply.text,
        stop_reason: Keyword(stop),
        usage: UsageResult { input: usage.input, output: usage.output, cached: usage.cache_read },
        cost: reply.cost.map(money),
        provider: &reply.provider,
        model: &reply.model,
        window_tokens: reply.window_tokens,
        left_out: reply.left_out.iter().map(verdict).collect(),
        management: reply.managed.as_ref().map(NotesResult::of),
        rounds: reply.rounds,
        tool_calls: calls
            .map(|call| CallResult {
                tool: &call.tool,
                arguments: &call.arguments,
                outcome: call.outcome,
                text: &call.text,
            })
            .collect(),
        turn: TurnResult::of(&reply.turn, reply.embedded.outcome()),
    })
}

#[derive(Serialize)]
struct PreviewResult<'a> {
    session: &'a str,
    provider: &'a str,
    model: &'a str,
    tokens: u64,
    limit: u64,
    limit_from: Keyword<&'static str>,
    parts: Vec<PartResult<'a>>,
    items: Vec<Value>,
    payload: &'a str,
    managed_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_source: Option<Keyword<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_path: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_error: Option<String>,
}

/// Returns the result of a call that sends nothing.
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
        limit_from: Keyword(limit_from.name()),
        parts: window.parts.iter().map(PartResult::brief).collect(),
        items: preview.built.items.iter().map(verdict).collect(),
        payload: &preview.payload,
        managed_by: preview.managed_by.as_deref(),
        template_source: found.map(|source| Keyword(source.kind())),
        template_path: found.map(Source::path),
        template_error: error,
    })
}
