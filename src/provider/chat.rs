//! Conversations with models: what is sent, and what comes back piece by piece.

use std::sync::Arc;

use super::{Answer, ErrorKind, Limit, ProviderError};
use crate::session::message::{Message, Role, ToolCall};

/// The most that is believed of a count of tokens: no request takes so many, and the sums of eight
/// million such counts are still integers of the store and of the wire.
pub const MOST_TOKENS: u64 = 1 << 40;

/// A model that can be talked to.
pub trait Provider: Send + Sync {
    /// The provider, as people know it: a name or an address.
    fn name(&self) -> &str;

    /// The model's name there.
    fn model(&self) -> &str;

    /// The same provider asked for another model, over the same connections and with the same key.
    fn with_model(&self, model: &str) -> Arc<dyn Provider>;

    /// What would be sent for a request, to the byte. It holds no key.
    fn payload(&self, request: &Request) -> String;

    /// The names of the models that there are, in the provider's order.
    fn models(&self) -> Answer<'_, Vec<String>>;

    /// How many tokens the model takes, if the provider tells that.
    fn limit(&self) -> Answer<'_, Option<Limit>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Sends the request and waits for the answer to begin. The request may be sent again when the
    /// provider is busy, but never once the answer has begun. Dropping the future, or the reply,
    /// closes the connection, so that the provider stops working.
    fn chat<'a>(&'a self, request: &'a Request) -> Answer<'a, Box<dyn Reply>>;
}

/// An answer that is coming.
pub trait Reply: Send {
    /// The next piece; `None` after [`Piece::Stopped`], which every whole answer ends with.
    /// An answer that breaks off is an error, and so is everything asked for after an error.
    fn next(&mut self) -> Answer<'_, Option<Piece>>;
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of the text.
    Text(String),
    /// More of what the model says it thinks.
    Reasoning(String),
    /// A call of a tool, whole.
    Call(ToolCall),
    /// What the request and the answer cost, as far as it is known; a later one counts more.
    Usage(Usage),
    /// What the provider wants to have back beside the answer, as [`Said::opaque`], when the results
    /// of its calls are sent. It comes only with calls, and before the end.
    Opaque(serde_json::Value),
    /// The end.
    Stopped(Stop),
}

impl Piece {
    /// How many bytes the piece says.
    pub(super) fn said(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text.len(),
            Self::Call(call) => call.name.len() + call.arguments.len(),
            Self::Usage(_) | Self::Opaque(_) | Self::Stopped(_) => 0,
        }
    }
}

/// What a provider reports, in its own tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of the whole request, with what was read from a cache.
    pub input: Option<u64>,
    /// Of the whole answer, with the reasoning.
    pub output: Option<u64>,
    /// Of the request, what was read from a cache.
    pub cache_read: Option<u64>,
    /// Of the request, what was written to a cache.
    pub cache_written: Option<u64>,
    /// Of the answer, what was reasoning.
    pub reasoning: Option<u64>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The model had no more to say.
    Finished,
    /// It was allowed no more tokens.
    Length,
    /// Its calls of tools are to be carried out.
    Calls,
    /// The provider did not let it say more.
    Refused,
    /// Something else, in the provider's word.
    Other(String),
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// What was said, oldest first.
    pub messages: Vec<Said>,
    /// How many messages from the first are the same in the next request: providers that are told
    /// what to cache are told to cache these.
    pub stable: usize,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// The model may call none of them in its answer.
    pub without_calls: bool,
    /// How many tokens the answer may have; the provider's default when `None`.
    pub max_tokens: Option<u64>,
    /// From 0, the likeliest words, upwards; the provider's default when `None`.
    pub temperature: Option<f64>,
    /// Who is told when the request has to wait before it is sent again.
    pub on_wait: OnWait,
}

/// Hears, in a phrase for people, why a request is sent again and after how long. No two of them make
/// two requests different.
#[derive(Clone, Default)]
pub struct OnWait(Option<Arc<Hear>>);

/// What hears a phrase.
type Hear = dyn Fn(&str) + Send + Sync;

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Who says it.
    pub role: Role,
    /// The text.
    pub content: Arc<str>,
    /// The tools that it calls.
    pub tool_calls: Vec<ToolCall>,
    /// Which call it answers.
    pub tool_call_id: Option<String>,
    /// What came with it as [`Piece::Opaque`], such as signatures of thoughts. Several providers
    /// refuse the rest of a turn without it; none needs it after the turn, so nothing stores it.
    pub opaque: Option<serde_json::Value>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its arguments as a JSON schema.
    pub schema: serde_json::Value,
}

