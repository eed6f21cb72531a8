//! What the strictest servers refuse: the chat templates of Gemma, Mistral and Qwen, and the
//! interfaces of OpenAI, Anthropic, Gemini and Ollama, with every member that they do not document. Every request to an [`Endpoint`] is checked.
//!
//! [`Endpoint`]: crate::endpoint::Endpoint

use std::collections::HashSet;

use crate::support::Json;

/// Why a server refuses a request.
type Refusal = Result<(), String>;

/// Whether any server would refuse this; `Ok` for what is no conversation.
pub(crate) fn check(path: &str, body: &Json) -> Refusal {
    let path = path.split('?').next().unwrap_or_default();
    let checked = members(path, body).and_then(|()| match path {
        _ if path.ends_with("/chat/completions") => templates(body, Api::Openai),
        _ if path.ends_with("/responses") => responses(body),
        _ if path.ends_with("/api/chat") => templates(body, Api::Ollama),
        _ if path.ends_with("/v1/messages") => anthropic(body),
        _ if path.contains(":streamGenerateContent") => gemini(body),
        _ => Ok(()),
    });
    checked.map_err(|why| format!("{why}: {body}"))
}

/// The members that each interface documents: by the end of the path, and by the place in the body.
const MEMBERS: &[(&str, &str, &[&str])] = &[
    (
        "/chat/completions",
        "",
        &[
            "model",
            "messages",
            "stream",
            "stream_options",
            "max_tokens",
            "max_completion_tokens",
            "temperature",
            "top_p",
            "seed",
            "tools",
            "tool_choice",
            "reasoning_effort",
        ],
    ),
    (
        "/responses",
        "",
        &[
            "model",
            "input",
            "instructions",
            "stream",
            "store",
            "include",
            "max_output_tokens",
            "temperature",
            "top_p",
            "tools",
            "tool_choice",
            "reasoning",
            "service_tier",
        ],
    ),
    ("/responses", "/reasoning", &["effort", "summary"]),
    (
        "/messages",
        "",
        &[
            "model",
            "messages",
            "system",
            "stream",
            "max_tokens",
            "temperature",
            "top_p",
            "top_k",
            "tools",
            "tool_choice",
            "thinking",
            "output_config",
        ],
    ),
    ("/messages", "/thinking", &["type", "budget_tokens"]),
    ("/messages", "/output_config", &["effort"]),
    (
        ":streamGenerateContent",
        "",
        &[
            "contents",
            "systemInstruction",
            "generationConfig",
            "tools",
            "toolConfig",
            "safetySettings",
        ],
    ),
    (
        ":streamGenerateContent",
        "/generationConfig",
        &["maxOutputTokens", "temperature", "topP", "topK", "thinkingConfig"],
    ),
    (
        ":streamGenerateContent",
        "/generationConfig/thinkingConfig",
        &["thinkingBudget", "thinkingLevel", "includeThoughts"],
    ),
    ("/api/chat", "", &["model", "messages", "stream", "options", "tools", "think", "keep_alive"]),
    ("/api/chat", "/options", &["num_ctx", "num_predict", "temperature", "top_p", "top_k"]),
];

fn members(path: &str, body: &Json) -> Refusal {
    for (_, place, known) in MEMBERS.iter().filter(|(end, ..)| path.ends_with(end)) {
        let names = body.pointer(place).and_then(Json::as_object);
        for name in names.into_iter().flat_map(|names| names.keys()) {
            require(known.contains(&&**name), format!("Unknown parameter: '{place}/{name}'"))?;
        }
    }
    Ok(())
}

/// The words of a refusal, as each of the interfaces has them.
pub(crate) fn refusal(why: &str) -> String {
    serde_json::json!({"error": {"message": why}}).to_string()
}

