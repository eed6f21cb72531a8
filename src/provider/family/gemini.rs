//! Google's Gemini API.

use serde_json::{Value, json};

use super::{Broken, CallIds, Decoder, add_text, append, arguments, set};
use crate::provider::chat::{ChatMessage, Request, Stop, StreamEvent, Tool, Usage};
use crate::provider::error::ErrorKind;
use crate::session::message::{Role, ToolCall};

/// Name under which an answer's parts are kept until its turn ends.
const FAMILY: &str = "gemini";

pub(super) fn address(base: &str, model: &str) -> String {
    let base = base.trim_end_matches("/v1beta");
    let model = model.strip_prefix("models/").unwrap_or(model);
    format!("{base}/v1beta/models/{model}:streamGenerateContent?alt=sse")
}

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
    set(&mut body, "generationConfig", (config != json!({})).then_some(config));
    if !request.tools.is_empty() {
        let tool = |tool: &Tool| {
            json!({"name": tool.name, "description": tool.description,
                   "parametersJsonSchema": tool.schema})
        };
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
        let none = json!({"functionCallingConfig": {"mode": "NONE"}});
        set(&mut body, "toolConfig", request.without_calls.then_some(none));
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
    if let Some(Value::Array(kept)) = said.kept(FAMILY) {
        return kept.clone();
    }
    let text = (!said.content.is_empty() || said.tool_calls.is_empty())
        .then(|| json!({"text": &*said.content}));
    let call = |call: &ToolCall| json!({"functionCall": {"name": call.name, "args": arguments(&call.arguments)}});
    text.into_iter().chain(said.tool_calls.iter().map(call)).collect()
}

/// Returns the id of a call if the provider assigned it. The provider must not get an id that was
/// made up here.
fn given_id<'a>(request: &Request, id: &'a str) -> Option<&'a str> {
    let kept = request.caller(id)?.kept(FAMILY)?.as_array()?;
    kept.iter().any(|part| part["functionCall"]["id"] == id).then_some(id)
}

pub(super) struct Decode {
    ids: CallIds,
    /// The parts of the answer as they arrived. Signatures must be sent back in their original
    /// parts, with the results of the calls. A part with a signature must not be merged with
    /// another.
    parts: Vec<Value>,
    stop: Option<Stop>,
    ended: bool,
}

impl Decoder for Decode {
    fn take(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken> {
        if let Some(error) = said.get("error") {
            return Err(failure(error));
        }
        let known = ["candidates", "usageMetadata", "promptFeedback"];
        if !known.iter().any(|name| said.get(name).is_some()) {
            return Err(Broken::malformed("a piece of the answer has no candidates"));
        }
        let candidate = &said["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.add_part(part, pieces);
        }
        if said["usageMetadata"].is_object() {
            pieces.push(StreamEvent::Usage(usage(&said["usageMetadata"])));
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.stop = Some(stop(reason));
        }
        if said["promptFeedback"]["blockReason"].is_string() {
            self.stop = Some(Stop::Refused);
        }
        Ok(())
    }

    fn closed(&mut self, pieces: &mut Vec<StreamEvent>) -> bool {
        if let Some(stop) = self.stop.take() {
            let calls = stop == Stop::Finished && self.ids.calls > 0;
            pieces.extend(self.kept().map(StreamEvent::Opaque));
            pieces.push(StreamEvent::Stopped(if calls { Stop::Calls } else { stop }));
            self.ended = true;
        }
        self.ended
    }
}

impl Decode {
    pub(super) fn new(stamp: i64) -> Self {
        let ids = CallIds { stamp, calls: 0 };
        Self { ids, parts: Vec::new(), stop: None, ended: false }
    }

    fn add_part(&mut self, part: &Value, pieces: &mut Vec<StreamEvent>) {
        let thought = part["thought"].as_bool().unwrap_or_default();
        let piece = if thought { StreamEvent::Reasoning } else { StreamEvent::Text };
        add_text(pieces, &part["text"], piece);
        let call = &part["functionCall"];
        if let Some(name) = call["name"].as_str() {
            // Most calls have only a name; an id distinguishes two calls of the same function.
            let id = self.ids.next(&call["id"]);
            let arguments = match &call["args"] {
                Value::Null => "{}".to_owned(),
                arguments => arguments.to_string(),
            };
            pieces.push(StreamEvent::Call(ToolCall { id, name: name.to_owned(), arguments }));
        }
        self.keep(part, thought);
    }

    fn keep(&mut self, part: &Value, thought: bool) {
        let is_text = |part: &Value| {
            part["text"].is_string() && !is_signed(part) && part["functionCall"].is_null()
        };
        match self.parts.last_mut().filter(|last| is_text(last) && is_text(part)) {
            // Unsigned reasoning is only for the user and is not sent back.
            _ if thought && !is_signed(part) => {}
            Some(last) => append(&mut last["text"], &part["text"]),
            None => self.parts.push(part.clone()),
        }
    }

    fn kept(&mut self) -> Option<Value> {
        let parts = std::mem::take(&mut self.parts);
        let wanted = |part: &Value| is_signed(part) || part["functionCall"]["id"].is_string();
        (self.ids.calls > 0 && parts.iter().any(wanted)).then(|| json!({ FAMILY: parts }))
    }
}

fn is_signed(part: &Value) -> bool {
    part["thoughtSignature"].is_string()
}

fn stop(reason: &str) -> Stop {
    match reason {
        "STOP" => Stop::Finished,
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stop::Refused,
        other => Stop::Other(other.to_owned()),
    }
}

fn usage(said: &Value) -> Usage {
    let thoughts = said["thoughtsTokenCount"].as_u64();
    // Either count may be missing: that of the text, if the limit was reached during reasoning.
    let output = said["candidatesTokenCount"].as_u64().or(thoughts.map(|_| 0));
    Usage {
        input: said["promptTokenCount"].as_u64(),
        output: output.map(|output| output.saturating_add(thoughts.unwrap_or_default())),
        cache_read: said["cachedContentTokenCount"].as_u64(),
        cache_written: None,
        reasoning: thoughts,
    }
}

fn failure(error: &Value) -> Broken {
    let kind = match error["status"].as_str() {
        Some("UNAUTHENTICATED" | "PERMISSION_DENIED") => ErrorKind::Authentication,
        Some("RESOURCE_EXHAUSTED") => ErrorKind::RateLimited,
        Some("INVALID_ARGUMENT" | "NOT_FOUND" | "FAILED_PRECONDITION") => ErrorKind::BadRequest,
        _ => ErrorKind::Unavailable,
    };
    Broken::told(kind, error["message"].as_str().unwrap_or("no reason given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(parts: &Value) -> Option<Value> {
        let mut decoder = Decode::new(1);
        let mut pieces = Vec::new();
        for part in parts.as_array().unwrap() {
            let said = json!({"candidates": [{"content": {"parts": [part]}}]});
            decoder.take(&said, &mut pieces).unwrap();
        }
        decoder.stop = Some(Stop::Finished);
        assert!(decoder.closed(&mut pieces));
        pieces.into_iter().find_map(|piece| match piece {
            StreamEvent::Opaque(kept) => Some(kept),
            _ => None,
        })
    }

    #[track_caller]
    fn check(parts: &Value, expected: Option<Value>) {
        assert_eq!(kept(parts), expected.map(|parts| json!({ FAMILY: parts })));
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
