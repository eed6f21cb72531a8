//! Provider families: how to build requests and read answers. Each family has one file of pure
//! functions over JSON.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use serde_json::{Value, json};

use super::chat::{Request, StreamEvent, Tool};
use super::error::ErrorKind;
use super::http::KeyHeader;
use super::lines::Framing;
use super::normal::{Form, arguments};
use super::refusal::kind_of_bad;
use crate::names::names;

names! {
    /// A kind of server.
    Family {
        /// `OpenAI`'s chat completions, which most model servers offer: `OpenAI`, `OpenRouter`,
        /// llama.cpp, vLLM, LM Studio.
        Openai => "openai",
        /// Anthropic's Messages API.
        Anthropic => "anthropic",
        /// Google's Gemini API.
        Gemini => "gemini",
        /// Ollama's own API.
        Ollama => "ollama",
    }
}

/// A decoder, which turns a server's stream into pieces of an answer.
pub(super) trait Decoder: Send {
    /// Decodes one JSON text.
    fn take(&mut self, said: &Value, pieces: &mut Vec<StreamEvent>) -> Result<(), Broken>;

    /// Handles the text that some servers send at the end of a stream and that is not JSON, such
    /// as `[DONE]`. Returns whether `text` was that text.
    fn is_end(&mut self, _text: &str, _pieces: &mut Vec<StreamEvent>) -> bool {
        false
    }

    /// Handles a regular end of the connection. Returns whether the answer is complete; if it is,
    /// adds the last pieces of the answer.
    fn closed(&mut self, pieces: &mut Vec<StreamEvent>) -> bool;
}

/// An error in an answer that had begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) kind: ErrorKind,
    pub(super) what: String,
}

impl Broken {
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Malformed, what: what.into() }
    }

    /// Creates the error for a failure that the server reported.
    fn told(kind: ErrorKind, message: &str) -> Self {
        let kind = match (kind, kind_of_bad(message)) {
            (ErrorKind::BadRequest, by_words) => by_words,
            // Once a stream has begun, servers report every failure as a failure of their own.
            (_, by_words @ (ErrorKind::ContextTooLong | ErrorKind::QuotaExhausted)) => by_words,
            (kind, _) => kind,
        };
        Self { kind, what: format!("the answer broke off: {message}") }
    }
}

impl Family {
    /// Returns the default address of the interface.
    pub fn usual_url(self) -> &'static str {
        match self {
            Self::Openai => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::Ollama => "http://localhost:11434",
        }
    }

    /// Returns the message form that this family needs; see [`normal`](super::normal::normal).
    pub(super) fn form(self) -> Form {
        let joins_results = matches!(self, Self::Anthropic | Self::Gemini);
        Form { family: self.name(), joins_results }
    }

    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Openai | Self::Anthropic | Self::Gemini => Framing::Events,
            Self::Ollama => Framing::Lines,
        }
    }

    pub(super) fn key_header(self) -> KeyHeader {
        match self {
            Self::Openai | Self::Ollama => KeyHeader::Bearer,
            Self::Anthropic => KeyHeader::Named("x-api-key"),
            Self::Gemini => KeyHeader::Named("x-goog-api-key"),
        }
    }

    pub(super) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[("anthropic-version", anthropic::VERSION)],
            _ => &[],
        }
    }

    pub(super) fn address(self, base: &str, model: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::Openai => format!("{base}/chat/completions"),
            Self::Anthropic => format!("{}/v1/messages", base.trim_end_matches("/v1")),
            Self::Gemini => gemini::address(base, model),
            Self::Ollama => format!("{}/api/chat", base.trim_end_matches("/v1")),
        }
    }

    pub(super) fn models_address(self, base: &str) -> String {
        let base = base.trim_end_matches('/');
        match self {
            Self::Openai => format!("{base}/models"),
            Self::Anthropic => format!("{}/v1/models?limit=1000", base.trim_end_matches("/v1")),
            Self::Gemini => {
                format!("{}/v1beta/models?pageSize=1000", base.trim_end_matches("/v1beta"))
            }
            Self::Ollama => format!("{}/api/tags", base.trim_end_matches("/v1")),
        }
    }

    /// Returns the names in a list of models; `None` if `said` is not such a list.
    pub(super) fn models(self, said: &Value) -> Option<Vec<String>> {
        let (list, name) = match self {
            Self::Openai | Self::Anthropic => ("data", "id"),
            Self::Gemini | Self::Ollama => ("models", "name"),
        };
        let names = said[list].as_array()?.iter().map(|model| {
            let name = model[name].as_str()?;
            Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
        });
        names.collect()
    }

    /// Builds the body of a request in [normal form](Self::form). `context` is the window size in
    /// tokens that the server should provide, for families that support this.
    pub(super) fn body(
        self,
        base: &str,
        model: &str,
        request: &Request,
        context: Option<u64>,
    ) -> Value {
        match self {
            Self::Openai => openai::body(base, model, request),
            Self::Anthropic => anthropic::body(model, request),
            Self::Gemini => gemini::body(request),
            Self::Ollama => ollama::body(model, request, context),
        }
    }

    /// Creates a decoder. For families without call ids, `stamp` makes generated ids differ from
    /// those of other answers.
    pub(super) fn decoder(self, stamp: i64) -> Box<dyn Decoder> {
        match self {
            Self::Openai => Box::new(openai::Decode::new(stamp)),
            Self::Anthropic => Box::<anthropic::Decode>::default(),
            Self::Gemini => Box::new(gemini::Decode::new(stamp)),
            Self::Ollama => Box::new(ollama::Decode::new(stamp)),
        }
    }
}

