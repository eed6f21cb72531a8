//! Anthropic's Messages API.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Broken, Decoder, add_text, append, arguments, set};
use crate::provider::chat::{ChatMessage, Request, Stop, StreamEvent, Tool, Usage};
use crate::provider::error::ErrorKind;
use crate::session::message::{Role, ToolCall};

/// Version of the interface that this file uses.
pub(super) const VERSION: &str = "2023-06-01";

/// Name under which an answer's blocks are kept until its turn ends.
const FAMILY: &str = "anthropic";

/// Maximum number of tokens in an answer if the request sets none: this interface requires a
/// number. All current models accept this number, and newer models count their reasoning in it.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

pub(super) fn body(model: &str, request: &Request) -> Value {
    let leading = request.messages.iter().take_while(|said| said.role == Role::System).count();
    let (instructions, rest) = request.messages.split_at(leading);
    let mut system: Vec<Value> = instructions.iter().filter_map(text_block).collect();
    if request.stable > 0 {
        mark(&mut system);
    }
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for (at, said) in rest.iter().enumerate() {
        let (role, mut blocks) = (role(said.role), blocks(said));
        if blocks.is_empty() {
            // Empty messages are not allowed.
            continue;
        }
        if leading + at + 1 == request.stable {
            mark(&mut blocks);
        }
        match messages.last_mut() {
            // Roles must alternate, and all results of one answer's calls belong in one message.
            Some((last, known)) if *last == role => known.append(&mut blocks),
            _ => messages.push((role, blocks)),
        }
    }
    let message = |(role, blocks): (&str, Vec<Value>)| json!({"role": role, "content": blocks});
    let mut body = json!({
        "model": model,
        "max_tokens": request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        "messages": messages.into_iter().map(message).collect::<Vec<_>>(),
        "stream": true,
    });
    set(&mut body, "system", (!system.is_empty()).then_some(system));
    set(&mut body, "temperature", request.temperature);
    let tool = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
    let tools: Vec<Value> = request.tools.iter().map(tool).collect();
    match tools.is_empty() {
        false => {
            body["tools"] = tools.into();
            let none = request.without_calls.then(|| json!({"type": "none"}));
            set(&mut body, "tool_choice", none);
        }
        true => forbid_what_was_called(&mut body, rest),
    }
    body
}

/// Defines the tools that were called earlier and forbids calling them. This interface accepts
/// messages with calls only if their tools are defined, even if no tool is offered now.
fn forbid_what_was_called(body: &mut Value, said: &[ChatMessage]) {
    let calls = said.iter().flat_map(|said| &said.tool_calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    if !names.is_empty() {
        let tool = |name| json!({"name": name, "input_schema": {"type": "object"}});
        body["tools"] = names.into_iter().map(tool).collect();
        body["tool_choice"] = json!({"type": "none"});
    }
}

/// Maps a role to a role of this interface. Later instructions and tool results are addressed to
/// the model, so both come from the user.
fn role(role: Role) -> &'static str {
    match role {
        Role::Assistant => "assistant",
        Role::System | Role::User | Role::Tool => "user",
    }
}

fn blocks(said: &ChatMessage) -> Vec<Value> {
    if let Some(Value::Array(kept)) = said.kept(FAMILY) {
        let is_sent = |block: &&Value| block.is_object() && !is_blank(block);
        return kept.iter().filter(is_sent).cloned().collect();
    }
    if let (Role::Tool, Some(id)) = (said.role, &said.tool_call_id) {
        return vec![json!({"type": "tool_result", "tool_use_id": id, "content": &*said.content})];
    }
    let call = |call: &ToolCall| {
        json!({"type": "tool_use", "id": call.id, "name": call.name,
               "input": arguments(&call.arguments)})
    };
    text_block(said).into_iter().chain(said.tool_calls.iter().map(call)).collect()
}

