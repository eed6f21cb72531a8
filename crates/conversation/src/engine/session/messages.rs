//! Appends messages to a session's log, and pins them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::clock::not_ahead;
use super::super::{Engine, EngineError};
use super::curate::references;
use crate::curation::unit::History;
use crate::session::message::{Message, Phase, Role, Signals, ToolCall};
use crate::tokens::{Counter, Measure};

/// A message to append. It gets its number, and its time if it has none, when it is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub content: Arc<str>,
    /// Phase of the work.
    pub phase: Option<Phase>,
    /// Tool calls in the message.
    pub tool_calls: Vec<ToolCall>,
    /// Id of the call that the message answers.
    pub tool_call_id: Option<String>,
    /// Data that the model's server wants back with the message.
    pub opaque: Option<Arc<serde_json::Value>>,
    /// True if the message must never be left out of a window.
    pub pinned: bool,
    /// Number of tokens in the content and the tool calls.
    pub tokens: u64,
    /// Name of the counter that counted the tokens.
    pub counted_by: &'static str,
    /// Time of the message in Unix seconds; `None` means now.
    pub timestamp: Option<i64>,
}

/// Result of appending to a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendResult {
    /// Numbers of the new messages, in order.
    pub numbers: Vec<u64>,
    /// Numbers of new tool results whose call is not in the log.
    pub orphans: Vec<u64>,
}

impl Engine {
    /// Appends messages to a session's log.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn add_messages(
        &mut self,
        id: u64,
        new: Vec<NewMessage>,
    ) -> Result<AppendResult, EngineError> {
        let said = self.append(id, new)?;
        self.session_changed(id, "add-message")?;
        Ok(said)
    }

    /// Pins or unpins messages.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMessage`].
    pub fn pin_messages(
        &mut self,
        id: u64,
        numbers: &[u64],
        pinned: bool,
    ) -> Result<(), EngineError> {
        let session = self.session(id)?;
        let length = session.length();
        if let Some(&number) = numbers.iter().find(|&&number| number == 0 || number > length) {
            return Err(EngineError::NoSuchMessage { number, length });
        }
        self.change_view(id, "pin-message", |state| {
            for &number in numbers {
                match pinned {
                    true => state.pinned.insert(number, number),
                    false => state.pinned.remove(number),
                }
            }
        })?;
        self.session_changed(id, "pin-message")
    }

    /// Takes the last question out of the conversation, with all that follows it, and returns it;
    /// `None` if there is none. If `content` is given, only a question with this text is taken.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn take_back_question(
        &mut self,
        id: u64,
        content: Option<&str>,
    ) -> Result<Option<Arc<Message>>, EngineError> {
        let session = self.session(id)?;
        let is_question = |said: &&Arc<Message>| said.role == Role::User && !said.is_notice();
        let last = session.active().rfind(is_question).cloned();
        let is_meant = |last: &Arc<Message>| content.is_none_or(|text| *text == *last.content);
        let Some(last) = last.filter(is_meant) else { return Ok(None) };
        let numbers = session.active().map(|said| said.number);
        let gone: Vec<u64> = numbers.filter(|number| *number >= last.number).collect();
        self.take_away(id, &gone)?;
        Ok(Some(last))
    }

    /// Takes a message out of the conversation, with the calls and results that belong to it.
    /// Returns the numbers of all of them.
    ///
    /// # Errors
    /// [`EngineError::NoSuchMessage`] if the message is not in the conversation.
    pub fn remove_message(&mut self, id: u64, number: u64) -> Result<Vec<u64>, EngineError> {
        let measure = Measure::plain(self.counter());
        let session = self.session(id)?;
        let length = session.length();
        let messages: Vec<Arc<Message>> = session.active().cloned().collect();
        let history = History::new(references(&messages), &measure);
        let mut units = history.units.iter().map(|unit| history.numbers(unit));
        let gone = units.find(|numbers| numbers.contains(&number));
        let gone = gone.ok_or(EngineError::NoSuchMessage { number, length })?;
        self.take_away(id, &gone)?;
        Ok(gone)
    }

    /// Takes messages out of the conversation, which is a pruning that can be undone.
    fn take_away(&mut self, id: u64, gone: &[u64]) -> Result<(), EngineError> {
        self.operate(id, "prune-session", |state| {
            for number in gone {
                state.active.remove(*number);
                state.pruned.remove(*number);
            }
        })?;
        self.session_changed(id, "prune-session")
    }

    /// Appends messages without an event.
    pub(super) fn append(
        &mut self,
        id: u64,
        new: Vec<NewMessage>,
    ) -> Result<AppendResult, EngineError> {
        let now = self.now();
        let session = self.session(id)?;
        let mut number = session.length();
        let mut newest = session.log().last().map_or(i64::MIN, |message| message.timestamp);
        let messages: Vec<Message> = new
            .into_iter()
            .map(|new| {
                number += 1;
                newest = not_ahead(newest, now).max(new.timestamp.unwrap_or(now));
                new.into_message(number, newest)
            })
            .collect();
        self.store.change()?.append_messages(id, &messages)?;
        self.sessions.touch(id);
        let loaded = self.loaded(id)?;
        let mut said = AppendResult { numbers: Vec::new(), orphans: Vec::new() };
        let mut pinned = Vec::new();
        for message in messages {
            said.numbers.push(message.number);
            let answers = |call: &str| loaded.session.has_call(call);
            if message.role == Role::Tool && !message.tool_call_id.as_deref().is_some_and(answers) {
                said.orphans.push(message.number);
            }
            if message.pinned {
                pinned.push(message.number);
            }
            loaded.append(message);
        }
        if !pinned.is_empty() {
            self.change_view(id, "add-message", |state| {
                pinned.iter().for_each(|&number| state.pinned.insert(number, number));
            })?;
        }
        Ok(said)
    }
}

impl NewMessage {
    /// Creates a message and counts its tokens. The message gets its time when it is appended.
    pub fn counted(
        role: Role,
        content: &str,
        tool_calls: Vec<ToolCall>,
        counter: &dyn Counter,
    ) -> Self {
        Self {
            role,
            content: content.into(),
            phase: None,
            tokens: Self::tokens_of(counter, content, &tool_calls),
            tool_calls,
            tool_call_id: None,
            opaque: None,
            pinned: false,
            counted_by: counter.name(),
            timestamp: None,
        }
    }

    /// Counts a message's tokens: its content, and the names and arguments of its calls.
    pub fn tokens_of(counter: &dyn Counter, content: &str, calls: &[ToolCall]) -> u64 {
        let of_call = |call: &ToolCall| counter.count(&call.name) + counter.count(&call.arguments);
        counter.count(content) + calls.iter().map(of_call).sum::<u64>()
    }

    /// Returns the message with this number, and with this time in Unix seconds.
    pub fn into_message(self, number: u64, timestamp: i64) -> Message {
        let signals = Signals::of(self.role, &self.content, &self.tool_calls);
        Message {
            number,
            role: self.role,
            content: self.content,
            timestamp,
            phase: self.phase,
            tool_calls: self.tool_calls,
            tool_call_id: self.tool_call_id,
            opaque: self.opaque,
            pinned: self.pinned,
            tokens: self.tokens,
            counted_by: self.counted_by,
            signals,
        }
    }
}
