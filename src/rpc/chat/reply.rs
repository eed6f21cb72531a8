//! The results of `chat` as clients are told them.

use super::super::present::{entry, figure, keyword, money, optional_keyword, optional_text};
use super::super::window::verdicts;
use super::super::{embedding, messages, turn, views};
use crate::agent::notes::Managed;
use crate::agent::tools::CalledTool;
use crate::agent::{Preview, Reply};
use crate::provider::chat::Stop;
use crate::value::Value;

/// The answer to the call.
pub(super) fn reply(reply: Reply) -> Value {
    let count = |count: Option<u64>| count.map_or(Value::Nil, figure);
    let stop = match &reply.stop {
        Some(Stop::Finished) | None => "stop",
        Some(Stop::Length) => "length",
        Some(Stop::Calls) => "tool-calls",
        Some(Stop::Refused) => "refused",
        Some(Stop::Other(_)) => "other",
    };
    let usage = Value::Map(vec![
        entry("input", count(reply.usage.input)),
        entry("output", count(reply.usage.output)),
        entry("cached", count(reply.usage.cache_read)),
    ]);
    let mut turn = turn::turn_map(&reply.turn);
    turn.extend(embedding::outcome(&reply.embedded).map(|outcome| entry("embedding", outcome)));
    Value::Map(vec![
        entry("session", reply.session),
        entry("id", reply.answer.map_or(Value::Nil, messages::name)),
        entry("question", messages::name(reply.question)),
        entry("content", reply.text),
        entry("stop-reason", keyword(stop)),
        entry("usage", usage),
        entry("cost", reply.cost.map_or(Value::Nil, money)),
        entry("provider", reply.provider),
        entry("model", reply.model),
        entry("window-tokens", figure(reply.window_tokens)),
        entry("left-out", verdicts(&reply.left_out)),
        entry("management", reply.managed.as_ref().map_or(Value::Nil, managed)),
        entry("rounds", figure(reply.rounds)),
        entry("tool-calls", Value::List(reply.calls.iter().map(called).collect())),
        entry("turn", Value::Map(turn)),
    ])
}

fn called(call: &CalledTool) -> Value {
    Value::Map(vec![
        entry("tool", &*call.tool),
        entry("arguments", &*call.arguments),
        entry("outcome", keyword(call.outcome.name())),
        entry("text", &*call.text),
    ])
}

/// The answer to a call that sends nothing.
pub(super) fn preview(preview: Preview) -> Value {
    let (limit, limit_from) = preview.limit;
    let window = preview.built.window;
    let parts = window.parts.iter().map(|part| {
        let mut map = vec![
            entry("section", keyword(part.section.name())),
            entry("role", keyword(part.role.name())),
            entry("tokens", figure(part.tokens)),
        ];
        map.extend(part.message.map(|number| entry("id", messages::name(number))));
        Value::Map(map)
    });
    let mut map = vec![
        entry("session", preview.session),
        entry("provider", preview.provider),
        entry("model", preview.model),
        entry("tokens", figure(window.tokens)),
        entry("limit", figure(limit)),
        entry("limit-from", keyword(limit_from.name())),
        entry("parts", Value::List(parts.collect())),
        entry("items", verdicts(&preview.built.items)),
        entry("payload", preview.payload),
        entry("managed-by", optional_text(preview.managed_by.as_deref())),
    ];
    match preview.template {
        Some(Ok(template)) => map.extend([
            entry("template-source", keyword(template.source.kind())),
            entry("template-path", optional_text(template.source.path())),
        ]),
        Some(Err(error)) => map.push(entry("template-error", error.to_string())),
        None => {}
    }
    Value::Map(map)
}

/// The outcome of taking notes.
pub(in super::super) fn managed(managed: &Managed) -> Value {
    let view = &managed.view;
    Value::Map(vec![
        entry("status", keyword(&view.status)),
        entry("step", optional_keyword(view.step.as_deref())),
        entry("reason", optional_text(view.reason.as_deref())),
        entry("template", &*view.template),
        entry("source", optional_keyword(view.source.as_deref())),
        entry("path", optional_text(view.path.as_deref())),
        entry("sha256", optional_text(view.sha256.as_deref())),
        entry("provider", optional_text(view.provider.as_deref())),
        entry("model", optional_text(view.model.as_deref())),
        entry("view", managed.id.map_or(Value::Nil, views::name)),
        entry("cached", managed.cached),
        entry("tokens-before", figure(view.tokens_before)),
        entry("tokens-after", figure(view.tokens_after)),
    ])
}