impl OnWait {
    /// Tells it to `hear`.
    pub fn new(hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    /// Tells it.
    pub(super) fn tell(&self, phrase: &str) {
        if let Some(hear) = &self.0 {
            hear(phrase);
        }
    }
}

impl std::fmt::Debug for OnWait {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("OnWait")
    }
}

impl PartialEq for OnWait {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Said {
    /// A text without calls.
    pub fn new(role: Role, content: &str) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            opaque: None,
        }
    }
}

impl From<&Message> for Said {
    fn from(message: &Message) -> Self {
        Self {
            role: message.role,
            content: Arc::clone(&message.content),
            tool_calls: message.tool_calls.clone(),
            tool_call_id: message.tool_call_id.clone(),
            opaque: None,
        }
    }
}

impl Said {
    /// What this family of providers had sent to be given back.
    pub(super) fn kept(&self, family: &str) -> Option<&serde_json::Value> {
        self.opaque.as_ref()?.get(family)
    }
}

impl Request {
    /// The name of the tool whose call has this id.
    pub(super) fn called(&self, id: &str) -> Option<&str> {
        let call = self.caller(id)?.tool_calls.iter().find(|call| call.id == id);
        call.map(|call| &*call.name)
    }

    /// The message that has the call with this id.
    pub(super) fn caller(&self, id: &str) -> Option<&Said> {
        let calls = |said: &&Said| said.tool_calls.iter().any(|call| call.id == id);
        self.messages.iter().rev().find(calls)
    }
}

impl Usage {
    /// This, and what is newer where it is known; at most [`MOST_TOKENS`] of each.
    #[must_use]
    pub fn with(self, newer: Self) -> Self {
        self.each_with(newer, |known, newer| newer.or(known))
    }

    /// What this and another request took together, at most [`MOST_TOKENS`] of each; what only
    /// one of them tells counts alone.
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

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Whole {
    /// The text.
    pub text: String,
    /// What the model said it thought.
    pub reasoning: String,
    /// The calls of tools.
    pub calls: Vec<ToolCall>,
    /// What the provider wants to have back with the results of the calls.
    pub opaque: Option<serde_json::Value>,
    /// What it cost.
    pub usage: Usage,
    /// Why it ended; `None` when it did not.
    pub stop: Option<Stop>,
}

impl Whole {
    /// Adds a piece.
    pub fn add(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => self.text += &text,
            Piece::Reasoning(text) => self.reasoning += &text,
            Piece::Call(call) => self.calls.push(call),
            Piece::Opaque(opaque) => self.opaque = Some(opaque),
            Piece::Usage(usage) => self.usage = self.usage.with(usage),
            Piece::Stopped(stop) => self.stop = Some(stop),
        }
    }

    /// Reads a reply to its end. What came before an error is kept.
    ///
    /// # Errors
    /// Those of the reply.
    pub async fn read(&mut self, reply: &mut dyn Reply) -> Result<(), ProviderError> {
        while let Some(piece) = reply.next().await? {
            self.add(piece);
        }
        Ok(())
    }
}

/// The error of a conversation that somebody no longer wants.
pub fn cancelled(provider: &dyn Provider) -> ProviderError {
    ProviderError {
        kind: ErrorKind::Cancelled,
        provider: provider.name().to_owned(),
        model: provider.model().to_owned(),
        what: "the request was cancelled".to_owned(),
        retry_after: None,
        overflow: None,
    }
}

/// The error of an answer that cannot be an answer.
pub fn malformed(provider: &dyn Provider, what: &str) -> ProviderError {
    ProviderError { kind: ErrorKind::Malformed, what: what.to_owned(), ..cancelled(provider) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_nobody_can_have_meant_do_not_overflow() {
        let told = |tokens: u64| Usage { input: Some(tokens), ..Usage::default() };
        let mut whole = Whole::default();
        whole.add(Piece::Usage(told(u64::MAX)));
        assert_eq!(whole.usage, told(MOST_TOKENS));
        assert_eq!(told(u64::MAX).plus(told(u64::MAX)), told(MOST_TOKENS));
        assert_eq!(told(1).plus(told(2)).plus(Usage::default()), told(3));
    }
}
