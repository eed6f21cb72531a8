//! What each kind of server is sent and says, after its public documentation.

use contexture_program::internals::provider::Family;
use contexture_program::internals::provider::chat::Usage;

/// A kind of server, as the suite needs it.
pub(super) struct Kind {
    pub(super) family: Family,
    pub(super) path: &'static str,
    pub(super) key: (&'static str, &'static str),
    /// The whole request.
    pub(super) body: &'static str,
    /// A whole answer.
    pub(super) stream: &'static str,
    /// What follows the last of its text.
    pub(super) after_text: &'static str,
    /// A piece of text, `x`.
    pub(super) piece: &'static str,
    /// A failure in the middle of an answer, of being overloaded.
    pub(super) failure: &'static str,
    /// The body of a refusal.
    pub(super) refusal: &'static str,
    /// Where its models are listed, and how.
    pub(super) models: (&'static str, &'static str),
    /// What is kept of the answer for the rest of the turn, and how the answer is sent back then.
    pub(super) opaque: &'static str,
    pub(super) again: &'static str,
    pub(super) reasons: bool,
    pub(super) gives_ids: bool,
    /// What is said beside input and output.
    pub(super) usage: Usage,
}

const NOTHING: Usage =
    Usage { input: None, output: None, cache_read: None, cache_written: None, reasoning: None };

pub(super) const FAMILIES: &[Kind] = &[
    Kind {
        family: Family::Openai,
        path: "/v1/chat/completions",
        key: ("authorization", "Bearer k-123"),
        body: r#"{
            "model": "test-model", "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 100, "temperature": 0.5,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is in a.rs?"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "w3rhqn6v6",
                    "type": "function",
                    "function": {"name": "read_file", "arguments": "{\"path\":\"a.rs\"}"}}]},
                {"role": "tool", "content": "fn a()", "tool_call_id": "w3rhqn6v6"},
                {"role": "assistant", "content": "…"},
                {"role": "user", "content": "Go on."}],
            "tools": [{"type": "function", "function": {"name": "read_file",
                "description": "Reads a file", "parameters": {"type": "object", "properties": {}}}}]}"#,
        stream: r#": OPENROUTER PROCESSING

data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hmm, é."},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"Grüße 😀"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":", done."},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_2","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"read_file","arguments":""}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"ä.rs\"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":25,"completion_tokens":15,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":4}}}

data: [DONE]

"#,
        after_text: "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\"",
        piece: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n",
        failure: "data: {\"error\":{\"code\":502,\"message\":\"overloaded\"},\"choices\":[{\"finish_reason\":\"error\"}]}\n\n",
        refusal: r#"{"error": {"message": "MESSAGE", "type": "t", "param": null, "code": null}}"#,
        opaque: r#"{"kept": {"message": {"reasoning_content": "Hmm, é."},
            "calls": [{"google": {"thought_signature": "c2ln"}}]}}"#,
        again: r#"{"role": "assistant", "content": "Grüße 😀, done.", "reasoning_content": "Hmm, é.",
            "tool_calls": [{"id": "call_2", "type": "function",
                "extra_content": {"google": {"thought_signature": "c2ln"}},
                "function": {"name": "read_file", "arguments": "{\"path\":\"ä.rs\"}"}}]}"#,
        models: (
            "/v1/models",
            r#"{"object": "list", "data": [{"id": "m-1", "object": "model"}, {"id": "m-2"}]}"#,
        ),
        reasons: true,
        gives_ids: true,
        usage: Usage { cache_read: Some(10), reasoning: Some(4), ..NOTHING },
    },
    Kind {
        family: Family::Responses,
        path: "/v1/responses",
        key: ("authorization", "Bearer k-123"),
        body: r#"{
            "model": "test-model", "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 100, "temperature": 0.5, "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user",
                    "content": [{"type": "input_text", "text": "What is in a.rs?"}]},
                {"type": "function_call", "call_id": "w3rhqn6v6", "name": "read_file",
                    "arguments": "{\"path\":\"a.rs\"}"},
                {"type": "function_call_output", "call_id": "w3rhqn6v6", "output": "fn a()"},
                {"type": "message", "role": "user",
                    "content": [{"type": "input_text", "text": "Go on."}]}],
            "tools": [{"type": "function", "name": "read_file", "description": "Reads a file",
                "parameters": {"type": "object", "properties": {}}, "strict": false}]}"#,
        stream: r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hmm, é."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"ZW5j","summary":[{"type":"summary_text","text":"Hmm, é."}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.content_part.added