fn require(so: bool, what: impl Into<String>) -> Refusal {
    if so { Ok(()) } else { Err(what.into()) }
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

fn says_something(value: &Json) -> bool {
    match value.as_array() {
        Some(parts) => !parts.is_empty() && parts.iter().all(is_part),
        None => !text(value).trim().is_empty(),
    }
}

/// Whether it is a part of a message as OpenAI's chat completions take it.
fn is_part(part: &Json) -> bool {
    let (picture, file) = (text(&part["image_url"]["url"]), text(&part["file"]["file_data"]));
    match text(&part["type"]) {
        "text" => says_something(&part["text"]),
        "image_url" => picture.starts_with("data:image/") && picture.contains(";base64,"),
        "file" => {
            file.starts_with("data:application/pdf;base64,") && part["file"]["filename"].is_string()
        }
        _ => false,
    }
}

/// Letters, digits, `_` and `-`, as OpenAI, Anthropic and Gemini all take them.
fn check_name(name: &Json) -> Refusal {
    let name = text(name);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    require(begins && name.len() <= 64 && name.chars().all(fits), format!("a tool named {name:?}"))
}

fn check_declared(name: &Json, schema: &Json) -> Refusal {
    check_name(name)?;
    require(schema["type"] == "object", "the schema of a tool is no object")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Api {
    Openai,
    Ollama,
}

/// Where a conversation stands, to a template.
#[derive(Default)]
struct Standing {
    /// Who spoke last among those that take turns.
    last: &'static str,
    /// The calls that wait for their results: ids, or names where there are no ids.
    waiting: Vec<String>,
    ids: HashSet<String>,
}

/// The interfaces that put messages into a chat template of the model.
fn templates(body: &Json, api: Api) -> Refusal {
    let messages = list(&body["messages"]);
    for tool in list(&body["tools"]) {
        require(tool["type"] == "function", "a tool that is no function")?;
        check_declared(&tool["function"]["name"], &tool["function"]["parameters"])?;
    }
    let mut standing = Standing { last: "assistant", ..Standing::default() };
    for (at, message) in messages.iter().enumerate() {
        let checked = match text(&message["role"]) {
            "system" => require(at == 0, "System message must be at the beginning")
                .and_then(|()| require(says_something(&message["content"]), "no system text")),
            "user" => standing.user(message),
            "assistant" => standing.assistant(message, api),
            "tool" => standing.result(message, api),
            other => Err(format!("Unknown role {other:?}")),
        };
        checked.map_err(|why| format!("message {at}: {why}"))?;
    }
    require(standing.waiting.is_empty(), "calls without results at the end")?;
    require(messages.iter().any(|said| said["role"] == "user"), "No user query found in messages")?;
    let last = messages.last().map_or("", |said| text(&said["role"]));
    require(["user", "tool"].contains(&last), "Expected last role User or Tool")
}

impl Standing {
    fn user(&mut self, message: &Json) -> Refusal {
        // Results of tools are not turns to Mistral's template: after them comes the assistant.
        let alternates = self.last == "assistant" && self.waiting.is_empty();
        self.last = "user";
        require(alternates, "roles must alternate user/assistant/user/assistant/...")?;
        require(says_something(&message["content"]), "the user says nothing")
    }

    fn assistant(&mut self, message: &Json, api: Api) -> Refusal {
        let alternates = self.last != "assistant" && self.waiting.is_empty();
        require(alternates, "roles must alternate user/assistant/user/assistant/...")?;
        let calls = list(&message["tool_calls"]);
        if calls.is_empty() {
            self.last = "assistant";
            return require(says_something(&message["content"]), "the assistant says nothing");
        }
        self.last = "calls";
        let kept =
            ["reasoning_content", "reasoning_details"].iter().any(|it| !message[*it].is_null());
        calls.iter().try_for_each(|call| self.call(call, api, kept))
    }

    fn call(&mut self, call: &Json, api: Api, is_own: bool) -> Refusal {
        let function = &call["function"];
        check_name(&function["name"])?;
        if api == Api::Ollama {
            self.waiting.push(text(&function["name"]).to_owned());
            return require(function["arguments"].is_object(), "arguments that are no object");
        }
        let id = text(&call["id"]).to_owned();
        // What the server gave in this very turn it takes back.
        let own = is_own || !call["extra_content"].is_null();
        let alphanumeric = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        require(
            alphanumeric || (own && !id.is_empty() && id.len() <= 64),
            format!("Tool call IDs should be alphanumeric strings with length 9, got {id:?}"),
        )?;
        require(self.ids.insert(id.clone()), "two calls of one id")?;
        require(call["type"] == "function", "a call of no function")?;
        let arguments = serde_json::from_str::<Json>(text(&function["arguments"]));
        require(arguments.is_ok_and(|parsed| parsed.is_object()), "arguments that are no object")?;
        self.waiting.push(id);
        Ok(())
    }

    fn result(&mut self, message: &Json, api: Api) -> Refusal {
        let named = if api == Api::Openai { "tool_call_id" } else { "tool_name" };
        let next = self.waiting.first().cloned();
        require(next.is_some(), "a result without a call before it")?;
        require(next.as_deref() == message[named].as_str(), "a result that is not in its place")?;
        self.waiting.remove(0);
        require(says_something(&message["content"]), "a result that says nothing")
    }
}

fn responses(body: &Json) -> Refusal {
    require(body["store"] == false, "store must be false")?;
    if !body["instructions"].is_null() {
        require(says_something(&body["instructions"]), "instructions must have a text")?;
    }
    for tool in list(&body["tools"]) {
        require(tool["type"] == "function", "a tool that is no function")?;
        require(tool["strict"] == false, "strict: all properties must be required")?;
        check_declared(&tool["name"], &tool["parameters"])?;
    }
    let (mut waiting, mut ids): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    let input = list(&body["input"]);
    for (at, item) in input.iter().enumerate() {
        match text(&item["type"]) {
            "message" => {
                let part = if item["role"] == "assistant" { "output_text" } else { "input_text" };
                let fits = |it: &Json| match text(&it["type"]) {
                    "input_image" => text(&it["image_url"]).starts_with("data:image/"),
                    "input_file" => {
                        text(&it["file_data"]).starts_with("data:application/pdf;base64,")
                            && it["filename"].is_string()
                    }
                    kind => kind == part && says_something(&it["text"]),
                };
                let parts = list(&item["content"]);
                require(!parts.is_empty() && parts.iter().all(fits), format!("input[{at}]"))?;
                require(waiting.is_empty(), "No tool output found for function call")?;
            }
            "reasoning" => {
                let is_whole =
                    item["encrypted_content"].is_string() || !list(&item["content"]).is_empty();
                require(is_whole, "Item not found: nothing was stored")?;
                let next = input.get(at + 1).map_or("", |next| text(&next["type"]));
                let follows = ["message", "function_call", "reasoning"].contains(&next);
                require(follows, "reasoning was provided without its required following item")?;
            }
            "function_call" => {
                check_name(&item["name"])?;
                let arguments = serde_json::from_str::<Json>(text(&item["arguments"]));
                require(arguments.is_ok_and(|it| it.is_object()), "arguments that are no object")?;
                let id = text(&item["call_id"]);
                require(!id.is_empty() && id.len() <= 64 && ids.insert(id), "call_id")?;
                waiting.push(id);
            }
            "function_call_output" => {
                let id = text(&item["call_id"]);
                let known = waiting.iter().position(|call| *call == id);
                waiting.remove(known.ok_or("No tool call found for function call output")?);
                require(says_something(&item["output"]), "an output that says nothing")?;
            }
            other => return Err(format!("input[{at}] has the type {other:?}")),
        }
    }
    require(waiting.is_empty(), "No tool output found for function call")?;
    let last = input.last().map_or("", |last| text(&last["type"]));
    require(["message", "function_call_output"].contains(&last), "the input must end with the user")
}

fn anthropic(body: &Json) -> Refusal {
    require(body["max_tokens"].as_u64().is_some_and(|most| most > 0), "max_tokens: required")?;
    for block in list(&body["system"]) {
        require(says_something(&block["text"]), "system: text content blocks must be non-empty")?;
    }
    for tool in list(&body["tools"]) {
        check_declared(&tool["name"], &tool["input_schema"])?;
    }
    let marks = body.to_string().matches("cache_control").count();
    require(marks <= 4, "A maximum of 4 blocks with cache_control may be provided")?;
    let messages = list(&body["messages"]);
    let mut waiting: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        require(message["role"] == expected, format!("messages.{at}: roles must alternate"))?;
        let blocks = list(&message["content"]);
        require(!blocks.is_empty(), format!("messages.{at}: must have non-empty content"))?;
        let results: Vec<&str> = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| text(&block["tool_use_id"]))
            .collect();
        require(results == waiting, "`tool_use` ids without `tool_result` blocks right after")?;
        waiting.clear();
        for block in &blocks[results.len()..] {
            waiting.extend(anthropic_block(block, expected)?);
        }
        require(waiting.iter().all(|id| ids.insert(*id)), "`tool_use` ids must be unique")?;
    }
    require(waiting.is_empty() && messages.len() % 2 == 1, "the last message must be the user's")?;
    require(ids.is_empty() || !list(&body["tools"]).is_empty(), "tool blocks must define tools")
}

