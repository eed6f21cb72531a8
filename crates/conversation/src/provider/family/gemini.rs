//! Google's Gemini API.

use serde_json::{Value, json};

use super::calls::{self, CallPiece};
use super::shape::{
    Shaped, figure, first, flag, has_one, kind, list, mended_value, object, text, word,
};
use super::{
    Broken, Decoder, FamilyFacts, GatheredAnswer, LimitsIn, append, arguments, effort, schema, set,
    stop,
};
use crate::provider::chat::{
    ChatMessage, Request, ShownAttachment, Stop, ToolChoice, ToolDefinition, Usage,
};
use crate::session::message::{Role, ToolCall};

/// Names of the contents of parts. What is not text or a call is not shown.
const CONTENTS: &[&str] = &[
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "function_call",
    "inlineData",
    "text",
    "thought",
    "thoughtSignature",
];

pub(super) static FACTS: FamilyFacts = FamilyFacts {
    usual_url: "https://generativelanguage.googleapis.com",
    usual_key: Some("GEMINI_API_KEY"),
    key_header: "x-goog-api-key",
    headers: &[],
    azure: None,
    version: "/v1beta",
    base: |path| match path.split_once("/models") {
        Some((base, rest)) if rest.is_empty() || rest.starts_with('/') => base,
        Some(_) => path,
        // The stable version lacks what requests need.
        None => path.strip_suffix("/v1").unwrap_or(path),
    },
    endpoints: &[],
    chat: |model| {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/models/{model}:streamGenerateContent?alt=sse")
    },
    models: "/models?pageSize=1000",
    listed: ["models", "name"],
    limits: LimitsIn::Entry,
    takes_pdf: Some(true),
    hottest: 2.0,
    samples_one_way: false,
    joins_results: true,
    effort: effort::gemini,
    body: |_, _, request, _| body(request),
    decoder: || Box::<GeminiDecoder>::default(),
};

pub(super) fn body(request: &Request) -> Value {
    let leading = request.messages.iter().take_while(|said| said.role == Role::System).count();
    let (instructions, rest) = request.messages.split_at(leading);
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for said in rest {
        let role = if said.role == Role::Assistant { "model" } else { "user" };
        let mut parts = parts(said, request);
        match contents.last_mut() {
            Some((last, known)) if *last == role => known.append(&mut parts),
            _ => contents.push((role, parts)),
        }
    }
    let content = |(role, parts): (&str, Vec<Value>)| json!({"role": role, "parts": parts});
    let mut body = json!({"contents": contents.into_iter().map(content).collect::<Vec<_>>()});
    if leading > 0 {
        let part = |said: &ChatMessage| json!({"text": &*said.content});
        body["systemInstruction"] =
            json!({"parts": instructions.iter().map(part).collect::<Vec<_>>()});
    }
    let mut config = json!({});
    set(&mut config, "maxOutputTokens", request.max_tokens);
    set(&mut config, "temperature", request.temperature);
    set(&mut config, "topP", request.top_p);
    if let Some(form) = &request.output {
        config["responseMimeType"] = "application/json".into();
        config["responseJsonSchema"] = form.schema.clone();
    }
    set(&mut body, "generationConfig", (config != json!({})).then_some(config));
    if !request.tools.is_empty() {
        let tool = |tool: &ToolDefinition| {
            json!({"name": tool.name, "description": tool.description,
                   "parametersJsonSchema": schema(tool)})
        };
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
        let config = match &request.choice {
            ToolChoice::Auto => None,
            ToolChoice::Any => Some(json!({"mode": "ANY"})),
            ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
            ToolChoice::None => Some(json!({"mode": "NONE"})),
        };
        let config = config.map(|config| json!({ "functionCallingConfig": config }));
        set(&mut body, "toolConfig", config);
    }
    body
}

fn parts(said: &ChatMessage, request: &Request) -> Vec<Value> {
    if let (Role::Tool, Some(id)) = (said.role, &said.tool_call_id) {
        // A result is identified by the name of its function.
        let name = request.called(id).unwrap_or(id);
        let mut answer = json!({"name": name, "response": {"result": &*said.content}});
        set(&mut answer, "id", given_id(request, id));
        return vec![json!({ "functionResponse": answer })];
    }
    if let Some(Value::Array(kept)) = said.kept() {
        return kept.clone();
    }
    let text = (!said.content.is_empty() || said.tool_calls.is_empty())
        .then(|| json!({"text": &*said.content}));
    let call = |call: &ToolCall| json!({"functionCall": {"name": call.name, "args": arguments(&call.arguments)}});
    // Checked with ai.google.dev/gemini-api/docs/document-processing, which names the media types,
    // and hexdocs.pm/gemini_ex/Gemini.Types.Part.html, which has the parts of `generateContent`.
    let picture = |shown: &ShownAttachment| json!({"inlineData": {"mimeType": shown.media, "data": &*shown.data}});
    let pictures = said.pictures.iter().map(picture);
    pictures.chain(text).chain(said.tool_calls.iter().map(call)).collect()
}

