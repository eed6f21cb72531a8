//! Units: groups of messages that are kept or left out as a whole.
//!
//! Models refuse a tool call without its result and a result without its call. An assistant's
//! message and the results of its calls are therefore one unit, however far apart they are.

use std::sync::Mutex;

use super::reading::Readings;
use crate::retrieval::index::WordIndex;
use crate::session::message::{Message, Role};
use crate::session::normal::{Answered, Calls};
use crate::tokens::Measure;

/// What was read of messages, kept by message number for the next windows.
#[derive(Default)]
pub struct HistoryCache {
    /// Index of the messages' words. Queries read the index, and add the words that are missing.
    pub index: Mutex<WordIndex>,
    /// Lines and names of the messages that were last read to choose lines.
    pub readings: Mutex<Readings>,
}

/// The messages that a window is chosen from, in the order of the log, and their units.
#[derive(Clone)]
pub struct History<'a> {
    /// The messages, oldest first.
    pub messages: Vec<&'a Message>,
    /// Units, in the order of their first messages. Each message is in exactly one unit.
    pub units: Vec<Unit>,
    /// Measure of a message's cost.
    pub measure: &'a Measure,
    /// Messages that a summary stands in for; `None` without a summary.
    pub folded: Option<Folded>,
    /// What earlier windows read of the messages; `None` lets each window read the messages anew.
    pub words: Option<&'a HistoryCache>,
    /// True if the reader can ask for messages by their ids. Notes then name the ids, and how to
    /// ask.
    pub can_read: bool,
}

/// The messages of a history that a summary stands in for. A window shows them again as far as they
/// fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// For each message of the history, true if the summary stands in for it.
    pub is_folded: Vec<bool>,
    /// Index of the newest message when the summary was made.
    pub newest: usize,
    /// Maximum cost of all messages in a window, in tokens, including those that the summary stands
    /// in for. If the other messages alone cost more, their cost is the maximum.
    pub room: u64,
    /// True if the summary also stands in for messages that are not in the history.
    pub has_others: bool,
}

/// Messages that are kept or left out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Indices into the history's messages, in ascending order; at least one.
    pub members: Vec<usize>,
    /// Cost of all members, in tokens.
    pub tokens: u64,
    /// Reason why the unit cannot be left out; `None` if it can.
    pub kept: Option<KeptReason>,
    /// True if the unit is a tool result without a call: the call is not among the earlier
    /// messages, or already has a result.
    pub orphan: bool,
}

/// The reasons why a unit cannot be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeptReason {
    /// The unit is a system prompt.
    System,
    /// The unit contains a pinned message.
    Pinned,
    /// The unit is the user's first message, and a window can hold it. [Notices](Message::is_notice) count only if there are
    /// no other messages of the user.
    FirstUser,
    /// The unit is the user's last message. Notices count only if there are no other messages of
    /// the user.
    LastUser,
    /// The unit contains a call that has no result yet.
    InFlight,
    /// The user wants the unit back in this window.
    Restored,
}

impl<'a> History<'a> {
    /// Groups `messages`, which must be in the order of the log, into units.
    pub fn new(messages: Vec<&'a Message>, measure: &'a Measure) -> Self {
        Self::with_answers(messages, &[], measure)
    }

    /// Groups `messages` as [`new`](Self::new) does. A result also answers the calls with the ids in
    /// `further`, at its index, if its message of calls has them.
    pub fn with_answers(
        messages: Vec<&'a Message>,
        further: &[Vec<String>],
        measure: &'a Measure,
    ) -> Self {
        let units = units(&messages, further, measure);
        Self { messages, units, measure, folded: None, words: None, can_read: true }
    }

    /// Returns whether a summary stands in for the message with this index.
    pub fn is_folded(&self, index: usize) -> bool {
        self.folded.as_ref().is_some_and(|folded| folded.is_folded[index])
    }

    /// Returns the part of `budget` that the messages may have, in tokens. Messages that a summary
    /// stands in for are shown only within [`Folded::room`].
    pub fn room(&self, budget: u64) -> u64 {
        self.folded.as_ref().map_or(budget, |folded| budget.min(folded.room.max(self.others())))
    }

