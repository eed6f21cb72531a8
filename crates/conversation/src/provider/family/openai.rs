//! `OpenAI`'s chat completions API, and servers that imitate it.

use serde_json::{Value, json};

use super::shape::{Shaped, figure, first, has_one, list, mended_value, object, said, text, word};
use super::{
    Broken, DEPLOYMENTS, Decoder, FamilyFacts, GatheredAnswer, LimitsIn, append, effort, functions,
    set, stop,
};
use crate::provider::chat::{ChatMessage, OutputSchema, Request, ShownAttachment, Usage};
use crate::provider::refusal::ServerRefusal;
use crate::session::message::ToolCall;

/// Field names that servers use for reasoning. Some servers send the reasoning under both names.
const REASONING: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "reasoning_text"];
/// The field that servers with [`REASONING`] of this name want with each later answer, and what it
/// has for an answer without reasoning. DeepSeek refuses an empty text.
const WANTED: &str = "reasoning_content";
const NO_REASONING: &str = " ";

/// Endpoints of both interfaces of `OpenAI`.
pub(super) const ENDPOINTS: &[&str] = &["/chat/completions", "/models", "/responses"];

pub(super) const FACTS: FamilyFacts = FamilyFacts {
    usual_url: "https://api.openai.com/v1",
    usual_key: Some("OPENAI_API_KEY"),
    key_header: "authorization",
    headers: &[],
    azure: Some(|model| format!("{DEPLOYMENTS}{model}/chat/completions")),
    version: "",
    base: |path| path,
    endpoints: ENDPOINTS,
    chat: |_| "/chat/completions".to_owned(),
    models: "/models",
    listed: ["data", "id"],
    limits: LimitsIn::List,
    takes_pdf: None,
    hottest: 2.0,
    samples_one_way: false,
    joins_results: false,
    effort: effort::openai,
    body: |base, model, request, _| body(base, model, request),
    decoder: || Box::<OpenaiDecoder>::default(),
};

