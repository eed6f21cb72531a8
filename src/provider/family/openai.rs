//! `OpenAI`'s chat completions API, and servers that imitate it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Broken, CallIds, Decoder, add_text, append, functions, set};
use crate::provider::chat::{ChatMessage, Request, Stop, StreamEvent, Usage};
use crate::provider::error::ErrorKind;
use crate::provider::refusal::kind_of_bad;
use crate::session::message::{Role, ToolCall};

/// Name under which an answer's reasoning is kept until its turn ends.
const FAMILY: &str = "openai";
/// Field names that servers use for reasoning. Some servers send the reasoning under both names.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

pub(super) fn body(base: &str, model: &str, request: &Request) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages.iter().map(|said| message(base, said)).collect::<Vec<_>>(),
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    // OpenAI requires this name. Other servers may not know it.
    let limit = match base.contains("://api.openai.com") {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    set(&mut body, limit, request.max_tokens);
    set(&mut body, "temperature", request.temperature);
    if !request.tools.is_empty() {
        body["tools"] = functions(&request.tools);
        set(&mut body, "tool_choice", request.without_calls.then_some("none"));
    }
    body
}

fn message(base: &str, said: &ChatMessage) -> Value {
    let kept = said.kept(FAMILY);
    let mut message = json!({"role": said.role.name(), "content": &*said.content});
    if !said.tool_calls.is_empty() {
        let call = |call: &ToolCall| {
            let mut map = json!({"id": call.id, "type": "function",
                                 "function": {"name": call.name, "arguments": call.arguments}});
            let extra = kept.and_then(|kept| kept["calls"].get(&*call.id));
            set(&mut map, "extra_content", extra.cloned());
            map
        };
        message["tool_calls"] = said.tool_calls.iter().map(call).collect();
        if said.content.is_empty() {
            message["content"] = Value::Null;
        }
    }
    set(&mut message, "tool_call_id", said.tool_call_id.clone());
    if let Some(Value::Object(fields)) = kept.map(|kept| &kept["message"]) {
        for (name, value) in fields {
            message[&**name] = value.clone();
        }
    } else if said.role == Role::Assistant && base.contains("://api.deepseek.com") {
        // DeepSeek refuses a reasoning model's message without this field. Nothing is kept of
        // earlier turns.
        message["reasoning_content"] = "".into();
    }
    message
}

/// The data that must be sent back with the results of the calls: reasoning, for DeepSeek and
/// OpenRouter, and the fields that Gemini adds to calls through this interface.
#[derive(Default)]
struct Kept {
    /// Extra fields of the message.
    message: Value,
    /// `extra_content` by the index of the call.
    calls: BTreeMap<u64, Value>,
}

impl Kept {
    /// Adds a part of the reasoning. Pieces with the same index form one part, since a signature
    /// covers the whole text.
    fn add_detail(&mut self, detail: &Value) {
        let details = &mut self.message["reasoning_details"];
        if !details.is_array() {
            *details = json!([]);
        }
        let Some(details) = details.as_array_mut() else { return };
        let same = |last: &&mut Value| {
            !detail["index"].is_null()
                && last["index"] == detail["index"]
                && last["type"] == detail["type"]
        };
        let Some(last) = details.last_mut().filter(same) else {
            details.push(detail.clone());
            return;
        };
        for (name, value) in detail.as_object().into_iter().flatten() {
            match &**name {
                "text" | "summary" | "data" => append(&mut last[name], value),
                _ if !value.is_null() => last[name] = value.clone(),
                _ => {}
            }
        }
    }

    fn opaque(mut self, calls: &BTreeMap<u64, ToolCall>) -> Option<Value> {
        // This text only repeats the details.
        if let Some(fields) = self.message.as_object_mut()
            && fields.contains_key("reasoning_details")
        {
            fields.remove("reasoning");
        }
        let extra = |(index, extra)| Some((calls.get(&index)?.id.clone(), extra));
        let extras: serde_json::Map<_, _> = self.calls.into_iter().filter_map(extra).collect();
        let nothing = calls.is_empty() || (self.message.is_null() && extras.is_empty());
        (!nothing).then(|| json!({ FAMILY: {"message": self.message, "calls": extras} }))
    }
}

