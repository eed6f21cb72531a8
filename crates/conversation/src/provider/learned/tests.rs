//! Refusals in the words of servers, and what is learned from each.

use super::*;
use crate::provider::secret::RequestSecrets;

/// A body with everything that may be refused.
fn body(family: Family) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    match family {
        Family::Openai => json!({
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
                {"role": "assistant", "content": null, "reasoning_content": "r"}],
            "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 9000,
            "temperature": 0.2, "top_p": 0.5, "reasoning_effort": "high", "tool_choice": "none",
            "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        }),
        Family::Anthropic => json!({
            "messages": [{"role": "user", "content": []},
                {"role": "assistant", "content": [{"type": "thinking", "signature": "s"}]}],
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "max_tokens": 9000, "temperature": 0.2,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
        }),
        Family::Gemini => json!({
            "systemInstruction": {"parts": []}, "contents": [],
            "generationConfig": {"maxOutputTokens": 9000, "topP": 0.5},
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}],
        }),
        _ => json!({"think": true, "options": {"temperature": 0.2}, "tools": []}),
    }
}

fn refusal(message: &str) -> ServerRefusal {
    let body = json!({"error": {"message": message}}).to_string();
    ServerRefusal::read(400, &body, None, &RequestSecrets::default())
}

#[track_caller]
fn check(family: Family, expected: RequestChange, all: &[&str]) {
    for words in all {
        let mut learned = LearnedChanges::default();
        learned.learn(family, &refusal(words), &body(family));
        assert_eq!(learned.changes, BTreeSet::from([expected]), "{words}");
    }
}

#[test]
fn what_is_refused_is_found_in_the_words_of_each_server() {
    use Family::{Anthropic, Gemini, Ollama, Openai};
    use RequestChange as C;
    check(
        Openai,
        C::WithoutStreamOptions,
        &[
            "Unrecognized request argument supplied: stream_options",
            "unknown field `stream_options`, expected one of `model`, `messages`",
            "UnsupportedParamsError: azure does not support parameters: {'stream_options': {}}",
        ],
    );
    check(
        Openai,
        C::WithoutTools,
        &[
            "gemma3:1b does not support tools",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser",
            "No endpoints found that support tool use.",
            "tools param requires --jinja flag",
            "`tool calling` is not supported with this model",
            "UnsupportedParamsError: ollama does not support parameters: ['tools'], for model=g",
            "Failed to deserialize the JSON body into the target type: unknown field `tools`",
        ],
    );
    check(Gemini, C::WithoutTools, &["Function calling is not enabled for models/gemma-3-27b-it"]);
    check(
        Openai,
        C::PlainSchemas,
        &[
            "Invalid schema for function 'f': '$schema' is not permitted.",
            "tools.0.function.parameters: unsupported keyword 'additionalProperties'",
        ],
    );
    let field = "Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]'";
    check(Gemini, C::PlainSchemas, &[field]);
    check(
        Openai,
        C::WithoutSystem,
        &[
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            "Conversation roles must alternate user/assistant/... System role not supported",
            "Conversation roles must alternate user/assistant/user/assistant/...",
        ],
    );
    check(Gemini, C::WithoutSystem, &["Developer instruction is not enabled for models/gemma-3"]);
    let name = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    check(Openai, C::OtherLimit, &[name]);
    let only = "'temperature' does not support 0.2 with this model. Only 1 is supported.";
    check(Openai, C::WithoutTemperature, &[only]);
    let enabled = "`temperature` may only be set to 1 when thinking is enabled.";
    check(Anthropic, C::WithoutTemperature, &[enabled]);
    check(Openai, C::WithoutEffort, &["Unrecognized request argument: reasoning_effort"]);
    check(Anthropic, C::OtherEffort, &["thinking: Extra inputs are not permitted"]);
    check(Ollama, C::WithoutEffort, &["\"gemma3:1b\" does not support thinking"]);
    let signature = "messages.1.content.0: Invalid `signature` in `thinking` block";
    check(Anthropic, C::WithoutReasoning, &[signature]);
    check(Anthropic, C::WithoutMarks, &["system.0.cache_control: Extra inputs are not permitted"]);
    check(Openai, C::TextForNull, &["messages.1.content: Input should be a valid string"]);
    let verified = "Your organization must be verified to stream this model.";
    check(Openai, C::WithoutStream, &[verified]);
}

#[test]
fn the_longest_answer_is_found_in_the_words_of_each_server() {
    for (family, words, most) in [
        (Family::Openai, "the valid range of max_tokens is [1, 8192]", 8192),
        (Family::Openai, "max_tokens must be between 1 and 8192", 8192),
        (Family::Openai, "max_tokens is too large: 9000. This model supports at most 4096", 4096),
        (Family::Openai, "`max_tokens` must be less than or equal to `8192`", 8192),
        (Family::Anthropic, "max_tokens: 9000 > 4096, which is the maximum allowed number", 4096),
        (
            Family::Gemini,
            "it has a maxOutputTokens value of 9000 but the supported range is from 1 (inclusive) \
             to 8193 (exclusive). Update the value and try again.",
            8192,
        ),
    ] {
        let mut learned = LearnedChanges::default();
        assert!(learned.learn(family, &refusal(words), &body(family)).is_some(), "{words}");
        assert_eq!(learned.most_tokens, Some(most), "{words}");
    }
}

#[test]
fn what_teaches_nothing_changes_nothing() {
    for words in [
        "the model `x` does not exist",
        "Invalid 'tools[13].function.description': string too long",
        "temperature is not supported",
        "something else",
    ] {
        let mut learned = LearnedChanges::default();
        let mut body = body(Family::Openai);
        body["temperature"] = Value::Null;
        assert_eq!(learned.learn(Family::Openai, &refusal(words), &body), None, "{words}");
    }
}

#[test]
fn earlier_calls_become_texts_where_the_server_wants_tools_beside_them() {
    for words in [
        "Anthropic expects the `tools=` param to be passed in",
        "Requests which include `tool_use` or `tool_result` blocks must define tools",
        "The toolConfig field must be defined when using toolUse content; tools is missing",
    ] {
        let mut learned = LearnedChanges::default();
        let called = json!({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]});
        let body = json!({ "messages": [{"role": "user", "content": "q"}, called] });
        assert!(learned.learn(Family::Openai, &refusal(words), &body).is_some(), "{words}");
        let mut request = Request::default();
        assert!(!learned.takes_calls(&request), "{words}");
        let schema = json!({"type": "object"});
        let (name, description) = ("f".to_owned(), String::new());
        request.tools.push(crate::provider::chat::ToolDefinition { name, description, schema });
        assert!(learned.takes_calls(&request), "{words}");
    }
}
