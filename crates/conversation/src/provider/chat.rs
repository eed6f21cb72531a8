//! Conversations with models: requests, and answers that arrive in pieces.

use std::sync::Arc;

pub use super::choice::{OutputSchema, ToolChoice};
pub use super::listed::ModelListing;
pub use super::shown::ShownAttachment;
pub use super::waiting::OnWait;
use super::{Answer, ErrorKind, ProviderError};
use crate::names::names;
use crate::session::message::{Message, Role, ToolCall};

/// Highest token count that a provider's report may have; higher counts are lowered to it. No
/// request is that large, and the sum of eight million such counts still fits into an integer of
/// the store and of the client protocol.
pub const MOST_TOKENS: u64 = 1 << 40;

/// The token limit of a model, as reported by its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Maximum number of tokens in a request and its answer together; for servers that limit only
    /// the request, in the request.
    pub tokens: u64,
    /// True if the limit may change by itself. A server that loads models on demand reports the
    /// possible limit before loading and the actual limit afterwards.
    pub may_change: bool,
}

/// A chat model that a service offers.
///
/// A tool call of the model is a piece of its answer, [`StreamEvent::Call`]. What fails is a
/// [`ProviderError::new`], whose kind says whether the request is worth another try.
///
/// # Examples
///
/// ```
#[doc = include_str!("../../examples/provider.rs")]
/// ```
pub trait ChatProvider: Send + Sync {
    /// Returns the name of the provider to show to the user: its configured name or its address.
    fn name(&self) -> &str;

    /// Returns the name of the model, as the provider knows it.
    fn model(&self) -> &str;

    /// Returns the same provider with another model, sharing connections and key.
    fn with_model(&self, model: &str) -> Arc<dyn ChatProvider>;

    /// Returns whether the server takes PDFs as they are.
    fn takes_pdf(&self) -> bool {
        false
    }

    /// Returns the exact payload that a request would send, without the key.
    fn payload(&self, request: &Request) -> String {
        format!("{request:#?}")
    }

    /// Returns the available models, in the provider's order.
    fn models(&self) -> Answer<'_, Vec<ModelListing>> {
        Box::pin(std::future::ready(Ok(vec![ModelListing::named(self.model())])))
    }

    /// Returns the model's token limit, if the provider reports one.
    fn limit(&self) -> Answer<'_, Option<Limit>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Sends the request and waits for the answer to begin. Retries while the provider is busy, but
    /// never after the answer has begun. Dropping the future or the reply closes the connection, so
    /// that the provider stops generating.
    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn AnswerStream>>;
}

/// An answer in progress.
pub trait AnswerStream: Send {
    /// Returns the next piece, or `None` after [`StreamEvent::Stopped`], which ends every complete
    /// answer.
    ///
    /// # Errors
    /// [`ProviderError`] if the answer breaks off. After an error, every call returns an error.
    fn next(&mut self) -> Answer<'_, Option<StreamEvent>>;
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// More of the text.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// A complete tool call.
    Call(ToolCall),
    /// Token usage known so far. A later report takes precedence over an earlier one.
    Usage(Usage),
    /// Data that the provider wants back with the answer, as [`ChatMessage::opaque`]. Comes before
    /// the end.
    Opaque(serde_json::Value),
    /// End of the answer.
    Stopped(Stop),
}

impl StreamEvent {
    /// Returns the number of bytes of text, reasoning and calls in the piece.
    pub(super) fn said(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::Call(call) => call.name.len() + call.arguments.len(),
            Self::Usage(_) | Self::Opaque(_) | Self::Stopped(_) => 0,
        }
    }
}

/// The token usage as the provider reports it, in the provider's own tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the whole request, including those read from a cache.
    pub input: Option<u64>,
    /// Tokens of the whole answer, including reasoning.
    pub output: Option<u64>,
    /// Tokens of the request that were read from a cache.
    pub cache_read: Option<u64>,
    /// Tokens of the request that were written to a cache.
    pub cache_written: Option<u64>,
    /// Tokens of the answer that were reasoning.
    pub reasoning: Option<u64>,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "program"), non_exhaustive)]