pub(super) struct Decode {
    ids: CallIds,
    /// Calls by index, since their arguments arrive in parts.
    calls: BTreeMap<u64, ToolCall>,
    kept: Kept,
    stop: Option<Stop>,
    ended: bool,
}

impl Decoder for Decode {
    fn take(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken> {
        if let Some(error) = said.get("error").filter(|error| !error.is_null()) {
            return Err(failure(error));
        }
        let choice = &said["choices"][0];
        if !choice.is_object() && !said["choices"].is_array() && !said["usage"].is_object() {
            return Err(Broken::malformed("a piece of the answer has no choices"));
        }
        let delta = &choice["delta"];
        let said_so = |name: &&str| delta[*name].as_str().is_some_and(|text| !text.is_empty());
        if let Some(name) = REASONING.into_iter().find(said_so) {
            add_text(pieces, &delta[name], StreamEvent::Reasoning);
            append(&mut self.kept.message[name], &delta[name]);
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            self.kept.add_detail(detail);
        }
        add_text(pieces, &delta["content"], StreamEvent::Text);
        add_text(pieces, &delta["refusal"], StreamEvent::Text);
        for (at, part) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
            self.add_call(at as u64, part);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop = Some(stop(reason));
        }
        if said["usage"].is_object() {
            pieces.push(StreamEvent::Usage(usage(&said["usage"])));
        }
        Ok(())
    }

    fn is_end(&mut self, text: &str, pieces: &mut Vec<StreamEvent>) -> bool {
        let is_end = text.trim() == "[DONE]";
        if is_end {
            self.stop = self.stop.take().or(Some(Stop::Finished));
            self.closed(pieces);
        }
        is_end
    }

    /// Ends the answer even if the server omitted the final `[DONE]`.
    fn closed(&mut self, pieces: &mut Vec<StreamEvent>) -> bool {
        if self.ended {
            return true;
        }
        let Some(stop) = self.stop.take() else { return false };
        self.ended = true;
        let mut calls = std::mem::take(&mut self.calls);
        for call in calls.values_mut() {
            // Some servers give no ids, but each result must name its call.
            call.id = self.ids.next(&Value::from(&*call.id));
        }
        let kept = std::mem::take(&mut self.kept).opaque(&calls);
        pieces.extend(calls.into_values().map(StreamEvent::Call));
        pieces.extend(kept.map(StreamEvent::Opaque));
        pieces.push(StreamEvent::Stopped(stop));
        true
    }
}

