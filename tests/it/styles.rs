//! Conversations of twenty turns in which the model makes two calls at once, with servers that each
//! write in their own style, and that want back what they gave. In the middle, our own server is
//! started again.

use std::sync::{Arc, Mutex};

use contexture_program::internals::provider::Family;
use serde_json::json;

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::model;
use crate::support::*;

const TURNS: usize = 20;
const TOOL: &str = "search_session";

/// A style of a server.
struct Style {
    name: &'static str,
    family: Family,
    /// Two calls, in the answer with this number.
    calls: fn(usize) -> String,
    /// Returns whether a message with calls has what the server gave with them.
    has_back: fn(&Json) -> bool,
}

fn events(events: &[Json]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn delta(delta: Json) -> Json {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// An answer of chat completions with these deltas.
fn chat(deltas: Vec<Json>) -> String {
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    events(&deltas.into_iter().map(delta).chain([end]).collect::<Vec<_>>()) + "data: [DONE]\n\n"
}

fn id(answer: usize, call: usize) -> String {
    format!("call{answer:04}{call}")
}

/// A call as chat completions have it, whole.
fn call(answer: usize, index: usize, id: &str) -> Json {
    let arguments = format!("{{\"query\":\"{answer} {index}\"}}");
    json!({"index": index, "id": id, "type": "function",
           "function": {"name": TOOL, "arguments": arguments}})
}

fn pieces(answer: usize) -> String {
    let begin = |at: usize| {
        json!({"tool_calls": [{"index": at, "id": id(answer, at), "type": "function",
                               "function": {"name": TOOL, "arguments": ""}}]})
    };
    let more = |at: usize, text: &str| json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]});
    // Both go on by turns.
    let text = ["{\"query\":", "\"x\"}"];
    let rest = text.iter().flat_map(|text| [more(0, text), more(1, text)]);
    chat([begin(0), begin(1)].into_iter().chain(rest).collect())
}

fn together(answer: usize, first: Json) -> String {
    let calls = [0, 1].map(|at| call(answer, at, &id(answer, at)));
    chat(vec![first, json!({"tool_calls": calls})])
}

/// Two calls of which the first has more members, and which have the same index. Some have no ids.
fn gemini_like(answer: usize) -> String {
    let id = |answer: usize, at: usize| match answer % 4 {
        0 => String::new(),
        _ => id(answer, at),
    };
    let mut first = call(answer, 0, &id(answer, 0));
    first["extra_content"] = json!({"google": {"thought_signature": "c2ln"}});
    let mut second = call(answer, 1, &id(answer, 1));
    second["index"] = 0.into();
    chat(vec![json!({"tool_calls": [first]}), json!({"tool_calls": [second]})])
}

fn anthropic(answer: usize, end: Json) -> String {
    let block = |at: usize, block: Json, delta: Json| {
        let begin = json!({"type": "content_block_start", "index": at, "content_block": block});
        let delta = json!({"type": "content_block_delta", "index": at, "delta": delta});
        [begin, delta, json!({"type": "content_block_stop", "index": at})]
    };
    let input = json!({"type": "input_json_delta", "partial_json": "{\"query\":\"x\"}"});
    let call = |at: usize| json!({"type": "tool_use", "id": format!("toolu_{answer}_{at}"), "name": TOOL, "input": {}});
    let mut all = vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})];
    let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    all.extend(block(0, thought, json!({"type": "signature_delta", "signature": "c2ln"})));
    all.extend([1, 2].into_iter().flat_map(|at| block(at, call(at), input.clone())));
    all.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                    "usage": {"output_tokens": 9}}));
    all.push(end);
    events(&all)
}

fn responses(answer: usize) -> String {
    let reasoning = json!({"id": format!("rs_{answer}"), "type": "reasoning", "summary": [],
                           "encrypted_content": "ZW5j"});
    let call = |at: usize| {
        json!({"id": format!("fc_{answer}_{at}"), "type": "function_call", "name": TOOL,
               "call_id": format!("call_{answer}_{at}"), "arguments": "{\"query\":\"x\"}"})
    };
    let output = [reasoning, call(1), call(2)];
    let done = |(at, item): (usize, &Json)| json!({"type": "response.output_item.done", "output_index": at, "item": item});
    let mut all: Vec<Json> = output.iter().enumerate().map(done).collect();
    let response = json!({"status": "completed", "output": output, "usage": {"input_tokens": 9}});
    all.push(json!({"type": "response.completed", "response": response}));
    events(&all)
}

