//! A model on this machine that speaks as any of the kinds of servers: it answers, it calls a tool
//! when it is asked to, it makes notes, and it makes vectors. The server refuses what is not strict.

use contexture_program::internals::provider::Family;
use serde_json::json;

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::support::*;

/// In a question: the model calls a tool first, if it is offered any.
pub(crate) const USE_A_TOOL: &str = "please use a tool";
/// In a template: the model is the note-taker.
pub(crate) const NOTES: &str = "WRITE NOTES";
/// What it notes, and what it answers.
pub(crate) const NOTED: &str = "noted by the note-taker";
pub(crate) const ANSWER: &str = "this is the answer";
/// Texts with one of these words have one vector, all others another.
pub(crate) const ALIKE: &[&str] = &["automobile", "which car"];

/// A server that is all of that.
pub(crate) fn serve() -> Endpoint {
    Endpoint::new(|asked, before| match asked.path.ends_with("/embeddings") {
        true => vectors(&asked.body),
        false => Answer::streaming(Body::Chunks(vec![reply(asked, before).into_bytes()])),
    })
}

/// The settings of a provider of this kind on that server.
pub(crate) fn provider(family: Family, server: &Endpoint) -> String {
    let has_version = matches!(family, Family::Openai | Family::Responses);
    let base = if has_version { &server.url } else { &server.root };
    let name = family.name();
    format!(
        "[[providers]]\nname = \"{name}\"\nkind = \"{name}\"\nmodel = \"m-{name}\"\n\
         base-url = \"{base}\"\napi-key-command = \"echo k-123\"\n"
    )
}

/// The settings of embeddings from that server.
pub(crate) fn embeddings(server: &Endpoint) -> String {
    format!("[embeddings]\nurl = \"{}\"\nmodel = \"e\"\ntimeout = 60\n", server.url)
}

/// Writes the configuration.
pub(crate) fn configure(home: &Home, text: &str) {
    let folder = home.path("config/contexture");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

/// A user's template that has notes made of any history.
pub(crate) fn template(home: &Home, name: &str) {
    let folder = home.path("config/contexture/templates");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "---\ntoken-threshold: 0\nrecent-runs: 3\npassthrough-runs: 1\n---\n{NOTES} \
         [{{{{ prior_summary }}}}] [{{{{ recent_conversation }}}}] [{{{{ latest_input }}}}]\n"
    );
    std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
}

fn vectors(body: &Json) -> Answer {
    let alike = |text: &Json| ALIKE.iter().any(|word| text.as_str().unwrap().contains(word));
    let texts = body["input"].as_array().unwrap().iter().enumerate();
    let vector = |(index, text): (usize, &Json)| {
        let embedding = if alike(text) { [1, 0] } else { [0, 1] };
        json!({"index": index, "embedding": embedding})
    };
    Answer::new(200, json!({"data": texts.map(vector).collect::<Vec<_>>()}).to_string())
}

fn reply(asked: &Asked, before: usize) -> String {
    let said = ["messages", "contents", "input"].iter().find_map(|it| asked.body[*it].as_array());
    let last = said.and_then(|said| said.last()).map(Json::to_string).unwrap_or_default();
    let result = ["\"tool\"", "tool_result", "functionResponse", "function_call_output"]
        .iter()
        .any(|r| last.contains(r));
    let path = asked.path.split('?').next().unwrap_or_default();
    // Where calls have arguments as texts, some models write none, or what is no JSON.
    let arguments = ["{}", "", "{\"a\":"][before % 3];
    match asked.body["tools"].is_array() && asked.body["tool_choice"]["type"] != "none" {
        true if last.contains(USE_A_TOOL) && !result => call(path, arguments),
        _ if last.contains(NOTES) => words(path, NOTED),
        _ => words(path, ANSWER),
    }
}

fn events(events: &[Json]) -> String {
    let event = |event: &Json| format!("data: {event}\n\n");
    events.iter().map(event).collect()
}

pub(crate) fn words(path: &str, text: &str) -> String {
    match () {
        () if path.ends_with("/chat/completions") => {
            let usage = json!({"prompt_tokens": 20, "completion_tokens": 4});
            events(&[
                json!({"choices": [{"index": 0, "delta": {"content": text}}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
                json!({"choices": [], "usage": usage}),
            ]) + "data: [DONE]\n\n"
        }
        () if path.ends_with("/responses") => {
            let content = json!([{"type": "output_text", "text": text}]);
            responses(&json!({"type": "message", "role": "assistant", "content": content}))
        }
        () if path.ends_with("/v1/messages") => anthropic(
            &json!({"type": "text", "text": ""}),
            &json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        () if path.ends_with("/api/chat") => format!(
            "{}\n{}\n",
            json!({"message": {"role": "assistant", "content": text}, "done": false}),
            json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"})
        ),
        () => gemini(&json!({"text": text})),
    }
}

fn call(path: &str, arguments: &str) -> String {
    const TOOL: &str = "list_context";
    match () {
        () if path.ends_with("/chat/completions") => {
            let function = json!({"name": TOOL, "arguments": arguments});
            let calls =
                json!([{"index": 0, "id": "call00001", "type": "function", "function": function}]);
            events(&[
                json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}),
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            ]) + "data: [DONE]\n\n"
        }
        () if path.ends_with("/responses") => responses(
            &json!({"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": TOOL,
                    "arguments": arguments}),
        ),
        () if path.ends_with("/v1/messages") => anthropic(
            &json!({"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}),
            &json!({"type": "input_json_delta", "partial_json": arguments}),
            "tool_use",
        ),
        () if path.ends_with("/api/chat") => {
            let calls = json!([{"function": {"name": TOOL, "arguments": {}}}]);
            format!(
                "{}\n{}\n",
                json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": false}),
                json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"})
            )
        }
        () => {
            gemini(&json!({"functionCall": {"name": TOOL, "args": {}}, "thoughtSignature": "c2ln"}))
        }
    }
}

fn anthropic(block: &Json, delta: &Json, stop: &str) -> String {
    events(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 20}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ])
}

fn responses(item: &Json) -> String {
    let usage = json!({"input_tokens": 20, "output_tokens": 4});
    let response = json!({"status": "completed", "output": [item], "usage": usage});
    events(&[
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ])
}

fn gemini(part: &Json) -> String {
    let content = json!({"parts": [part], "role": "model"});
    events(&[json!({"candidates": [{"content": content, "finishReason": "STOP"}]})])
}

/// What a turn sent, as one text, beginning with the request numbered `from`: to the server, or as
/// the echo of a scripted model tells it.
pub(crate) fn sent(server: &Endpoint, from: usize, answer: &Json) -> String {
    let of_model = |asked: &&Asked| !asked.path.ends_with("/embeddings");
    let asked = server.asked();
    let bodies = asked[from..].iter().filter(of_model).map(|asked| asked.body.to_string());
    bodies.collect::<String>() + answer["content"].as_str().unwrap_or_default()
}
