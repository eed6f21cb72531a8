//! Conversations: an append-only log of messages, and the part of it that is in view.
//!
//! Nothing here has side effects: positions, times and counts are arguments.
//! [`curation`](crate::curation) chooses a window from the visible messages.

pub mod message;
pub mod normal;
pub mod signals;
pub mod spans;
pub mod state;

use std::collections::HashSet;
use std::sync::Arc;

use self::message::{Message, Role};
use self::state::{Learned, SessionState};

/// A session's log and its current state.
#[derive(Debug, Clone, Default)]
pub struct Session {
    log: Vec<Arc<Message>>,
    state: SessionState,
    revision: u64,
    learned: Learned,
    /// Ids of all tool calls in the log.
    calls: HashSet<String>,
}

impl Session {
    /// Restores a session from its log, the state and number of its newest revision, and the
    /// figures learned in its turns. The log must start with the first message.
    pub fn new(log: Vec<Message>, state: SessionState, revision: u64, learned: Learned) -> Self {
        let calls = log.iter().flat_map(call_ids).collect();
        let log = log.into_iter().map(Arc::new).collect();
        let mut session = Self { log, state: SessionState::default(), revision, learned, calls };
        session.set_state(state, revision);
        session
    }

    /// Returns all messages, oldest first. Message N is at index N − 1.
    pub fn log(&self) -> &[Arc<Message>] {
        &self.log
    }

    /// Returns the number of messages in the log.
    pub fn length(&self) -> u64 {
        self.log.len() as u64
    }

    /// Returns the current state: the part of the log that is in view.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the number of the current revision; 0 before the first.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the figures learned in the session's turns.
    pub fn learned(&self) -> Learned {
        self.learned
    }

    /// Replaces the figures learned in the session's turns.
    pub fn set_learned(&mut self, learned: Learned) {
        self.learned = learned;
    }

    /// Iterates over the messages of the conversation, without those that were rolled back.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.log.iter().filter(|message| self.state.is_active(message.number))
    }

    /// Iterates over the messages in view: those of the conversation that are pinned, or neither
    /// pruned nor summarized.
    pub fn in_view(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.log.iter().filter(|message| self.state.is_in_view(message.number))
    }

    /// Iterates over the messages that windows may show: those in view, and those that the summary
    /// stands in for.
    pub fn offered(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.log.iter().filter(|message| self.state.is_offered(message.number))
    }

    /// Returns the number of turns. Each turn begins with a message from the user.
    pub fn turns(&self) -> u64 {
        self.turn_numbers().count() as u64
    }

    /// Iterates over the numbers of the messages that begin turns, in ascending order.
    pub fn turn_numbers(&self) -> impl Iterator<Item = u64> {
        self.active().filter(|message| message.role == Role::User).map(|message| message.number)
    }

    /// Appends a message, which must have the next number.
    pub fn append(&mut self, message: Message) {
        debug_assert_eq!(message.number, self.length() + 1);
        self.calls.extend(call_ids(&message));
        self.log.push(Arc::new(message));
    }

    /// Returns whether a message of the log makes a tool call with this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    /// Makes `state`, the revision with this number, the current one. Pins and unpins the messages
    /// accordingly.
    pub fn set_state(&mut self, state: SessionState, revision: u64) {
        for message in &mut self.log {
            let pinned = state.pinned.contains(message.number);
            if message.pinned != pinned {
                Arc::make_mut(message).pinned = pinned;
            }
        }
        self.state = state;
        self.revision = revision;
    }
}

fn call_ids(message: &Message) -> impl Iterator<Item = String> {
    message.tool_calls.iter().map(|call| call.id.clone())
}

#[cfg(test)]
mod tests;
