//! `OpenAI`'s chat completions, and the servers that imitate them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Broken, Decoder, add_text, set};
use crate::provider::chat::{Piece, Request, Said, Stop, Usage};
use crate::provider::error::ErrorKind;
use crate::session::message::ToolCall;

pub(super) fn body(base: &str, model: &str, request: &Request) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    // The name that only OpenAI itself insists on, and only it is sure to know.
    let limit = match base.contains("://api.openai.com") {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    set(&mut body, limit, request.max_tokens);
    set(&mut body, "temperature", request.temperature);
    if !request.tools.is_empty() {
        let tool = |tool: &crate::provider::chat::Tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.schema,
            }})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

fn message(said: &Said) -> Value {
    let mut message = json!({"role": said.role.name(), "content": &*said.content});
    if !said.tool_calls.is_empty() {
        let call = |call: &ToolCall| {
            json!({"id": call.id, "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        };
        message["tool_calls"] = said.tool_calls.iter().map(call).collect();
        if said.content.is_empty() {
            message["content"] = Value::Null;
        }
    }
    set(&mut message, "tool_call_id", said.tool_call_id.clone());
    message
}

#[derive(Default)]
pub(super) struct Decode {
    /// By their index, since their arguments come in parts.
    calls: BTreeMap<u64, ToolCall>,
    stop: Option<Stop>,
    ended: bool,
}

impl Decoder for Decode {
    fn take(&mut self, said: &Value, pieces: &mut Vec<Piece>) -> Result<(), Broken> {
        if let Some(error) = said.get("error").filter(|error| !error.is_null()) {
            return Err(failure(error));
        }
        let choice = &said["choices"][0];
        if !choice.is_object() && !said["choices"].is_array() && !said["usage"].is_object() {
            return Err(Broken::malformed("the answer has no choices"));
        }
        let delta = &choice["delta"];
        for reasoning in ["reasoning_content", "reasoning"] {
            add_text(pieces, &delta[reasoning], Piece::Reasoning);
        }
        add_text(pieces, &delta["content"], Piece::Text);
        add_text(pieces, &delta["refusal"], Piece::Text);
        for (at, part) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.add_call(at as u64, part);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop = Some(stop(reason));
        }
        if said["usage"].is_object() {
            pieces.push(Piece::Usage(usage(&said["usage"])));
        }
        Ok(())
    }

    fn is_end(&mut self, text: &str, pieces: &mut Vec<Piece>) -> bool {
        let is_end = text.trim() == "[DONE]";
        if is_end {
            self.stop = self.stop.take().or(Some(Stop::Finished));
            self.closed(pieces);
        }
        is_end
    }

    /// Some servers leave out the last word.
    fn closed(&mut self, pieces: &mut Vec<Piece>) -> bool {
        if self.ended {
            return true;
        }
        let Some(stop) = self.stop.take() else { return false };
        self.ended = true;
        pieces.extend(std::mem::take(&mut self.calls).into_values().map(Piece::Call));
        pieces.push(Piece::Stopped(stop));
        true
    }
}

impl Decode {
    fn add_call(&mut self, at: u64, part: &Value) {
        let index = part["index"].as_u64().unwrap_or(at);
        let call = self.calls.entry(index).or_insert_with(|| ToolCall {
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if call.id.is_empty() {
            call.id = text(&part["id"]);
        }
        call.name += &text(&part["function"]["name"]);
        call.arguments += &text(&part["function"]["arguments"]);
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "stop" => Stop::Finished,
        "length" => Stop::Length,
        "tool_calls" | "function_call" => Stop::Calls,
        "content_filter" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

fn usage(said: &Value) -> Usage {
    Usage {
        input: said["prompt_tokens"].as_u64(),
        output: said["completion_tokens"].as_u64(),
        cache_read: said["prompt_tokens_details"]["cached_tokens"].as_u64(),
        cache_written: None,
        reasoning: said["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}

fn failure(error: &Value) -> Broken {
    let message = error["message"].as_str().or(error.as_str()).unwrap_or("no reason given");
    let code = |name: &str| error[name].as_u64().or_else(|| error[name].as_str()?.parse().ok());
    let kind = ["type", "code"].iter().filter_map(|name| error[*name].as_str());
    let limited = kind.clone().any(|kind| kind.contains("rate_limit"));
    let long = kind.clone().any(|kind| kind.contains("context_length"));
    let bad = kind.clone().any(|kind| kind.contains("invalid_request"));
    let kind = match code("code") {
        Some(429) => ErrorKind::RateLimited,
        Some(401 | 403) => ErrorKind::Authentication,
        _ if limited => ErrorKind::RateLimited,
        _ if long => ErrorKind::ContextTooLong,
        Some(400..=499) => ErrorKind::BadRequest,
        _ if bad => ErrorKind::BadRequest,
        _ => ErrorKind::Unavailable,
    };
    Broken::told(kind, message)
}
