//! Anthropic's Messages API.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::calls::{self, ArgumentsPiece, CallPiece};
use super::shape::{Shaped, figure, has_one, index, kind, list, mended_value, object, text, word};
use super::{
    Broken, Decoder, FamilyFacts, GatheredAnswer, LimitsIn, append, arguments, effort, schema, set,
    stop,
};
use crate::provider::chat::{
    ChatMessage, Request, ShownAttachment, ToolChoice, ToolDefinition, Usage,
};
use crate::session::message::{Role, ToolCall};

/// Version of the interface that this file uses.
const VERSION: &str = "2023-06-01";

/// Maximum number of tokens in an answer if the request sets none: this interface requires a
/// number. All current models accept this number, and newer models count their reasoning in it.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

pub(super) static FACTS: FamilyFacts = FamilyFacts {
    usual_url: "https://api.anthropic.com",
    usual_key: Some("ANTHROPIC_API_KEY"),
    key_header: "x-api-key",
    headers: &[("anthropic-version", VERSION)],
    azure: None,
    version: "/v1",
    base: |path| path,
    endpoints: &["/messages", "/models"],
    chat: |_| "/messages".to_owned(),
    models: "/models?limit=1000",
    listed: ["data", "id"],
    limits: LimitsIn::Entry,
    takes_pdf: Some(true),
    hottest: 1.0,
    samples_one_way: true,
    joins_results: true,
    effort: effort::anthropic,
    body: |_, model, request, _| body(model, request),
    decoder: || Box::<AnthropicDecoder>::default(),
};

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
    set(&mut body, "top_p", request.top_p);
    let tool = |tool: &ToolDefinition| json!({"name": tool.name, "description": tool.description, "input_schema": schema(tool)});
    let tools: Vec<Value> = request.tools.iter().map(tool).collect();
    match tools.is_empty() {
        false => {
            body["tools"] = tools.into();
            let choice = match &request.choice {
                ToolChoice::Auto => None,
                ToolChoice::Any => Some(json!({"type": "any"})),
                ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
                ToolChoice::None => Some(json!({"type": "none"})),
            };
            set(&mut body, "tool_choice", choice);
        }
        true => forbid_what_was_called(&mut body, rest),
    }
    if let Some(form) = &request.output {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": form.schema});
    }
    body
}

