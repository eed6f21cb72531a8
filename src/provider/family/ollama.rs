//! Ollama's own API.

use serde_json::{Value, json};

use super::{Broken, CallIds, Decoder, add_text, append, arguments, functions, set};
use crate::provider::chat::{ChatMessage, Request, Stop, StreamEvent, Usage};
use crate::provider::error::ErrorKind;
use crate::session::message::ToolCall;

/// Name under which an answer's reasoning is kept until its turn ends.
const FAMILY: &str = "ollama";

pub(super) fn body(model: &str, request: &Request, context: Option<u64>) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(|said| message(said, request)).collect();
    let mut body = json!({"model": model, "messages": messages, "stream": true});
    let mut options = json!({});
    set(&mut options, "num_ctx", context);
    set(&mut options, "num_predict", request.max_tokens);
    set(&mut options, "temperature", request.temperature);
    set(&mut body, "options", (options != json!({})).then_some(options));
    // Leaving the tools out is the only way to prevent calls.
    if !request.tools.is_empty() && !request.without_calls {
        body["tools"] = functions(&request.tools);
    }
    body
}

fn message(said: &ChatMessage, request: &Request) -> Value {
    let mut message = json!({"role": said.role.name(), "content": &*said.content});
    if !said.tool_calls.is_empty() {
        let call = |call: &ToolCall| json!({"function": {"name": call.name, "arguments": arguments(&call.arguments)}});
        message["tool_calls"] = said.tool_calls.iter().map(call).collect();
    }
    let called = said.tool_call_id.as_deref().and_then(|id| request.called(id));
    set(&mut message, "tool_name", called);
    set(&mut message, "thinking", said.kept(FAMILY).cloned());
    message
}

pub(super) struct Decode {
    ids: CallIds,
    /// Reasoning before the calls, from which the model continues once it has their results.
    thinking: Value,
    ended: bool,
}

impl Decoder for Decode {
    fn take(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken> {
        if let Some(error) = said["error"].as_str() {
            return Err(Broken::told(ErrorKind::Unavailable, error));
        }
        let message = &said["message"];
        if !message.is_object() && said["done"].as_bool().is_none() {
            return Err(Broken::malformed("a piece of the answer has no message"));
        }
        add_text(pieces, &message["thinking"], StreamEvent::Reasoning);
        append(&mut self.thinking, &message["thinking"]);
        add_text(pieces, &message["content"], StreamEvent::Text);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = self.ids.next(&call["id"]);
            let function = &call["function"];
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            let arguments = function["arguments"].to_string();
            pieces.push(StreamEvent::Call(ToolCall { id, name, arguments }));
        }
        if said["done"].as_bool() == Some(true) {
            self.ended = true;
            if self.ids.calls > 0 && self.thinking.is_string() {
                pieces.push(StreamEvent::Opaque(json!({ FAMILY: self.thinking.take() })));
            }
            pieces.push(StreamEvent::Usage(usage(said)));
            pieces.push(StreamEvent::Stopped(self.stop(&said["done_reason"])));
        }
        Ok(())
    }

    fn closed(&mut self, _: &mut Vec<StreamEvent>) -> bool {
        self.ended
    }
}

impl Decode {
    pub(super) fn new(stamp: i64) -> Self {
        Self { ids: CallIds { stamp, calls: 0 }, thinking: Value::Null, ended: false }
    }

    fn stop(&self, reason: &Value) -> Stop {
        match reason.as_str() {
            Some("length") => Stop::Length,
            Some("stop") | None if self.ids.calls > 0 => Stop::Calls,
            Some("stop") | None => Stop::Finished,
            Some(other) => Stop::Other(other.to_owned()),
        }
    }
}

fn usage(said: &Value) -> Usage {
    Usage {
        input: said["prompt_eval_count"].as_u64(),
        output: said["eval_count"].as_u64(),
        ..Usage::default()
    }
}
