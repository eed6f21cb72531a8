//! Ollama's own API.

use serde_json::{Value, json};

use super::calls::piece;
use super::shape::{figure, first, flag, list, mended, object, text};
use super::{
    Broken, Decoder, FamilyFacts, GatheredAnswer, LimitsIn, arguments, effort, functions, set, stop,
};
use crate::provider::chat::{ChatMessage, Request, Stop, ToolChoice, ToolDefinition, Usage};
use crate::provider::error::ErrorKind;
use crate::provider::refusal::{RetryPolicy, ServerRefusal};
use crate::session::message::ToolCall;

pub(super) static FACTS: FamilyFacts = FamilyFacts {
    usual_url: "http://localhost:11434",
    usual_key: None,
    key_header: "authorization",
    headers: &[],
    azure: None,
    version: "",
    base: |path| path,
    endpoints: &["/api/chat", "/api/generate", "/api/tags", "/v1", "/api"],
    chat: |_| "/api/chat".to_owned(),
    models: "/api/tags",
    listed: ["models", "name"],
    limits: LimitsIn::Loaded,
    takes_pdf: Some(false),
    hottest: 2.0,
    samples_one_way: false,
    joins_results: false,
    effort: effort::ollama,
    body: |_, model, request, context| body(model, request, context),
    decoder: || Box::<OllamaDecoder>::default(),
};

pub(super) fn body(model: &str, request: &Request, context: Option<u64>) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(|said| message(said, request)).collect();
    let mut body = json!({"model": model, "messages": messages, "stream": true});
    let mut options = json!({});
    set(&mut options, "num_ctx", context);
    set(&mut options, "num_predict", request.max_tokens);
    set(&mut options, "temperature", request.temperature);
    set(&mut options, "top_p", request.top_p);
    set(&mut body, "options", (options != json!({})).then_some(options));
    // Leaving the other tools out is the only way to prevent calls of them.
    let offered: Vec<ToolDefinition> = match &request.choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Tool(only) => {
            request.tools.iter().filter(|tool| tool.name == *only).cloned().collect()
        }
        ToolChoice::Auto | ToolChoice::Any => request.tools.clone(),
    };
    if !offered.is_empty() {
        body["tools"] = functions(&offered);
    }
    set(&mut body, "format", request.output.as_ref().map(|form| form.schema.clone()));
    body
}

fn message(said: &ChatMessage, request: &Request) -> Value {
    let mut message = json!({"role": said.role.name(), "content": &*said.content});
    // Checked with hexdocs.pm/ollixir/multimodal.html: the contents alone, in base 64.
    let pictures: Vec<&str> = said.pictures.iter().map(|shown| &*shown.data).collect();
    set(&mut message, "images", (!pictures.is_empty()).then_some(pictures));
    if !said.tool_calls.is_empty() {
        let call = |call: &ToolCall| json!({"function": {"name": call.name, "arguments": arguments(&call.arguments)}});
        message["tool_calls"] = said.tool_calls.iter().map(call).collect();
    }
    let called = said.tool_call_id.as_deref().and_then(|id| request.called(id));
    set(&mut message, "tool_name", called);
    set(&mut message, "thinking", said.kept().cloned());
    message
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct OllamaDecoder {
    /// Reasoning before the calls, from which the model continues once it has their results.
    thinking: String,
}

impl Decoder for OllamaDecoder {
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        let message = object("message", &said["message"])?;
        if message.is_none() && said["done"].is_null() {
            return Err(Broken::malformed("a piece of the answer has no message"));
        }
        if let Some(message) = message {
            let thinking = text("thinking", first(message, &["thinking", "reasoning"]))?;
            out.reasoning(&thinking);
            self.thinking += &thinking;
            out.text(&text("content", &message["content"])?);
            for call in list("tool_calls", &message["tool_calls"])? {
                // Calls come whole, one after the other.
                out.calls.add_whole(piece(call)?)?;
            }
        }
        let is_done = flag("done", &said["done"])?;
        let reason = stop(&said["done_reason"])?;
        if is_done {
            let loaded = |stop: &Stop| matches!(stop, Stop::Other(said) if said == "load" || said == "unload");
            if reason.as_ref().is_some_and(loaded) && !out.has_begun && out.calls.is_empty() {
                let what = "the server only loaded the model, or unloaded it, and gave no answer";
                let refusal = ServerRefusal::new(ErrorKind::Unavailable, what.to_owned());
                return Err(ServerRefusal { again: RetryPolicy::Soon, ..refusal }.into());
            }
            out.stop = reason.filter(|stop| !loaded(stop)).or(Some(Stop::Finished));
            out.is_done = true;
            out.usage(usage(said));
        }
        Ok(())
    }

    fn kept(&mut self, calls: &[ToolCall], _: &GatheredAnswer) -> Value {
        match calls.is_empty() || self.thinking.is_empty() {
            true => Value::Null,
            false => mended(&self.thinking).into(),
        }
    }
}

fn usage(said: &Value) -> Usage {
    Usage {
        input: figure(&said["prompt_eval_count"]),
        output: figure(&said["eval_count"]),
        ..Usage::default()
    }
}