fn has(said: &Json, member: &str) -> bool {
    !said[member].is_null() && said[member] != " "
}

fn anything(_: &Json) -> bool {
    true
}

fn signed(said: &Json) -> bool {
    said["content"][0]["signature"] == "c2ln"
}

const STYLES: &[Style] = &[
    Style { name: "OpenAI", family: Family::Openai, calls: pieces, has_back: anything },
    Style {
        name: "OpenRouter",
        family: Family::Openai,
        calls: |answer| {
            let detail = json!({"type": "reasoning.text", "text": "Hm.", "signature": "c2ln",
                                "index": 0});
            together(answer, json!({"reasoning": "Hm.", "reasoning_details": [detail]}))
        },
        has_back: |said| said["reasoning_details"][0]["signature"] == "c2ln",
    },
    Style {
        name: "DeepSeek",
        family: Family::Openai,
        calls: |answer| together(answer, json!({"reasoning_content": "Hm.", "content": null})),
        has_back: |said| has(said, "reasoning_content"),
    },
    Style {
        name: "Moonshot",
        family: Family::Openai,
        calls: |answer| {
            let ids = [0, 1].map(|at| format!("functions.{TOOL}:{}", answer * 2 + at));
            let calls = [0, 1].map(|at| call(answer, at, &ids[at]));
            chat(vec![json!({"reasoning_content": "Hm."}), json!({"tool_calls": calls})])
        },
        has_back: |said| {
            let id = said["tool_calls"][1]["id"].as_str().unwrap_or_default();
            has(said, "reasoning_content") && id.starts_with("functions.")
        },
    },
    Style {
        name: "Mistral",
        family: Family::Openai,
        calls: |answer| {
            let thought = json!([{"type": "text", "text": "Hm."}]);
            together(answer, json!({"content": [{"type": "thinking", "thinking": thought}]}))
        },
        has_back: |said| said["tool_calls"][0]["id"].as_str().is_some_and(|id| id.len() == 9),
    },
    Style {
        name: "Groq",
        family: Family::Openai,
        calls: |answer| {
            let usage = json!({"usage": {"prompt_tokens": 9, "completion_tokens": 9}});
            let first = json!({"choices": [], "x_groq": usage});
            events(&[first]) + &together(answer, json!({"reasoning": "Hm."}))
        },
        has_back: |said| has(said, "reasoning"),
    },
    Style {
        name: "vLLM",
        family: Family::Openai,
        calls: |answer| {
            let first = delta(json!({"reasoning_content": "Hm.", "reasoning": "Hm."}));
            events(&[first]) + &pieces(answer)
        },
        has_back: |said| has(said, "reasoning_content"),
    },
    Style {
        name: "Gemini's OpenAI interface",
        family: Family::Openai,
        calls: gemini_like,
        has_back: |said| has(&said["tool_calls"][0], "extra_content"),
    },
    Style {
        name: "llama.cpp",
        family: Family::Openai,
        calls: |answer| {
            let calls = [0, 1].map(|at| call(answer, at, &id(answer, at)));
            chat(calls.into_iter().map(|call| json!({"tool_calls": [call]})).collect())
        },
        has_back: anything,
    },
    Style {
        name: "Azure",
        family: Family::Openai,
        calls: |answer| {
            let first = json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]});
            events(&[first]) + &pieces(answer)
        },
        has_back: anything,
    },
    Style {
        name: "Anthropic",
        family: Family::Anthropic,
        calls: |answer| anthropic(answer, json!({"type": "message_stop"})),
        has_back: signed,
    },
    Style {
        name: "like Bedrock",
        family: Family::Anthropic,
        calls: |answer| {
            let metrics = json!({"inputTokenCount": 9});
            anthropic(
                answer,
                json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics}),
            )
        },
        has_back: signed,
    },
    Style {
        name: "Gemini",
        family: Family::Gemini,
        calls: |_| {
            let part = |at: usize| json!({"functionCall": {"name": TOOL, "args": {"query": at.to_string()}}});
            let mut first = part(0);
            first["thoughtSignature"] = "c2ln".into();
            let content = json!({"parts": [first, part(1)], "role": "model"});
            events(&[json!({"candidates": [{"content": content, "finishReason": "STOP"}]})])
        },
        has_back: |said| said["parts"][0]["thoughtSignature"] == "c2ln",
    },
    Style {
        name: "Ollama",
        family: Family::Ollama,
        calls: |_| {
            let call = |at: usize| json!({"function": {"name": TOOL, "arguments": {"query": at.to_string()}}});
            let message = json!({"role": "assistant", "content": "", "thinking": "Hm.",
                                 "tool_calls": [call(0), call(1)]});
            format!(
                "{}\n{}\n",
                json!({"message": message, "done": false}),
                json!({"message": {"content": ""}, "done": true, "done_reason": "stop"})
            )
        },
        has_back: |said| said["thinking"] == "Hm.",
    },
    Style {
        name: "Responses",
        family: Family::Responses,
        calls: responses,
        has_back: |said| said["encrypted_content"] == "ZW5j",
    },
];