pub enum Stop {
    /// The model finished its answer.
    Finished,
    /// The answer reached its token limit.
    Length,
    /// The model waits for the results of its tool calls.
    Calls,
    /// The model refused to answer.
    Refused,
    /// A filter of the provider stopped the answer, or refused the question.
    Filtered,
    /// The model made a call that its server could not read.
    Malformed,
    /// The server paused the answer.
    Paused,
    /// Any other reason, in the provider's words.
    Other(String),
}

impl Stop {
    /// Returns why an answer is not whole, as a phrase to show; `None` for a usual end.
    pub fn ending(&self) -> Option<String> {
        let phrase = match self {
            Self::Finished | Self::Calls => return None,
            Self::Length => "cut off at the maximum length of an answer; ask the model to go on",
            Self::Refused => "the model refused to answer",
            Self::Filtered => "a filter of the provider stopped the answer",
            Self::Malformed => {
                "the model made a tool call that its server could not read; ask again"
            }
            Self::Paused => "the server paused the answer; ask the model to go on",
            Self::Other(reason) => return Some(format!("the server ended the answer: {reason}")),
        };
        Some(phrase.to_owned())
    }

    /// Returns whether the calls of an answer that ended so have arrived whole.
    pub fn has_whole_calls(&self) -> bool {
        matches!(self, Self::Finished | Self::Calls | Self::Other(_))
    }
}

names! {
    /// How much a model reasons before it answers.
    Effort {
        /// Not at all, or as little as the model can.
        Off => "off",
        /// A little.
        Low => "low",
        /// Some.
        Medium => "medium",
        /// Much.
        High => "high",
    }
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Messages of the conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Number of leading messages that the next request will repeat. A provider that caches only
    /// on request is asked to cache them.
    pub stable: usize,
    /// Tools that the model may call.
    pub tools: Vec<ToolDefinition>,
    /// Whether the model has to call a tool.
    pub choice: ToolChoice,
    /// The form of the answer; `None` for text.
    pub output: Option<OutputSchema>,
    /// Maximum number of tokens in the answer; `None` means the provider's default.
    pub max_tokens: Option<u64>,
    /// Sampling temperature: 0 picks the likeliest tokens, and higher values give more varied
    /// answers. `None` means the provider's default.
    pub temperature: Option<f64>,
    /// Share of the likeliest tokens from which to pick, from 0 to 1; `None` means the provider's
    /// default.
    pub top_p: Option<f64>,
    /// How much the model reasons; `None` means the provider's default.
    pub effort: Option<Effort>,
    /// Callback for waits before the request is sent again.
    pub on_wait: OnWait,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub content: Arc<str>,
    /// Pictures and PDFs, which come before the text.
    pub pictures: Vec<ShownAttachment>,
    /// Tool calls in the message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that this message answers.
    pub tool_call_id: Option<String>,
    /// Data that came as [`StreamEvent::Opaque`], such as signatures of reasoning. Several
    /// providers refuse later requests without it. It goes back only to the server that sent it.
    pub opaque: Option<serde_json::Value>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool for the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub schema: serde_json::Value,
}

/// The name under which opaque data has what goes back with an answer.
pub(super) const KEPT: &str = "kept";

impl ChatMessage {
    /// Creates a message with text and no calls.
    pub fn new(role: Role, content: &str) -> Self {
        Self {
            role,
            content: content.into(),
            pictures: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            opaque: None,
        }
    }

    /// Returns what an answer has to go back with, as its server sent it.
    pub(super) fn kept(&self) -> Option<&serde_json::Value> {
        self.opaque.as_ref()?.get(KEPT)
    }
}

impl From<&Message> for ChatMessage {
    fn from(message: &Message) -> Self {
        Self {
            role: message.role,
            content: Arc::clone(&message.content),
            pictures: Vec::new(),
            tool_calls: message.tool_calls.clone(),
            tool_call_id: message.tool_call_id.clone(),
            opaque: None,
        }
    }
}