/// Returns the id of a call if the provider assigned it. The provider must not get an id that was
/// made up here.
fn given_id<'a>(request: &Request, id: &'a str) -> Option<&'a str> {
    let kept = request.caller(id)?.kept()?.as_array()?;
    kept.iter().any(|part| part["functionCall"]["id"] == id).then_some(id)
}

/// Reads an answer.
#[derive(Default)]
pub(super) struct GeminiDecoder {
    /// The parts of the answer as they arrived. Signatures must be sent back in their original
    /// parts, with the results of the calls. A part with a signature must not be merged with
    /// another.
    parts: Vec<Value>,
}

impl Decoder for GeminiDecoder {
    fn take(&mut self, said: &Value, out: &mut GatheredAnswer) -> Result<(), Broken> {
        // Some proxies put each piece into a member of its own.
        let said = object("response", &said["response"])?.unwrap_or(said);
        let known =
            ["candidates", "usageMetadata", "promptFeedback", "usage_metadata", "modelVersion"];
        if !known.iter().any(|name| said.get(name).is_some()) {
            return Err(Broken::malformed("a piece of the answer has no candidates"));
        }
        let candidates = list("candidates", &said["candidates"])?;
        let candidate = object("candidates", candidates.first().unwrap_or(&Value::Null))?;
        let candidate = candidate.unwrap_or(&Value::Null);
        let members = ["content", "finishReason", "finish_reason", "index", "safetyRatings"];
        has_one("candidates", candidate, &members)?;
        let content = object("content", &candidate["content"])?.unwrap_or(&Value::Null);
        for part in list("parts", &content["parts"])? {
            if let Some(part) = object("parts", part)? {
                self.add_part(part, out)?;
            }
        }
        let reported = first(said, &["usageMetadata", "usage_metadata"]);
        if reported.is_object() {
            out.usage(usage(reported));
        }
        if let Some(reason) = stop(first(candidate, &["finishReason", "finish_reason"]))? {
            out.stop = Some(reason);
        }
        let feedback = object("promptFeedback", &said["promptFeedback"])?.unwrap_or(&Value::Null);
        if !kind("blockReason", &feedback["blockReason"])?.is_empty() {
            out.stop = Some(Stop::Filtered);
        }
        Ok(())
    }

    fn kept(&mut self, calls: &[ToolCall], _: &GatheredAnswer) -> Value {
        let parts = std::mem::take(&mut self.parts);
        let wanted = |part: &Value| is_signed(part) || part["functionCall"]["id"].is_string();
        match !calls.is_empty() && parts.iter().any(wanted) {
            true => mended_value(&parts.into()),
            false => Value::Null,
        }
    }
}

impl GeminiDecoder {
    fn add_part(&mut self, part: &Value, out: &mut GatheredAnswer) -> Shaped<()> {
        has_one("parts", part, CONTENTS)?;
        let thought = flag("thought", &part["thought"])?;
        let more = text("text", &part["text"])?;
        if thought {
            out.reasoning(&more)
        } else {
            out.text(&more)
        }
        let call = object("functionCall", first(part, &["functionCall", "function_call"]))?;
        let mut part = part.clone();
        if let Some(call) = call {
            // Most calls have only a name, and each comes whole.
            let id = word("id", &call["id"])?;
            let (name, arguments) = (calls::name(&call["name"])?, calls::arguments(&call["args"])?);
            out.calls.add_whole(CallPiece::new(id, name, arguments))?;
            part["functionCall"] = call.clone();
            if let Some(args) = call["args"].as_str() {
                part["functionCall"]["args"] = super::arguments(args);
            }
            part.as_object_mut().map(|part| part.remove("function_call"));
        }
        if call.is_some() || part["text"].is_string() || is_signed(&part) {
            self.keep(part, thought);
        }
        Ok(())
    }