/// Checks a block that is no result; gives the id when it is a call.
fn anthropic_block<'b>(block: &'b Json, role: &str) -> Result<Option<&'b str>, String> {
    match (role, text(&block["type"])) {
        (_, "text") => {
            require(says_something(&block["text"]), "text content blocks must be non-empty")?;
            Ok(None)
        }
        ("assistant", "tool_use") => {
            check_name(&block["name"])?;
            require(block["input"].is_object(), "tool_use.input: Input should be an object")?;
            let id = text(&block["id"]);
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            require(!id.is_empty() && id.chars().all(fits), "tool_use.id: does not match")?;
            Ok(Some(id))
        }
        ("user", kind @ ("image" | "document")) => {
            let (source, begins) =
                (&block["source"], if kind == "image" { "image/" } else { "application/pdf" });
            let fits =
                source["type"] == "base64" && text(&source["media_type"]).starts_with(begins);
            require(fits && source["data"].is_string(), "source: no data in base 64")?;
            Ok(None)
        }
        ("assistant", "thinking" | "redacted_thinking") => {
            require(block["cache_control"].is_null(), "a thought takes no cache_control")?;
            Ok(None)
        }
        (_, other) => Err(format!("{role} has a block {other:?}")),
    }
}

fn gemini(body: &Json) -> Refusal {
    if !body["systemInstruction"].is_null() {
        let parts = list(&body["systemInstruction"]["parts"]);
        let all = !parts.is_empty() && parts.iter().all(|part| says_something(&part["text"]));
        require(all, "systemInstruction must have a text")?;
    }
    for tool in list(&body["tools"][0]["functionDeclarations"]) {
        check_declared(&tool["name"], &tool["parametersJsonSchema"])?;
    }
    let contents = list(&body["contents"]);
    let mut waiting: Vec<&str> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "model" };
        require(content["role"] == expected, format!("contents[{at}]: roles must alternate"))?;
        let parts = list(&content["parts"]);
        require(!parts.is_empty(), format!("contents[{at}].parts: must not be empty"))?;
        let responses = parts.iter().filter(|part| !part["functionResponse"].is_null());
        let answered: Vec<&str> =
            responses.map(|part| text(&part["functionResponse"]["name"])).collect();
        require(
            answered == waiting,
            "the number of function response parts must be that of the function call parts",
        )?;
        waiting.clear();
        for part in parts {
            gemini_part(part)?;
            waiting.extend(part["functionCall"]["name"].as_str());
        }
    }
    require(waiting.is_empty() && contents.len() % 2 == 1, "the last content must be the user's")
}

