//! The normal form of histories, which even the strictest chat templates of servers accept: which
//! results answer which calls, and the texts of messages that take another's place.

use std::collections::HashMap;
use std::hash::Hash;

/// The place of a call: a number for its message, and its place among the calls of the message.
pub type CallPlace = (usize, usize);

/// The calls of a history, by their ids, which may repeat.
#[derive(Debug, Default)]
pub struct Calls<K> {
    /// Calls with the same id, oldest first, each with whether it has a result.
    by_id: HashMap<K, Vec<(CallPlace, bool)>>,
}

/// The call that a result answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// A call without a result so far.
    Open(CallPlace),
    /// A call that has a result: no call with the id is open.
    Again(CallPlace),
}

impl<K: Hash + Eq> Calls<K> {
    /// Adds a call. Calls are added in the order of their messages.
    pub fn add(&mut self, id: K, place: CallPlace) {
        self.by_id.entry(id).or_default().push((place, false));
    }

    /// Finds the call that a result with this id answers, and notes that it has a result. The call
    /// is the first open one of the newest message with an open one. If `message` is given, only its
    /// calls count. `None` if there is no call with the id.
    pub fn answer(&mut self, id: &K, message: Option<usize>) -> Option<Answered> {
        let calls = self.by_id.get_mut(id)?;
        let counts = |place: &CallPlace| message.is_none_or(|message| message == place.0);
        let newest = calls.iter().rfind(|(place, is_answered)| !is_answered && counts(place));
        let Some(newest) = newest.map(|(place, _)| place.0) else {
            let last = calls.iter().rfind(|(place, _)| counts(place));
            return last.map(|(place, _)| Answered::Again(*place));
        };
        let first = calls.iter_mut().find(|(place, is_answered)| place.0 == newest && !is_answered);
        first.map(|(place, is_answered)| {
            *is_answered = true;
            Answered::Open(*place)
        })
    }

    /// Returns the calls without a result, with their ids, in no particular order.
    pub fn open(self) -> impl Iterator<Item = (K, CallPlace)>
    where
        K: Clone,
    {
        let open = |(id, calls): (K, Vec<(CallPlace, bool)>)| {
            let calls = calls.into_iter().filter(|(_, is_answered)| !is_answered);
            calls.map(move |(place, _)| (id.clone(), place))
        };
        self.by_id.into_iter().flat_map(open)
    }
}

/// Text of a missing result.
pub const NO_RESULT: &str = "(no result)";

/// Returns the text of a message of the user that stands for a result without a call.
pub fn result_without_call(text: &str) -> String {
    format!("Result of a tool:\n{text}")
}

/// Returns the text of a message of the user that stands for a system message after the first
/// messages.
pub fn system_note(text: &str) -> String {
    format!("<system-note>\n{text}\n</system-note>")
}