impl Request {
    /// Returns the name of the tool that the call with this id used.
    pub(super) fn called(&self, id: &str) -> Option<&str> {
        let call = self.caller(id)?.tool_calls.iter().find(|call| call.id == id);
        call.map(|call| &*call.name)
    }

    /// Returns the latest message that contains the call with this id.
    pub(super) fn caller(&self, id: &str) -> Option<&ChatMessage> {
        let calls = |said: &&ChatMessage| said.tool_calls.iter().any(|call| call.id == id);
        self.messages.iter().rev().find(calls)
    }
}

impl Usage {
    /// Returns this usage updated with the known values of a newer report. Each value is at most
    /// [`MOST_TOKENS`].
    #[must_use]
    pub fn with(self, newer: Self) -> Self {
        self.each_with(newer, |known, newer| newer.or(known))
    }

    /// Returns the sum of the usage of two requests. Each value is at most [`MOST_TOKENS`]. If
    /// only one request has a value, that value is the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.each_with(other, |one, other| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        })
    }

    fn each_with(self, other: Self, made: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        let each = |one, other| made(one, other).map(|tokens| tokens.min(MOST_TOKENS));
        Self {
            input: each(self.input, other.input),
            output: each(self.output, other.output),
            cache_read: each(self.cache_read, other.cache_read),
            cache_written: each(self.cache_written, other.cache_written),
            reasoning: each(self.reasoning, other.reasoning),
        }
    }
}

/// An answer, assembled from its pieces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Response {
    /// Text of the answer.
    pub text: String,
    /// Reasoning of the model.
    pub reasoning: String,
    /// Tool calls.
    pub calls: Vec<ToolCall>,
    /// Data that the provider wants back with the answer.
    pub opaque: Option<serde_json::Value>,
    /// Token usage.
    pub usage: Usage,
    /// Reason why the answer ended; `None` if the answer is incomplete.
    pub stop: Option<Stop>,
}

impl Response {
    /// Adds a piece.
    pub fn add(&mut self, piece: StreamEvent) {
        match piece {
            StreamEvent::Text(text) => self.text += &text,
            StreamEvent::Reasoning(text) => self.reasoning += &text,
            StreamEvent::Call(call) => self.calls.push(call),
            StreamEvent::Opaque(opaque) => self.opaque = Some(opaque),
            StreamEvent::Usage(usage) => self.usage = self.usage.with(usage),
            StreamEvent::Stopped(stop) => self.stop = Some(stop),
        }
    }

    /// Reads a reply to its end. Pieces that came before an error are kept.
    ///
    /// # Errors
    /// The reply's error.
    pub async fn read(&mut self, reply: &mut dyn AnswerStream) -> Result<(), ProviderError> {
        while let Some(piece) = reply.next().await? {
            self.add(piece);
        }
        Ok(())
    }
}

/// Returns the error of a request that was cancelled.
pub fn cancelled(provider: &dyn ChatProvider) -> ProviderError {
    let what = "the request was cancelled";
    ProviderError::new(ErrorKind::Cancelled, provider.name(), provider.model(), what)
}

/// Returns the error of an answer that violates the protocol.
pub fn malformed(provider: &dyn ChatProvider, what: &str) -> ProviderError {
    ProviderError { kind: ErrorKind::Malformed, what: what.to_owned(), ..cancelled(provider) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_nobody_can_have_meant_do_not_overflow() {
        let told = |tokens: u64| Usage { input: Some(tokens), ..Usage::default() };
        let mut whole = Response::default();
        whole.add(StreamEvent::Usage(told(u64::MAX)));
        assert_eq!(whole.usage, told(MOST_TOKENS));
        assert_eq!(told(u64::MAX).plus(told(u64::MAX)), told(MOST_TOKENS));
        assert_eq!(told(1).plus(told(2)).plus(Usage::default()), told(3));
    }
}