data: {"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Grüße 😀"}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":", done."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Grüße 😀, done.","annotations":[]}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_2","name":"read_file","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"ä.rs\"}"}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"path\":\"ä.rs\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_2","name":"read_file","arguments":"{\"path\":\"ä.rs\"}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[],"usage":{"input_tokens":25,"input_tokens_details":{"cached_tokens":10},"output_tokens":15,"output_tokens_details":{"reasoning_tokens":4}}}}

"#,
        after_text: "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1",
        piece: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"x\"}\n\n",
        failure: "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"overloaded\",\"param\":null}\n\n",
        refusal: r#"{"error": {"message": "MESSAGE", "type": "t", "param": null, "code": null}}"#,
        opaque: r#"{"kept": [
            {"id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j",
                "summary": [{"type": "summary_text", "text": "Hmm, é."}]},
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "Grüße 😀, done.", "annotations": []}]},
            {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_2",
                "name": "read_file", "arguments": "{\"path\":\"ä.rs\"}"}]}"#,
        again: r#"[
            {"id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j",
                "summary": [{"type": "summary_text", "text": "Hmm, é."}]},
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "Grüße 😀, done.", "annotations": []}]},
            {"id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_2",
                "name": "read_file", "arguments": "{\"path\":\"ä.rs\"}"}]"#,
        models: (
            "/v1/models",
            r#"{"object": "list", "data": [{"id": "m-1", "object": "model"}, {"id": "m-2"}]}"#,
        ),
        reasons: true,
        gives_ids: true,
        usage: Usage { cache_read: Some(10), reasoning: Some(4), ..NOTHING },
    },
    Kind {
        family: Family::Anthropic,
        path: "/v1/messages",
        key: ("x-api-key", "k-123"),
        body: r#"{
            "model": "test-model", "stream": true, "max_tokens": 100, "temperature": 0.5,
            "system": [{"type": "text", "text": "Be brief.",
                "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "What is in a.rs?",
                    "cache_control": {"type": "ephemeral"}}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "w3rhqn6v6",
                    "name": "read_file", "input": {"path": "a.rs"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "w3rhqn6v6", "content": "fn a()"},
                    {"type": "text", "text": "Go on."}]}],
            "tools": [{"name": "read_file", "description": "Reads a file",
                "input_schema": {"type": "object", "properties": {}}}]}"#,
        stream: r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":12,"cache_read_input_tokens":10,"cache_creation_input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hmm, é."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZW5j"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grüße 😀"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":", done."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"call_2","name":"read_file","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"ä.rs\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}

event: message_stop
data: {"type":"message_stop"}

"#,
        after_text: "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}",
        piece: "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
        failure: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n",
        refusal: r#"{"type": "error", "error": {"type": "t", "message": "MESSAGE"}}"#,
        opaque: r#"{"kept": [
            {"type": "thinking", "thinking": "Hmm, é.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "text", "text": "Grüße 😀, done."},
            {"type": "tool_use", "id": "call_2", "name": "read_file", "input": {"path": "ä.rs"}}]}"#,
        again: r#"{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hmm, é.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "text", "text": "Grüße 😀, done."},
            {"type": "tool_use", "id": "call_2", "name": "read_file", "input": {"path": "ä.rs"}}]}"#,
        models: (
            "/v1/models?limit=1000",
            r#"{"data": [{"type": "model", "id": "m-1"}, {"id": "m-2"}], "has_more": false}"#,
        ),
        reasons: true,
        gives_ids: true,
        usage: Usage { cache_read: Some(10), cache_written: Some(3), ..NOTHING },
    },
    Kind {
        family: Family::Gemini,
        path: "/v1beta/models/test-model:streamGenerateContent?alt=sse",
        key: ("x-goog-api-key", "k-123"),
        body: r#"{
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "What is in a.rs?"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "read_file",
                    "args": {"path": "a.rs"}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "read_file", "response": {"result": "fn a()"}}},
                    {"text": "Go on."}]}],
            "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5},
            "tools": [{"functionDeclarations": [{"name": "read_file",
                "description": "Reads a file", "parametersJsonSchema": {"type": "object", "properties": {}}}]}]}"#,
        stream: r#"data: {"candidates": [{"content": {"parts": [{"text": "Hmm, é.","thought": true}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 25,"totalTokenCount": 25},"modelVersion": "test-model"}