fn gemini_part(part: &Json) -> Refusal {
    if !part["functionCall"].is_null() {
        check_name(&part["functionCall"]["name"])?;
        return require(part["functionCall"]["args"].is_object(), "args must be an object");
    }
    if !part["functionResponse"].is_null() {
        let response = &part["functionResponse"]["response"];
        return require(response.is_object(), "a response must be an object");
    }
    if !part["inlineData"].is_null() {
        let data = &part["inlineData"];
        return require(data["mimeType"].is_string() && data["data"].is_string(), "inlineData");
    }
    // A signature may come with an empty text.
    let signed = part["thoughtSignature"].is_string();
    require(signed || says_something(&part["text"]), "a part without a text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn refused(path: &str, body: &Json, why: &str) {
        let refusal = check(path, body).expect_err("must be refused");
        assert!(refusal.contains(why), "{refusal}");
    }

    #[test]
    fn what_templates_refuse_is_refused() {
        let (user, answer) =
            (json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"}));
        let system = json!({"role": "system", "content": "s"});
        let call = |id: &str, arguments: &str| {
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                "function": {"name": "f", "arguments": arguments}}]})
        };
        let result = json!({"role": "tool", "content": "r", "tool_call_id": "abcdefghi"});
        let path = "/v1/chat/completions";
        let body = |said: &[&Json]| json!({"messages": said});
        let fine = call("abcdefghi", "{}");
        assert_eq!(check(path, &body(&[&system, &user, &fine, &result])), Ok(()));
        assert_eq!(check(path, &body(&[&user, &answer, &user])), Ok(()));
        for (said, why) in [
            (vec![&user, &system, &user], "at the beginning"),
            (vec![&system, &system, &user], "at the beginning"),
            (vec![&user, &user], "alternate"),
            (vec![&answer, &user], "alternate"),
            (vec![&user, &answer], "last role"),
            (vec![&system], "No user query"),
            (vec![&user, &fine, &user], "alternate"),
            (vec![&user, &fine], "without results"),
            (vec![&user, &fine, &result, &user], "alternate"),
            (vec![&user, &result], "without a call"),
            (vec![&user, &call("call_1", "{}"), &result], "length 9"),
            (vec![&user, &call("abcdefghi", ""), &result], "no object"),
            (vec![&user, &call("abcdefghi", "{\"a\":"), &result], "no object"),
        ] {
            refused(path, &body(&said), why);
        }
    }

    #[test]
    fn what_the_interfaces_refuse_is_refused() {
        let said = |role: &str, blocks: Json| json!({"role": role, "content": blocks});
        let body = |messages: Json| json!({"max_tokens": 1, "messages": messages});
        let user = said("user", json!([{"type": "text", "text": "a"}]));
        let call =
            said("assistant", json!([{"type": "tool_use", "id": "1", "name": "f", "input": {}}]));
        assert_eq!(check("/v1/messages", &body(json!([user]))), Ok(()));
        refused("/v1/messages", &body(json!([user, user])), "alternate");
        refused("/v1/messages", &body(json!([said("user", json!([]))])), "non-empty");
        refused("/v1/messages", &body(json!([user, call, user])), "right after");
        let result =
            said("user", json!([{"type": "tool_result", "tool_use_id": "1", "content": "r"}]));
        refused("/v1/messages", &body(json!([user, call, result])), "must define tools");
        let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
        let said = |role: &str, part: Json| json!({"role": role, "parts": [part]});
        let user = said("user", json!({"text": "a"}));
        let call = said("model", json!({"functionCall": {"name": "f", "args": {}}}));
        assert_eq!(check(path, &json!({"contents": [user]})), Ok(()));
        refused(path, &json!({"contents": [user, call, user]}), "function response parts");
        refused(path, &json!({"contents": [said("user", json!({"text": ""}))]}), "without a text");
        refused(path, &json!({"contents": [call]}), "alternate");
    }
}