    fn keep(&mut self, part: Value, thought: bool) {
        let is_text = |part: &Value| {
            part["text"].is_string() && !is_signed(part) && part["functionCall"].is_null()
        };
        match self.parts.last_mut().filter(|last| is_text(last) && is_text(&part)) {
            // Unsigned reasoning is only for the user and is not sent back.
            _ if thought && !is_signed(&part) => {}
            Some(last) => append(&mut last["text"], &part["text"]),
            None => self.parts.push(part),
        }
    }
}

fn is_signed(part: &Value) -> bool {
    part["thoughtSignature"].is_string()
}

fn usage(said: &Value) -> Usage {
    let thoughts = figure(&said["thoughtsTokenCount"]);
    // Either count may be missing: that of the text, if the limit was reached during reasoning.
    let output = figure(&said["candidatesTokenCount"]).or(thoughts.map(|_| 0));
    Usage {
        input: figure(&said["promptTokenCount"]),
        output: output.map(|output| output.saturating_add(thoughts.unwrap_or_default())),
        cache_read: figure(&said["cachedContentTokenCount"]),
        cache_written: None,
        reasoning: thoughts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::chat::{KEPT, StreamEvent};
    use crate::provider::family::{AnswerReader, Family};

    fn kept(parts: &Value) -> Option<Value> {
        let (mut reader, mut pieces) = (AnswerReader::new(Family::Gemini, 1, false), Vec::new());
        let end = json!({"candidates": [{"finishReason": "STOP"}]});
        let said = |part: &Value| json!({"candidates": [{"content": {"parts": [part]}}]});
        for said in parts.as_array().unwrap().iter().map(said).chain([end]) {
            reader.take(&said.to_string(), &mut pieces).unwrap();
        }
        assert!(reader.closed(&mut pieces));
        pieces.into_iter().find_map(|piece| match piece {
            StreamEvent::Opaque(kept) => Some(kept).filter(|kept| !kept[KEPT].is_null()),
            _ => None,
        })
    }

    #[track_caller]
    fn check(parts: &Value, expected: Option<Value>) {
        assert_eq!(kept(parts).map(|kept| kept[KEPT].clone()), expected);
    }

    #[test]
    fn signed_parts_are_kept_as_they_came() {
        let call = json!({"functionCall": {"name": "f", "args": {}}});
        let signed = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"});
        let text = |text: &str| json!({"text": text});
        check(&json!([text("a"), text("b"), call]), None);
        check(&json!([text("a"), {"text": "", "thoughtSignature": "c2ln"}]), None);
        check(
            &json!([{"text": "t", "thought": true}, text("a"), text("b"), signed, call]),
            Some(json!([text("ab"), signed, call])),
        );
        let last = json!({"text": "", "thoughtSignature": "c2ln"});
        let parts = json!([text("a"), last, text("b"), call]);
        check(&parts, Some(parts.clone()));
    }

    #[test]
    fn thoughts_are_output_too() {
        let output = |said: Value| usage(&said).output;
        assert_eq!(output(json!({"candidatesTokenCount": 3, "thoughtsTokenCount": 4})), Some(7));
        assert_eq!(output(json!({"candidatesTokenCount": 3})), Some(3));
        assert_eq!(output(json!({"thoughtsTokenCount": 4})), Some(4));
        assert_eq!(output(json!({})), None);
        let absurd = json!({"candidatesTokenCount": u64::MAX, "thoughtsTokenCount": 1});
        assert_eq!(output(absurd), Some(u64::MAX));
    }

    #[test]
    fn an_id_that_the_provider_gave_goes_back_to_it() {
        let opaque = kept(&json!([{"functionCall": {"name": "f", "args": {}, "id": "f-1"}}]));
        let call = |id: &str| ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into() };
        let answer = |id: &str| ChatMessage {
            tool_calls: vec![call(id)],
            opaque: opaque.clone(),
            ..ChatMessage::new(Role::Assistant, "")
        };
        let response = |id: &str| {
            let result =
                ChatMessage { tool_call_id: Some(id.into()), ..ChatMessage::new(Role::Tool, "x") };
            let messages = vec![ChatMessage::new(Role::User, "q"), answer(id), result];
            let body = body(&Request { messages, ..Request::default() });
            body["contents"][2]["parts"][0]["functionResponse"].clone()
        };
        assert_eq!(response("f-1"), json!({"name": "f", "id": "f-1", "response": {"result": "x"}}));
        assert_eq!(response("call-1-1"), json!({"name": "f", "response": {"result": "x"}}));
    }
}