/// Builds a text block; `None` for a blank text, which this interface does not allow.
fn text_block(said: &ChatMessage) -> Option<Value> {
    let text = &*said.content;
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Returns whether a block is empty text. Models may produce such blocks, but requests must not
/// contain them.
fn is_blank(block: &Value) -> bool {
    block["type"] == "text" && block["text"].as_str().is_none_or(|text| text.trim().is_empty())
}

fn is_thought(block: &Value) -> bool {
    ["thinking", "redacted_thinking"].iter().any(|kind| block["type"] == *kind)
}

/// Marks the end of a part to cache. A request may have four marks and gets at most two: one on the
/// instructions, which also covers the tools, and one on the last stable message.
fn mark(blocks: &mut [Value]) {
    // Reasoning must be returned unchanged, so it cannot take a mark.
    if let Some(block) = blocks.iter_mut().rfind(|block| !is_thought(block)) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

#[derive(Default)]
pub(super) struct Decode {
    /// Tool calls by the index of their block.
    calls: BTreeMap<u64, ToolCall>,
    /// The blocks of the answer as they arrived. Reasoning before calls must be sent back with the
    /// results of the calls, in its place and with its signature.
    blocks: BTreeMap<u64, Value>,
    /// Merged usage reports. Later reports may contain only the changed values.
    usage: Value,
    stop: Option<Stop>,
    ended: bool,
}

impl Decoder for Decode {
    fn take(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken> {
        let index = said["index"].as_u64().unwrap_or_default();
        match said["type"].as_str() {
            Some("message_start") => self.report(&said["message"]["usage"], pieces),
            Some("content_block_start") => self.begin(index, &said["content_block"], pieces),
            Some("content_block_delta") => self.go_on(index, &said["delta"], pieces),
            Some("content_block_stop") => {
                let call = self.calls.remove(&index);
                if let (Some(call), Some(block)) = (&call, self.blocks.get_mut(&index)) {
                    block["input"] = arguments(&call.arguments);
                }
                pieces.extend(call.map(StreamEvent::Call));
            }
            Some("message_delta") => {
                self.stop = said["delta"]["stop_reason"].as_str().map(stop);
                self.report(&said["usage"], pieces);
            }
            Some("message_stop") => {
                pieces.extend(self.kept().map(StreamEvent::Opaque));
                pieces.push(StreamEvent::Stopped(self.stop.take().unwrap_or(Stop::Finished)));
                self.ended = true;
            }
            Some("error") => return Err(failure(&said["error"])),
            // A ping, or an event type added later.
            Some(_) => {}
            None => return Err(Broken::malformed("an event of the answer has no type")),
        }
        Ok(())
    }

    fn closed(&mut self, _: &mut Vec<StreamEvent>) -> bool {
        self.ended
    }
}

impl Decode {
    fn kept(&mut self) -> Option<Value> {
        let blocks: Vec<Value> = std::mem::take(&mut self.blocks).into_values().collect();
        let calls = blocks.iter().any(|block| block["type"] == "tool_use");
        (calls && blocks.iter().any(is_thought)).then(|| json!({ FAMILY: blocks }))
    }

    fn begin(&mut self, index: u64, block: &Value, pieces: &mut Vec<StreamEvent>) {
        if block.is_object() {
            self.blocks.insert(index, block.clone());
        }
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("tool_use") => {
                let (id, name) = (text("id"), text("name"));
                self.calls.insert(index, ToolCall { id, name, arguments: String::new() });
            }
            Some("thinking") => add_text(pieces, &block["thinking"], StreamEvent::Reasoning),
            _ => add_text(pieces, &block["text"], StreamEvent::Text),
        }
    }

    fn go_on(&mut self, index: u64, delta: &Value, pieces: &mut Vec<StreamEvent>) {
        match delta["type"].as_str() {
            Some("text_delta") => {
                add_text(pieces, &delta["text"], StreamEvent::Text);
                self.keep(index, "text", delta);
            }
            Some("thinking_delta") => {
                add_text(pieces, &delta["thinking"], StreamEvent::Reasoning);
                self.keep(index, "thinking", delta);
            }
            Some("signature_delta") => self.keep(index, "signature", delta),
            Some("input_json_delta") => {
                if let Some(call) = self.calls.get_mut(&index) {
                    call.arguments += delta["partial_json"].as_str().unwrap_or_default();
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) {
        for (name, value) in said.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage[&**name] = value.clone();
            }
        }
        pieces.push(StreamEvent::Usage(usage(&self.usage)));
    }

    /// Appends a delta to a kept block.
    fn keep(&mut self, index: u64, name: &str, delta: &Value) {
        if let Some(block) = self.blocks.get_mut(&index) {
            append(&mut block[name], &delta[name]);
        }
    }
}

fn stop(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::Finished,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "tool_use" => Stop::Calls,
        "refusal" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

/// Converts usage. In this interface, `input_tokens` excludes everything that was read from or
/// written to a cache.
fn usage(said: &Value) -> Usage {
    let cache_read = said["cache_read_input_tokens"].as_u64();
    let cache_written = said["cache_creation_input_tokens"].as_u64();
    let cached = cache_read.unwrap_or_default().saturating_add(cache_written.unwrap_or_default());
    Usage {
        input: said["input_tokens"].as_u64().map(|input| input.saturating_add(cached)),
        output: said["output_tokens"].as_u64(),
        cache_read,
        cache_written,
        reasoning: None,
    }
}

fn failure(error: &Value) -> Broken {
    let kind = match error["type"].as_str() {
        Some("authentication_error" | "permission_error") => ErrorKind::Authentication,
        Some("rate_limit_error") => ErrorKind::RateLimited,
        Some("billing_error") => ErrorKind::QuotaExhausted,
        Some("request_too_large") => ErrorKind::ContextTooLong,
        Some("invalid_request_error" | "not_found_error") => ErrorKind::BadRequest,
        _ => ErrorKind::Unavailable,
    };
    Broken::told(kind, error["message"].as_str().unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the usage after these reports. The first report begins the answer.
    #[track_caller]
    fn check_usage(reports: &[Value], expected: [Option<u64>; 4]) {
        let mut decoder = Decode::default();
        let mut pieces = Vec::new();
        for (at, report) in reports.iter().enumerate() {
            let said = match at {
                0 => json!({"type": "message_start", "message": {"usage": report}}),
                _ => json!({"type": "message_delta", "delta": {}, "usage": report}),
            };
            decoder.take(&said, &mut pieces).unwrap();
        }
        let mut whole = Usage::default();
        for piece in pieces {
            if let StreamEvent::Usage(usage) = piece {
                whole = whole.with(usage);
            }
        }
        let found = [whole.input, whole.output, whole.cache_read, whole.cache_written];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_account_without_money_is_told_by_its_kind() {
        let error = json!({"type": "billing_error", "message": "pay first"});
        assert_eq!(failure(&error).kind, ErrorKind::QuotaExhausted);
    }

    #[test]
    fn a_block_that_is_none_is_not_kept() {
        let mut decoder = Decode::default();
        let mut pieces = Vec::new();
        let delta = json!({"type": "text_delta", "text": "a"});
        for said in [
            json!({"type": "content_block_start", "index": 0, "content_block": "x"}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "message_stop"}),
        ] {
            decoder.take(&said, &mut pieces).unwrap();
        }
        assert_eq!(pieces, [StreamEvent::Text("a".into()), StreamEvent::Stopped(Stop::Finished)]);
    }

    #[test]
    fn reports_of_usage_are_put_together() {
        let first = json!({"input_tokens": 12, "cache_read_input_tokens": 10,
                           "cache_creation_input_tokens": 3, "output_tokens": 1});
        let whole = [Some(25), Some(15), Some(10), Some(3)];
        check_usage(&[first.clone(), json!({"output_tokens": 15})], whole);
        check_usage(&[first, json!({"input_tokens": 12, "output_tokens": 15})], whole);
        // Servers that imitate this interface report everything at the end.
        let none = json!({"input_tokens": 0, "output_tokens": 0});
        let last =
            json!({"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": null});
        check_usage(&[none, last], [Some(25), Some(15), None, None]);
        let most = Some(crate::provider::chat::MOST_TOKENS);
        let absurd = json!({"input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX,
                            "cache_creation_input_tokens": 3});
        check_usage(&[absurd], [most, None, most, Some(3)]);
    }

    #[test]
    fn no_thought_and_no_empty_text_is_marked() {
        let thought = json!({"type": "thinking", "thinking": "t", "signature": "s"});
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
        let blank = json!({"type": "text", "text": " \n"});
        let kept = |blocks: Vec<&Value>| ChatMessage {
            opaque: Some(json!({ FAMILY: blocks })),
            ..ChatMessage::new(Role::Assistant, "unused")
        };
        let answer = |blocks: Vec<&Value>| {
            let messages = vec![ChatMessage::new(Role::User, "q"), kept(blocks)];
            let request = Request { messages, stable: 2, ..Request::default() };
            body("m", &request)["messages"][1]["content"].clone()
        };
        let mut marked = call.clone();
        marked["cache_control"] = json!({"type": "ephemeral"});
        assert_eq!(answer(vec![&thought, &blank, &call]), json!([thought, marked]));
        assert_eq!(answer(vec![&call, &thought]), json!([marked, thought]));
        assert_eq!(answer(vec![&thought]), json!([thought]));
    }
}