/// Returns what a request has of answers with calls: their messages, or their reasoning.
fn answers(body: &Json) -> Vec<&Json> {
    let said = ["messages", "contents", "input"].iter().find_map(|name| body[*name].as_array());
    let is_answer = |said: &&Json| {
        let text = said.to_string();
        let is_ours = said["role"] == "assistant" || said["role"] == "model";
        let calls = ["\"tool_calls\"", "\"tool_use\"", "\"functionCall\""];
        said["type"] == "reasoning" || (is_ours && calls.iter().any(|part| text.contains(part)))
    };
    said.unwrap().iter().filter(is_answer).collect()
}

/// Returns whether a request ends with results of calls.
fn ends_with_results(body: &Json) -> bool {
    let said = ["messages", "contents", "input"].iter().find_map(|name| body[*name].as_array());
    let last = said.and_then(|said| said.last()).map(Json::to_string).unwrap_or_default();
    ["\"tool\"", "tool_result", "functionResponse", "function_call_output"]
        .iter()
        .any(|part| last.contains(part))
}

fn hold(style: &'static Style) {
    let missing: Arc<Mutex<Vec<String>>> = Arc::default();
    let found = Arc::clone(&missing);
    let server = Endpoint::new(move |asked: &Asked, before| {
        let lacking = answers(&asked.body).into_iter().filter(|said| !(style.has_back)(said));
        found.lock().unwrap().extend(lacking.map(Json::to_string));
        let path = asked.path.split('?').next().unwrap_or_default();
        let text = match ends_with_results(&asked.body) {
            true => model::words(path, "done"),
            false => (style.calls)(before),
        };
        Answer::streaming(Body::Chunks(vec![text.into_bytes()]))
    });
    let home = Home::new();
    model::configure(&home, &model::provider(style.family, &server));
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\")");
    client.ok("configure-session", "(:tools t :allowed-tools t)");
    for turn in 0..TURNS {
        if turn == TURNS / 2 {
            client.end();
            client = home.stdio(&[]);
            client.ok("open-session", "(:name \"s\")");
            client.ok("configure-session", "(:tools t :allowed-tools t)");
        }
        let answer = client.ok("chat", &format!("(:content \"question {turn}\")"));
        let calls = answer["tool_calls"].as_array().unwrap();
        let outcomes: Vec<&Json> = calls.iter().map(|call| &call["outcome"]).collect();
        assert_eq!(outcomes, ["done", "done"], "{}: {answer}", style.name);
        assert_eq!(answer["rounds"], 2, "{}: {answer}", style.name);
        assert_eq!(answer["content"], "done", "{}", style.name);
    }
    assert_eq!(*missing.lock().unwrap(), Vec::<String>::new(), "{}", style.name);
    assert_eq!(server.asked().len(), 2 * TURNS, "{}: nothing was refused", style.name);
    let last = server.asked().pop().unwrap().body;
    assert!(answers(&last).len() >= TURNS, "{}", style.name);
}

#[test]
fn twenty_turns_with_two_calls_each_are_never_refused_in_any_style() {
    std::thread::scope(|scope| {
        STYLES.iter().for_each(|style| drop(scope.spawn(move || hold(style))));
    });
}