data: {"candidates": [{"content": {"parts": [{"text": "Grüße 😀"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 25,"candidatesTokenCount": 3,"thoughtsTokenCount": 4}}

data: {"candidates": [{"content": {"parts": [{"text": ", done."}],"role": "model"},"index": 0}]}

data: {"candidates": [{"content": {"parts": [{"functionCall": {"name": "read_file","args": {"path": "ä.rs"}},"thoughtSignature": "c2ln"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 25,"candidatesTokenCount": 11,"thoughtsTokenCount": 4,"cachedContentTokenCount": 10,"totalTokenCount": 40}}

"#,
        after_text: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"functionCall\"",
        piece: "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"x\"}]}}]}\n\n",
        failure: "data: {\"error\": {\"code\": 503,\"message\": \"overloaded\",\"status\": \"UNAVAILABLE\"}}\n\n",
        refusal: r#"{"error": {"code": 1, "message": "MESSAGE", "status": "S"}}"#,
        opaque: r#"{"kept": [{"text": "Grüße 😀, done."},
            {"functionCall": {"name": "read_file", "args": {"path": "ä.rs"}},
                "thoughtSignature": "c2ln"}]}"#,
        again: r#"{"role": "model", "parts": [{"text": "Grüße 😀, done."},
            {"functionCall": {"name": "read_file", "args": {"path": "ä.rs"}},
                "thoughtSignature": "c2ln"}]}"#,
        models: (
            "/v1beta/models?pageSize=1000",
            r#"{"models": [{"name": "models/m-1"}, {"name": "models/m-2"}]}"#,
        ),
        reasons: true,
        gives_ids: false,
        usage: Usage { cache_read: Some(10), reasoning: Some(4), ..NOTHING },
    },
    Kind {
        family: Family::Ollama,
        path: "/api/chat",
        key: ("authorization", "Bearer k-123"),
        body: r#"{
            "model": "test-model", "stream": true,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "What is in a.rs?"},
                {"role": "assistant", "content": "", "tool_calls": [{"function":
                    {"name": "read_file", "arguments": {"path": "a.rs"}}}]},
                {"role": "tool", "content": "fn a()", "tool_name": "read_file"},
                {"role": "assistant", "content": "…"},
                {"role": "user", "content": "Go on."}],
            "options": {"num_predict": 100, "temperature": 0.5},
            "tools": [{"type": "function", "function": {"name": "read_file",
                "description": "Reads a file", "parameters": {"type": "object", "properties": {}}}}]}"#,
        stream: r#"{"model":"test-model","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"Hmm, é."},"done":false}
{"model":"test-model","message":{"role":"assistant","content":"Grüße 😀"},"done":false}
{"model":"test-model","message":{"role":"assistant","content":", done."},"done":false}
{"model":"test-model","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read_file","arguments":{"path":"ä.rs"}}}]},"done":false}
{"model":"test-model","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,"prompt_eval_count":25,"eval_count":15}
"#,
        after_text: "{\"model\":\"test-model\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\"",
        piece: "{\"message\":{\"role\":\"assistant\",\"content\":\"x\"},\"done\":false}\n",
        failure: "{\"error\":\"overloaded\"}\n",
        refusal: r#"{"error": "MESSAGE"}"#,
        opaque: r#"{"kept": "Hmm, é."}"#,
        again: r#"{"role": "assistant", "content": "Grüße 😀, done.", "thinking": "Hmm, é.",
            "tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "ä.rs"}}}]}"#,
        models: ("/api/tags", r#"{"models": [{"name": "m-1", "model": "m-1"}, {"name": "m-2"}]}"#),
        reasons: true,
        gives_ids: false,
        usage: NOTHING,
    },
];