/// Defines the tools that were called earlier and forbids calling them. This interface accepts
/// messages with calls only if their tools are defined, even if no tool is offered now.
fn forbid_what_was_called(body: &mut Value, said: &[ChatMessage]) {
    let calls = said.iter().flat_map(|said| &said.tool_calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    if !names.is_empty() {
        let tool =
            |name| json!({"name": name, "input_schema": {"type": "object", "properties": {}}});
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
    if let Some(Value::Array(kept)) = said.kept() {
        let mut calls = said.tool_calls.iter();
        let is_sent = |block: &&Value| block.is_object() && !is_blank(block);
        let sent = kept.iter().filter(is_sent).cloned().map(|mut block| {
            // An id that an earlier call has, too, was replaced.
            if block["type"] == "tool_use"
                && let Some(call) = calls.next()
            {
                block["id"] = (*call.id).into();
            }
            block
        });
        return sent.collect();
    }
    if let (Role::Tool, Some(id)) = (said.role, &said.tool_call_id) {
        return vec![json!({"type": "tool_result", "tool_use_id": id, "content": &*said.content})];
    }
    let call = |call: &ToolCall| {
        json!({"type": "tool_use", "id": call.id, "name": call.name,
               "input": arguments(&call.arguments)})
    };
    let pictures = said.pictures.iter().map(picture);
    pictures.chain(text_block(said)).chain(said.tool_calls.iter().map(call)).collect()
}

/// Builds a block with a picture or PDF. Checked with
/// vercel.com/docs/ai-gateway/sdks-and-apis/anthropic-messages-api/images.
fn picture(shown: &ShownAttachment) -> Value {
    let kind = if shown.is_pdf() { "document" } else { "image" };
    let media = shown.media;
    json!({"type": kind, "source": {"type": "base64", "media_type": media, "data": &*shown.data}})
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

/// A block of an answer, with the index that the server gave it.
struct AnthropicBlock {
    index: Option<u64>,
    said: Value,
    is_open: bool,
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct AnthropicDecoder {
    /// The blocks of the answer as they arrived. Reasoning before calls must be sent back with the
    /// results of the calls, in its place and with its signature.
    blocks: Vec<AnthropicBlock>,
    /// Merged usage reports. Later reports may contain only the changed values.
    usage: Value,
}

impl Decoder for AnthropicDecoder {
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        let index = index("index", &said["index"])?;
        match kind("type", &said["type"])? {
            "message_start" => {
                let message = object("message", &said["message"])?.unwrap_or(&Value::Null);
                self.message(message, out)?;
            }
            "content_block_start" => {
                if let Some(block) = object("content_block", &said["content_block"])? {
                    self.begin(index, block, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = object("delta", &said["delta"])? {
                    self.go_on(index, delta, out)?;
                }
            }
            "content_block_stop" => {
                if let Some(place) = self.place(index) {
                    self.blocks[place].is_open = false;
                }
            }
            "message_delta" => {
                let delta = object("delta", &said["delta"])?.unwrap_or(&Value::Null);
                if let Some(reason) = stop(&delta["stop_reason"])? {
                    out.stop = Some(reason);
                }
                self.report(&said["usage"], out);
            }
            "message_stop" => out.is_done = true,
            // The whole answer, in place of a stream.
            "message" => {
                self.message(said, out)?;
                out.is_done = true;
            }
            "" => return Err(Broken::malformed("an event of the answer has no type")),
            // A ping, or an event type added later.
            _ => {}
        }
        Ok(())
    }

    fn kept(&mut self, calls: &[ToolCall], _: &GatheredAnswer) -> Value {
        let blocks = std::mem::take(&mut self.blocks);
        let mut blocks: Vec<Value> = blocks.iter().map(|it| mended_value(&it.said)).collect();
        let made = blocks.iter_mut().filter(|block| block["type"] == "tool_use");
        for (block, call) in made.zip(calls) {
            block["input"] = arguments(&call.arguments);
            block["id"] = (*call.id).into();
        }
        match !calls.is_empty() && blocks.iter().any(is_thought) {
            true => blocks.into(),
            false => Value::Null,
        }
    }
}

impl AnthropicDecoder {
    fn message(&mut self, message: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        for block in list("content", &message["content"])? {
            let block = object("content", block)?.unwrap_or(&Value::Null);
            self.begin(None, block, out)?;
        }
        if let Some(reason) = stop(&message["stop_reason"])? {
            out.stop = Some(reason);
        }
        self.report(&message["usage"], out);
        Ok(())
    }

    /// Finds the block of an index; without an index, the last one that goes on. Some servers give all blocks
    /// the same index.
    fn place(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.blocks.iter().rposition(|block| block.index == index),
            None => self.blocks.iter().rposition(|block| block.is_open),
        }
    }

    fn begin(&mut self, index: Option<u64>, block: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        let place = self.blocks.len();
        let is_same =
            |known: &AnthropicBlock| known.index == index && known.said["id"] == block["id"];
        // The beginning of a call may come again.
        if block["id"].is_string() && self.blocks.iter().any(is_same) {
            return Ok(());
        }
        self.blocks.push(AnthropicBlock { index, said: block.clone(), is_open: true });
        match kind("type", &block["type"])? {
            "tool_use" => {
                let input = match &block["input"] {
                    // What comes before the input itself.
                    Value::Object(input) if input.is_empty() => ArgumentsPiece::More(String::new()),
                    input => calls::arguments(input)?,
                };
                let id = word("id", &block["id"])?;
                out.calls.add_at(place, CallPiece::new(id, calls::name(&block["name"])?, input))?;
            }
            "thinking" => out.reasoning(&text("thinking", &block["thinking"])?),
            "text" => out.text(&text("text", &block["text"])?),
            "" if block.get("text").is_some() => out.text(&text("text", &block["text"])?),
            "" => return Err(Broken::malformed("a block of the answer has no type")),
            _ => {}
        }
        Ok(())
    }

    fn go_on(&mut self, index: Option<u64>, delta: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        let place = self.place(index);
        has_one("delta", delta, &["type", "text", "thinking", "signature", "partial_json"])?;
        let kind = kind("type", &delta["type"])?;
        let is = |named: &str, field: &str| {
            kind == named || (kind.is_empty() && !delta[field].is_null())
        };
        if is("text_delta", "text") {
            out.text(&text("text", &delta["text"])?);
            self.keep(place, "text", delta);
        } else if is("thinking_delta", "thinking") {
            out.reasoning(&text("thinking", &delta["thinking"])?);
            self.keep(place, "thinking", delta);
        } else if is("signature_delta", "signature") {
            word("signature", &delta["signature"])?;
            self.keep(place, "signature", delta);
        } else if is("input_json_delta", "partial_json") {
            let is_ambiguous = || self.blocks.iter().filter(|it| it.is_open).nth(1).is_some();
            let place = place.filter(|_| index.is_some() || !is_ambiguous());
            let Some(place) = place else {
                return Err(Broken::malformed("a call's input comes without the call"));
            };
            // What is not for such a call is the input of a tool that the server itself runs.
            if self.blocks[place].said["type"] == "tool_use" {
                let more = calls::arguments(&delta["partial_json"])?;
                out.calls.add_at(place, CallPiece::new(String::new(), String::new(), more))?;
            }
        }
        Ok(())
    }

    fn report(&mut self, said: &Value, out: &mut GatheredAnswer) {
        for (name, value) in said.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage[&**name] = value.clone();
            }
        }
        if self.usage.is_object() {
            out.usage(usage(&self.usage));
        }
    }

    /// Appends a delta to a kept block.
    fn keep(&mut self, place: Option<usize>, name: &str, delta: &Value) {
        if let Some(place) = place {
            append(&mut self.blocks[place].said[name], &delta[name]);
        }
    }
}

/// Converts usage. In this interface, `input_tokens` excludes everything that was read from or
/// written to a cache.
fn usage(said: &Value) -> Usage {
    let cache_read = figure(&said["cache_read_input_tokens"]);
    let cache_written = figure(&said["cache_creation_input_tokens"]);
    let cached = cache_read.unwrap_or_default().saturating_add(cache_written.unwrap_or_default());
    Usage {
        input: figure(&said["input_tokens"]).map(|input| input.saturating_add(cached)),
        output: figure(&said["output_tokens"]),
        cache_read,
        cache_written,
        reasoning: None,
    }
}

#[cfg(test)]
mod tests;