impl Decode {
    pub(super) fn new(stamp: i64) -> Self {
        let ids = CallIds { stamp, calls: 0 };
        let (calls, kept) = (BTreeMap::new(), Kept::default());
        Self { ids, calls, kept, stop: None, ended: false }
    }

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
        if !part["extra_content"].is_null() {
            self.kept.calls.insert(index, part["extra_content"].clone());
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
        // DeepSeek uses another name.
        cache_read: said["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .or_else(|| said["prompt_cache_hit_tokens"].as_u64()),
        cache_written: said["prompt_tokens_details"]["cache_write_tokens"].as_u64(),
        reasoning: said["completion_tokens_details"]["reasoning_tokens"].as_u64(),
    }
}

fn failure(error: &Value) -> Broken {
    let message = error["message"].as_str().or(error.as_str()).unwrap_or("no reason given");
    let code = |name: &str| error[name].as_u64().or_else(|| error[name].as_str()?.parse().ok());
    let kind = ["type", "code"].iter().filter_map(|name| error[*name].as_str());
    let broke = kind.clone().any(|kind| kind_of_bad(kind) == ErrorKind::QuotaExhausted);
    let has = |words: &str| kind.clone().any(|kind| kind.contains(words));
    let kind = match code("code") {
        Some(402) => ErrorKind::QuotaExhausted,
        _ if broke => ErrorKind::QuotaExhausted,
        Some(429) => ErrorKind::RateLimited,
        Some(401 | 403) => ErrorKind::Authentication,
        _ if has("rate_limit") => ErrorKind::RateLimited,
        _ if has("context_length") => ErrorKind::ContextTooLong,
        Some(400..=499) => ErrorKind::BadRequest,
        _ if has("invalid_request") => ErrorKind::BadRequest,
        _ => ErrorKind::Unavailable,
    };
    Broken::told(kind, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what is kept of an answer that consists of these deltas and has a call.
    #[track_caller]
    fn check(deltas: &[Value], message: &Value) {
        let mut decoder = Decode::new(1);
        let mut pieces = Vec::new();
        let call = json!({"tool_calls": [{"index": 0, "function": {"name": "f"}}]});
        for delta in deltas.iter().chain([&call]) {
            decoder.take(&json!({"choices": [{"delta": delta}]}), &mut pieces).unwrap();
        }
        assert!(decoder.is_end("[DONE]", &mut pieces));
        let kept = pieces.iter().find_map(|piece| match piece {
            StreamEvent::Opaque(kept) => Some(kept[FAMILY]["message"].clone()),
            _ => None,
        });
        assert_eq!(kept.unwrap_or_default(), *message);
        let made_up =
            |piece: &StreamEvent| matches!(piece, StreamEvent::Call(call) if call.id == "call-1-1");
        assert!(pieces.iter().any(made_up), "{pieces:?}");
    }

    #[test]
    fn an_account_without_money_is_told_by_its_code() {
        for error in [json!({"code": "insufficient_quota"}), json!({"code": 402})] {
            assert_eq!(failure(&error).kind, ErrorKind::QuotaExhausted, "{error}");
        }
    }

    #[test]
    fn reasoning_is_kept_as_the_server_wants_it_back() {
        check(&[json!({"content": "x"})], &Value::Null);
        check(
            &[json!({"reasoning_content": "a"}), json!({"reasoning_content": "b"})],
            &json!({"reasoning_content": "ab"}),
        );
        // Reasoning that is sent under both names is kept once.
        check(
            &[json!({"reasoning_content": "a", "reasoning": "a"})],
            &json!({"reasoning_content": "a"}),
        );
        let detail = |more: Value| {
            let mut detail = json!({"type": "reasoning.text", "format": "f", "index": 0});
            let fields = more.as_object().unwrap().clone();
            detail.as_object_mut().unwrap().extend(fields);
            json!({"reasoning": "x", "reasoning_details": [detail]})
        };
        check(
            &[
                detail(json!({"text": "Let", "signature": null})),
                detail(json!({"text": " me."})),
                detail(json!({"signature": "c2ln"})),
                detail(json!({"type": "reasoning.encrypted", "data": "ZW5j", "index": 1})),
            ],
            &json!({"reasoning_details": [
                {"type": "reasoning.text", "format": "f", "index": 0, "text": "Let me.",
                 "signature": "c2ln"},
                {"type": "reasoning.encrypted", "format": "f", "index": 1, "data": "ZW5j"},
            ]}),
        );
    }

    #[test]
    fn deepseek_wants_reasoning_with_every_answer() {
        let request = Request {
            messages: vec![
                ChatMessage::new(Role::User, "a"),
                ChatMessage::new(Role::Assistant, "b"),
            ],
            ..Request::default()
        };
        let reasoning =
            |base: &str| body(base, "m", &request)["messages"][1]["reasoning_content"].clone();
        assert_eq!(reasoning("https://api.deepseek.com/v1"), "");
        assert_eq!(reasoning("https://api.openai.com/v1"), Value::Null);
    }
}
