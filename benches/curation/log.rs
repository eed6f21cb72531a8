//! Messages for the measures.

use std::sync::Arc;

use contexture_program::internals::recorded::RecordedMessage;
use contexture_program::internals::session::message::{Message, Role, Signals, ToolCall};
use contexture_program::internals::tokens::{Counter, Measure, TokenizerName};

/// An append-only log. Messages are counted when they are made.
pub(crate) struct Log {
    pub(crate) messages: Vec<Message>,
    counter: Arc<dyn Counter>,
    pub(crate) measure: Measure,
}

impl Log {
    pub(crate) fn new(tokenizer: &str) -> anyhow::Result<Self> {
        let counter = TokenizerName::from_name(tokenizer).map(TokenizerName::counter);
        let counter = counter.ok_or_else(|| anyhow::anyhow!("no such tokenizer"))?;
        let measure = Measure::plain(Arc::clone(&counter));
        Ok(Self { messages: Vec::new(), counter, measure })
    }

    /// Returns the size of all contents, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.messages.iter().map(|message| message.content.len()).sum()
    }

    pub(crate) fn say(&mut self, role: Role, content: &str) {
        self.push(role, content, Vec::new(), None);
    }

    /// Adds a call with its result.
    pub(crate) fn call(&mut self, said: &str, tool: &str, arguments: &str, result: &str) {
        let id = format!("call-{}", self.messages.len());
        let call = ToolCall { id: id.clone(), name: tool.into(), arguments: arguments.into() };
        self.push(Role::Assistant, said, vec![call], None);
        self.push(Role::Tool, result, Vec::new(), Some(id));
    }

    /// Adds a message of a recorded session.
    pub(crate) fn record(&mut self, message: &RecordedMessage) {
        let RecordedMessage { role, content, tool_calls, tool_call_id, .. } = message;
        self.push(*role, content, tool_calls.clone(), tool_call_id.clone());
    }

    fn push(&mut self, role: Role, content: &str, calls: Vec<ToolCall>, answers: Option<String>) {
        let of_calls: u64 = calls
            .iter()
            .map(|call| self.counter.count(&call.name) + self.counter.count(&call.arguments))
            .sum();
        let lower = content.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        self.messages.push(Message {
            number: self.messages.len() as u64 + 1,
            role,
            content: Arc::from(content),
            timestamp: 1_790_000_000 + self.messages.len() as i64,
            phase: None,
            tool_calls: calls,
            tool_call_id: answers,
            pinned: false,
            tokens: self.counter.count(content) + of_calls,
            counted_by: self.counter.name(),
            signals: Signals {
                error: has(&["error", "failed", "failure", "exception", "panic"]),
                success: has(&["success", "completed"]),
                operation: false,
                long: content.chars().count() > 1000,
            },
            opaque: None,
        });
    }
}