/// A generator of ids for the calls of an answer, for servers that give none.
struct CallIds {
    stamp: i64,
    calls: usize,
}

impl CallIds {
    fn next(&mut self, given: &Value) -> String {
        self.calls += 1;
        let numbered = || format!("call-{:x}-{}", self.stamp, self.calls);
        given.as_str().filter(|id| !id.is_empty()).map_or_else(numbered, str::to_owned)
    }
}

/// Adds a text, unless it is missing or empty.
fn add_text(pieces: &mut Vec<StreamEvent>, text: &Value, piece: fn(String) -> StreamEvent) {
    if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
        pieces.push(piece(text.to_owned()));
    }
}

/// Appends to a text, creating it if needed.
fn append(text: &mut Value, more: &Value) {
    let Some(more) = more.as_str() else { return };
    match text {
        Value::String(text) => text.push_str(more),
        none => *none = more.into(),
    }
}

/// Builds the list of tools as functions, in the form of `OpenAI` and Ollama.
fn functions(tools: &[Tool]) -> Value {
    let function = |tool: &Tool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": tool.schema,
        }})
    };
    tools.iter().map(function).collect()
}

/// Sets an entry, if there is a value.
fn set(body: &mut Value, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        body[name] = value.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::provider::chat::{ChatMessage, Response};
    use crate::session::message::Role;

    /// Keys and values that the decoders look for, so that random data reach deep code paths.
    const NAMES: &[&str] = &[
        "args",
        "arguments",
        "blockReason",
        "calls",
        "candidates",
        "choices",
        "content",
        "content_block",
        "data",
        "delta",
        "done",
        "done_reason",
        "error",
        "extra_content",
        "finishReason",
        "finish_reason",
        "function",
        "functionCall",
        "id",
        "index",
        "input",
        "message",
        "name",
        "partial_json",
        "parts",
        "promptFeedback",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "signature",
        "stop_reason",
        "text",
        "thinking",
        "thought",
        "thoughtSignature",
        "tool_calls",
        "type",
        "usage",
        "usageMetadata",
    ];
    const TYPES: &[&str] = &[
        "content_block_delta",
        "content_block_start",
        "content_block_stop",
        "input_json_delta",
        "message_delta",
        "message_start",
        "message_stop",
        "signature_delta",
        "STOP",
        "stop",
        "text",
        "text_delta",
        "thinking",
        "thinking_delta",
        "tool_use",
        "x",
    ];

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-1..3_i64).prop_map(Value::from),
            proptest::sample::select(TYPES).prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            let entry = (proptest::sample::select(NAMES), inner.clone());
            prop_oneof![
                1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
                4 => proptest::collection::vec(entry, 0..8).prop_map(|entries| {
                    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_says_is_a_defect(
            said in proptest::collection::vec(any_json(), 1..12),
        ) {
            for family in Family::ALL {
                let mut decoder = family.decoder(1);
                let mut pieces = Vec::new();
                for said in &said {
                    // Accepted or not, nothing panics, and the decoder takes the next input.
                    let _ = decoder.take(said, &mut pieces);
                }
                decoder.is_end("[DONE]", &mut pieces);
                decoder.closed(&mut pieces);
                let mut whole = Response::default();
                pieces.into_iter().for_each(|piece| whole.add(piece));
                let answer = ChatMessage {
                    tool_calls: whole.calls,
                    opaque: whole.opaque,
                    ..ChatMessage::new(Role::Assistant, &whole.text)
                };
                let messages = vec![ChatMessage::new(Role::User, "q"), answer];
                let request = Request { messages, stable: 2, ..Request::default() };
                for opaque in std::iter::once(None).chain(said.iter().cloned().map(Some)) {
                    let mut request = request.clone();
                    if let Some(opaque) = opaque {
                        // A wrong type under a known name is not a defect either.
                        request.messages[1].opaque = Some(json!({ family.name(): opaque }));
                    }
                    family.body("http://h", "m", &request, None);
                }
            }
        }
    }
}