    /// Returns the cost of the messages that no summary stands in for, in tokens.
    pub fn others(&self) -> u64 {
        let others = self.messages.iter().enumerate().filter(|(index, _)| !self.is_folded(*index));
        others.map(|(_, message)| self.measure.message(message.tokens)).sum()
    }

    /// Allows the user's first message to be left out, for a window in which it does not fit.
    /// Returns whether this changed anything. The user's last message always stays.
    pub fn let_go_of_first(&mut self) -> bool {
        let has_last = self.units.iter().any(|unit| unit.kept == Some(KeptReason::LastUser));
        let first = self.units.iter_mut().find(|unit| unit.kept == Some(KeptReason::FirstUser));
        first.filter(|_| has_last).is_some_and(|unit| unit.kept.take().is_some())
    }

    /// Returns the index of each message's unit.
    pub fn unit_of_each_message(&self) -> Vec<usize> {
        let mut units = vec![0; self.messages.len()];
        for (at, unit) in self.units.iter().enumerate() {
            unit.members.iter().for_each(|member| units[*member] = at);
        }
        units
    }

    /// Returns the cost of the whole history, in tokens.
    pub fn tokens(&self) -> u64 {
        self.units.iter().map(|unit| unit.tokens).sum()
    }

    /// Returns the numbers of the messages of a unit.
    pub fn numbers(&self, unit: &Unit) -> Vec<u64> {
        self.members(unit).map(|message| message.number).collect()
    }

    /// Iterates over the messages of a unit.
    pub fn members<'b>(&'b self, unit: &'b Unit) -> impl Iterator<Item = &'a Message> + 'b {
        unit.members.iter().map(|&index| self.messages[index])
    }
}

impl KeptReason {
    /// Returns the reason in words, as reports show it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::System => "a system prompt",
            Self::Pinned => "pinned",
            Self::FirstUser => "the first user message",
            Self::LastUser => "the last user message",
            Self::InFlight => "a tool call that has no result yet",
            Self::Restored => "wanted back by the user",
        }
    }
}

fn units(messages: &[&Message], further: &[Vec<String>], measure: &Measure) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(messages.len());
    let mut calls = Calls::default();
    for (index, message) in messages.iter().enumerate() {
        let cost = measure.message(message.tokens);
        let answered = message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool);
        if let Some(Answered::Open((at, _))) = answered.and_then(|id| calls.answer(&id, None)) {
            for id in further.get(index).into_iter().flatten() {
                calls.answer(&&**id, Some(at));
            }
            units[at].members.push(index);
            units[at].tokens += cost;
            continue;
        }
        for (place, call) in message.tool_calls.iter().enumerate() {
            calls.add(&*call.id, (units.len(), place));
        }
        let orphan = message.role == Role::Tool;
        units.push(Unit { members: vec![index], tokens: cost, kept: None, orphan });
    }
    calls.open().for_each(|(_, (at, _))| units[at].kept = Some(KeptReason::InFlight));
    mark_mandatory(messages, &mut units);
    units
}

fn mark_mandatory(messages: &[&Message], units: &mut [Unit]) {
    let first_of = |unit: &Unit| messages[unit.members[0]];
    let has_role = |unit: &Unit| first_of(unit).role == Role::User;
    // Notices count only if there is nothing else: some models refuse a window without a user.
    let by_user = |unit: &Unit| has_role(unit) && !first_of(unit).is_notice();
    let first = units.iter().position(by_user).or_else(|| units.iter().position(has_role));
    let last = units.iter().rposition(by_user).or_else(|| units.iter().rposition(has_role));
    for (at, unit) in units.iter_mut().enumerate() {
        let members = || unit.members.iter().map(|&index| messages[index]);
        unit.kept = match () {
            () if members().any(|message| message.role == Role::System) => Some(KeptReason::System),
            () if members().any(|message| message.pinned) => Some(KeptReason::Pinned),
            () if first == Some(at) => Some(KeptReason::FirstUser),
            () if last == Some(at) => Some(KeptReason::LastUser),
            () => unit.kept,
        };
    }
}

#[cfg(test)]
mod tests;