pub(super) fn body(base: &str, model: &str, request: &Request) -> Value {
    let mut messages: Vec<Value> = request.messages.iter().map(message).collect();
    // A server that gave reasoning before its calls may refuse later answers without it.
    let begins = messages.iter().position(|said| said[WANTED].is_string());
    for said in messages.iter_mut().skip(begins.unwrap_or(usize::MAX)) {
        fill_in_reasoning(said);
    }
    let mut body = json!({
        "model": model,
        "messages": messages,
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
    set(&mut body, "top_p", request.top_p);
    if !request.tools.is_empty() {
        body["tools"] = functions(&request.tools);
        let of_tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        set(&mut body, "tool_choice", request.choice.word(of_tool));
    }
    let form = |form: &OutputSchema| {
        let OutputSchema { name, schema } = form;
        json!({"type": "json_schema",
               "json_schema": {"name": name, "schema": schema, "strict": true}})
    };
    set(&mut body, "response_format", request.output.as_ref().map(form));
    body
}

/// Gives an answer a field for reasoning, unless it has one.
pub(in crate::provider) fn fill_in_reasoning(said: &mut Value) {
    if said["role"] == "assistant" && said[WANTED].as_str().is_none_or(str::is_empty) {
        said[WANTED] = NO_REASONING.into();
    }
}

fn message(said: &ChatMessage) -> Value {
    let kept = said.kept();
    let mut message = json!({"role": said.role.name(), "content": &*said.content});
    if !said.pictures.is_empty() {
        // Checked with OpenAI's guide to PDF files (developers.openai.com/docs/guides/pdf-files) and
        // with vercel.com/docs/ai-gateway/sdks-and-apis/openai-chat-completions/images.
        let picture = |shown: &ShownAttachment| match shown.is_pdf() {
            true => json!({"type": "file",
                           "file": {"filename": shown.name, "file_data": shown.url()}}),
            false => json!({"type": "image_url", "image_url": {"url": shown.url()}}),
        };
        let mut parts: Vec<Value> = said.pictures.iter().map(picture).collect();
        if !said.content.is_empty() {
            parts.push(json!({"type": "text", "text": &*said.content}));
        }
        message["content"] = parts.into();
    }
    if !said.tool_calls.is_empty() {
        let call = |(at, call): (usize, &ToolCall)| {
            let mut map = json!({"id": call.id, "type": "function",
                                 "function": {"name": call.name, "arguments": call.arguments}});
            let extra = kept.and_then(|kept| kept["calls"].get(at)).filter(|it| !it.is_null());
            set(&mut map, "extra_content", extra.cloned());
            map
        };
        message["tool_calls"] = said.tool_calls.iter().enumerate().map(call).collect();
        if said.content.is_empty() {
            message["content"] = Value::Null;
        }
    }
    set(&mut message, "tool_call_id", said.tool_call_id.clone());
    if let Some(Value::Object(fields)) = kept.map(|kept| &kept["message"]) {
        for (name, value) in fields {
            message[&**name] = value.clone();
        }
    }
    message
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct OpenaiDecoder {
    /// Fields of the message that go back: reasoning, for `DeepSeek`, Moonshot and `OpenRouter`.
    message: Value,
    /// True once a piece had a delta. A whole message after that only repeats the deltas.
    has_delta: bool,
}

impl OpenaiDecoder {
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

    /// Reads reasoning, and keeps it under the name that the server gave it.
    fn add_reasoning(&mut self, said: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        let details = list("reasoning_details", &said["reasoning_details"])?;
        let mut shown = String::new();
        for name in REASONING {
            shown = text(name, &said[name])?;
            if !shown.is_empty() {
                append(&mut self.message[name], &shown.as_str().into());
                break;
            }
        }
        for detail in details {
            let detail = object("reasoning_details", detail)?.unwrap_or(&Value::Null);
            if shown.is_empty() {
                out.reasoning(&text("reasoning_details", first(detail, &["text", "summary"]))?);
            }
            self.add_detail(detail);
        }
        out.reasoning(&shown);
        Ok(())
    }

    fn add_message(&mut self, message: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        self.add_reasoning(message, out)?;
        let content = said("content", &message["content"])?;
        out.reasoning(&content.reasoning);
        out.text(&content.text);
        out.text(&text("refusal", &message["refusal"])?);
        out.calls.add_all(&message["tool_calls"])?;
        // The earlier form, of one call.
        if let Some(call) = object("function_call", &message["function_call"])? {
            out.calls.add_all(call)?;
        }
        Ok(())
    }
}

impl Decoder for OpenaiDecoder {
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        let choices = list("choices", &said["choices"])?;
        let choice = object("choices", choices.first().unwrap_or(&Value::Null))?;
        let places = [said, &said["x_groq"], choice.unwrap_or(&Value::Null)];
        for usage in places.into_iter().map(|place| &place["usage"]) {
            if usage.is_object() {
                out.usage(read_usage(usage));
            }
        }
        let Some(choice) = choice else {
            return match said["choices"].is_null() && says_something(said) {
                true => Err(Broken::malformed("a piece of the answer has no choices")),
                false => Ok(()),
            };
        };
        has_one(
            "choices",
            choice,
            &["delta", "message", "text", "finish_reason", "index", "error"],
        )?;
        if let Some(refusal) = ServerRefusal::in_answer(choice) {
            return Err(refusal.into());
        }
        let delta = object("delta", &choice["delta"])?;
        let whole = object("message", &choice["message"])?;
        self.has_delta |= delta.is_some();
        match (delta, whole) {
            (Some(delta), _) if *delta != json!({}) => self.add_message(delta, out)?,
            (_, Some(whole)) if !self.has_delta || (!out.has_begun && out.calls.is_empty()) => {
                self.add_message(whole, out)?;
            }
            _ => out.text(&word("text", &choice["text"])?),
        }
        if let Some(reason) = stop(&choice["finish_reason"])? {
            out.stop = Some(reason);
        }
        Ok(())
    }

    fn kept(&mut self, calls: &[ToolCall], out: &GatheredAnswer) -> Value {
        // This text only repeats the details.
        if let Some(fields) = self.message.as_object_mut()
            && fields.contains_key("reasoning_details")
        {
            fields.remove("reasoning");
        }
        let mut message =
            if calls.is_empty() { Value::Null } else { mended_value(&self.message.take()) };
        if out.think.found && !out.text.is_empty() {
            message["content"] = (*out.text).into();
        }
        match message.is_null() && out.extras.is_empty() {
            true => Value::Null,
            false => json!({"message": message, "calls": out.extras}),
        }
    }
}

/// Returns whether a piece without choices may be a part of an answer, as other interfaces have it.
/// Others tell of the progress, the usage or the sources.
fn says_something(said: &Value) -> bool {
    const CONTENTS: &[&str] = &[
        "answer",
        "candidates",
        "content",
        "content_block",
        "data",
        "delta",
        "generations",
        "message",
        "output",
        "outputs",
        "reply",
        "response",
        "result",
        "text",
    ];
    CONTENTS.iter().any(|name| !said[*name].is_null())
}

fn read_usage(said: &Value) -> Usage {
    Usage {
        input: figure(&said["prompt_tokens"]),
        output: figure(&said["completion_tokens"]),
        // DeepSeek and Moonshot use other names.
        cache_read: figure(&said["prompt_tokens_details"]["cached_tokens"])
            .or_else(|| figure(&said["prompt_cache_hit_tokens"]))
            .or_else(|| figure(&said["cached_tokens"])),
        cache_written: figure(&said["prompt_tokens_details"]["cache_write_tokens"]),
        reasoning: figure(&said["completion_tokens_details"]["reasoning_tokens"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::{KEPT, StreamEvent};
    use crate::provider::error::ErrorKind;
    use crate::provider::family::{AnswerReader, Family};
    use crate::session::message::Role;

    /// Checks what is kept of an answer that consists of these deltas and has a call.
    #[track_caller]
    fn check(deltas: &[Value], message: &Value) {
        let (mut reader, mut pieces) = (AnswerReader::new(Family::Openai, 1, false), Vec::new());
        let call = json!({"tool_calls": [{"index": 0, "function": {"name": "f"}}]});
        for delta in deltas.iter().chain([&call]) {
            let said = json!({"choices": [{"delta": delta}]});
            reader.take(&said.to_string(), &mut pieces).unwrap();
        }
        reader.take("[DONE]", &mut pieces).unwrap();
        let kept = pieces.iter().find_map(|piece| match piece {
            StreamEvent::Opaque(kept) => Some(kept[KEPT]["message"].clone()),
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
            let refusal = ServerRefusal::in_answer(&json!({ "error": error })).unwrap();
            assert_eq!(refusal.kind, ErrorKind::QuotaExhausted, "{error}");
        }
    }

    #[test]
    fn a_piece_without_choices_is_left_out_unless_it_may_have_the_answer() {
        let is_read = |said: Value| {
            AnswerReader::new(Family::Openai, 1, false)
                .take(&said.to_string(), &mut Vec::new())
                .is_ok()
        };
        for said in [json!({"status": "processing"}), json!({"citations": ["x"]}), json!({})] {
            assert!(is_read(said.clone()), "{said}");
        }
        for said in [json!({"candidates": []}), json!({"choices": null, "response": "x"})] {
            assert!(!is_read(said.clone()), "{said}");
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
    fn who_gave_reasoning_with_calls_gets_some_with_each_later_answer() {
        let answer = |kept: Option<Value>| ChatMessage {
            opaque: kept.map(|message| json!({ KEPT: { "message": message } })),
            ..ChatMessage::new(Role::Assistant, "b")
        };
        let kept = json!({"reasoning_content": "r"});
        let messages = vec![answer(None), answer(Some(kept)), answer(None)];
        let sent = body("http://h", "m", &Request { messages, ..Request::default() });
        let reasoning: Vec<&Value> =
            sent["messages"].as_array().unwrap().iter().map(|it| &it[WANTED]).collect();
        assert_eq!(reasoning, [&Value::Null, &json!("r"), &json!(NO_REASONING)]);
    }
}
