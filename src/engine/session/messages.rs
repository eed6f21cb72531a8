//! Adding to a session's log.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::clock::not_ahead;
use super::super::{Engine, EngineError};
use crate::session::message::{Message, Phase, Role, Signals, ToolCall};
use crate::tokens::Counter;

/// A message before it has a number and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Who says it.
    pub role: Role,
    /// The text.
    pub content: Arc<str>,
    /// The phase of the work.
    pub phase: Option<Phase>,
    /// The tools that it calls.
    pub tool_calls: Vec<ToolCall>,
    /// The call that it answers.
    pub tool_call_id: Option<String>,
    /// Whether it is never to be left out.
    pub pinned: bool,
    /// How many tokens content and calls have.
    pub tokens: u64,
    /// The counter's name.
    pub counted_by: &'static str,
    /// Unix seconds at which it was said, when that was not now.
    pub timestamp: Option<i64>,
}

/// What was added to a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The new messages' numbers, in order.
    pub numbers: Vec<u64>,
    /// Those among them that answer a call which the log does not have.
    pub orphans: Vec<u64>,
}

/// What a turn of a chat has come to, as far as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It has ended with this message.
    Wholly(Arc<Message>),
    /// Of its last answer there is only what came before something failed.
    InPart(u64),
    /// The model has not answered, or called tools and got their results.
    NotYet,
}

impl Engine {
    /// What has come of the turn that began with message `question` in a chat that was called with
    /// a key.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn answered(&mut self, id: u64, question: u64, key: &str) -> Result<Answered, EngineError> {
        let ended = self.recall::<()>("chat-ended", key)?.is_some();
        let session = self.session(id)?;
        let later = session.active().filter(|said| said.number > question);
        let run = later.take_while(|said| said.role != Role::User);
        let last = run.last().filter(|said| said.role == Role::Assistant);
        // An answer that calls tools is not the last one.
        let last = last.filter(|said| said.tool_calls.is_empty()).cloned();
        Ok(match last {
            Some(said) if ended => Answered::Wholly(said),
            Some(said) if session.state().is_in_view(said.number) => Answered::InPart(said.number),
            _ => Answered::NotYet,
        })
    }

    /// Notes that the chat that was called with a key has its whole answer.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn note_answered(&mut self, key: &str) -> Result<(), EngineError> {
        self.once("chat-ended", Some(key), |_| Ok(()))
    }

    /// Takes the beginning of an answer out of view, because the whole will be asked for. The log
    /// keeps it.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn set_aside(&mut self, id: u64, number: u64) -> Result<(), EngineError> {
        let session = self.session(id)?;
        let mut state = session.state().rebased(session.length());
        state.pruned.insert(number, number);
        self.revise(id, "chat", state)?;
        self.session_changed(id, "chat")
    }

    /// Appends messages to a session's log.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn add_messages(&mut self, id: u64, new: Vec<NewMessage>) -> Result<Said, EngineError> {
        let said = self.append(id, new)?;
        self.session_changed(id, "add-message")?;
        Ok(said)
    }

    /// Pins messages or unpins them.
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
        let mut state = session.state().rebased(length);
        for &number in numbers {
            match pinned {
                true => state.pinned.insert(number, number),
                false => state.pinned.remove(number),
            }
        }
        self.revise(id, "pin-message", state)?;
        self.session_changed(id, "pin-message")
    }

    /// Appends without an event of its own.
    pub(super) fn append(&mut self, id: u64, new: Vec<NewMessage>) -> Result<Said, EngineError> {
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
        self.store.append_messages(id, &messages)?;
        self.touch_session(id);
        let session = self.session_mut(id)?;
        let mut said = Said { numbers: Vec::new(), orphans: Vec::new() };
        let mut pinned = Vec::new();
        for message in messages {
            said.numbers.push(message.number);
            let answers = |call: &str| session.has_call(call);
            if message.role == Role::Tool && !message.tool_call_id.as_deref().is_some_and(answers) {
                said.orphans.push(message.number);
            }
            if message.pinned {
                pinned.push(message.number);
            }
            session.append(message);
        }
        if !pinned.is_empty() {
            let mut state = session.state().rebased(session.length());
            pinned.iter().for_each(|&number| state.pinned.insert(number, number));
            self.revise(id, "add-message", state)?;
        }
        Ok(said)
    }
}

impl NewMessage {
    /// A message of now, with its tokens counted.
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
            pinned: false,
            counted_by: counter.name(),
            timestamp: None,
        }
    }

    /// How many tokens a message has: its content, and the names and arguments of its calls.
    pub fn tokens_of(counter: &dyn Counter, content: &str, calls: &[ToolCall]) -> u64 {
        let of_call = |call: &ToolCall| counter.count(&call.name) + counter.count(&call.arguments);
        counter.count(content) + calls.iter().map(of_call).sum::<u64>()
    }

    /// The message with its number and time, in Unix seconds.
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
            pinned: self.pinned,
            tokens: self.tokens,
            counted_by: self.counted_by,
            signals,
        }
    }
}
