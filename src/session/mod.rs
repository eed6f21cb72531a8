//! Conversations: what was said, in an append-only log, and what of it is in view.
//!
//! Pure: positions, times and counts are arguments. How a window is chosen from what is in view
//! is [`curation`](crate::curation)'s.

pub mod message;
pub mod signals;
pub mod spans;
pub mod state;

use std::collections::HashSet;
use std::sync::Arc;

use self::message::{Message, Role};
use self::state::State;

/// A session's log and its present state.
#[derive(Debug, Clone, Default)]
pub struct Session {
    log: Vec<Arc<Message>>,
    state: State,
    revision: u64,
    /// The ids of all calls of tools.
    calls: HashSet<String>,
}

impl Session {
    /// A session as it was stored: its log from the first message, and its newest revision.
    pub fn new(log: Vec<Message>, state: State, revision: u64) -> Self {
        let calls = log.iter().flat_map(call_ids).collect();
        let log = log.into_iter().map(Arc::new).collect();
        let mut session = Self { log, state: State::default(), revision, calls };
        session.set_state(state, revision);
        session
    }

    /// Every message ever said, oldest first; message N is at index N − 1.
    pub fn log(&self) -> &[Arc<Message>] {
        &self.log
    }

    /// How many messages the log has.
    pub fn length(&self) -> u64 {
        self.log.len() as u64
    }

    /// What is in view.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The number of the present revision; 0 before the first.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The message with this number.
    pub fn message(&self, number: u64) -> Option<&Message> {
        self.log.get(usize::try_from(number.checked_sub(1)?).ok()?).map(|message| &**message)
    }

    /// The messages of the conversation, without those that were rolled back.
    pub fn active(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.log.iter().filter(|message| self.state.is_active(message.number))
    }

    /// The messages in view: active, and neither pruned nor summarized.
    pub fn in_view(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.log.iter().filter(|message| self.state.is_in_view(message.number))
    }

    /// How many turns the conversation has: each begins with what the user says.
    pub fn turns(&self) -> u64 {
        self.turn_numbers().count() as u64
    }

    /// The numbers of the messages with which the turns begin, ascending.
    pub fn turn_numbers(&self) -> impl Iterator<Item = u64> {
        self.active().filter(|message| message.role == Role::User).map(|message| message.number)
    }

    /// Appends a message, which must have the next number.
    pub fn append(&mut self, message: Message) {
        debug_assert_eq!(message.number, self.length() + 1);
        self.calls.extend(call_ids(&message));
        self.log.push(Arc::new(message));
    }

    /// Whether a message of the log calls a tool by this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    /// Makes a revision the present one.
    pub fn set_state(&mut self, state: State, revision: u64) {
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
