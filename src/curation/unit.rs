//! Units: what is kept or left out as a whole.
//!
//! A call of a tool without its result, or a result without its call, is refused by every model,
//! so an assistant's message and the results of its calls are one unit, however far apart.

use std::collections::HashMap;

use crate::session::message::{Message, Role};
use crate::tokens::Measure;

/// The messages in view, in the order of the log, and how they hang together.
pub struct History<'a> {
    /// The messages, oldest first.
    pub messages: Vec<&'a Message>,
    /// Their units, in the order of their first messages; each message is in exactly one.
    pub units: Vec<Unit>,
    /// What a message costs.
    pub measure: &'a Measure,
}

/// Messages that are kept or left out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Indices into the history's messages, ascending, at least one.
    pub members: Vec<usize>,
    /// What all of them cost.
    pub tokens: u64,
    /// Why it can never be left out; `None` when it can.
    pub kept: Option<Kept>,
    /// Whether it is a result whose call is not in view.
    pub orphan: bool,
}

/// Why a unit can never be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// It is a system prompt.
    System,
    /// It is pinned.
    Pinned,
    /// It is the first that the user said.
    FirstUser,
    /// It is the last that the user said.
    LastUser,
    /// A call in it has no result yet.
    InFlight,
}

impl<'a> History<'a> {
    /// Finds the units of `messages`, which are in the order of the log.
    pub fn new(messages: Vec<&'a Message>, measure: &'a Measure) -> Self {
        let units = units(&messages, measure);
        Self { messages, units, measure }
    }

    /// What the whole history costs.
    pub fn tokens(&self) -> u64 {
        self.units.iter().map(|unit| unit.tokens).sum()
    }

    /// What a unit's messages are.
    pub fn members<'b>(&'b self, unit: &'b Unit) -> impl Iterator<Item = &'a Message> + 'b {
        unit.members.iter().map(|&index| self.messages[index])
    }
}

impl Kept {
    /// The reason in words, as the report has it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::System => "a system prompt",
            Self::Pinned => "pinned",
            Self::FirstUser => "the first user message",
            Self::LastUser => "the last user message",
            Self::InFlight => "a tool call without its result yet",
        }
    }
}

fn units(messages: &[&Message], measure: &Measure) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::with_capacity(messages.len());
    let mut calls = OpenCalls::default();
    for (index, message) in messages.iter().enumerate() {
        let cost = measure.message(message.tokens);
        if let Some(at) = calls.answered_by(message) {
            units[at].members.push(index);
            units[at].tokens += cost;
            continue;
        }
        let orphan = message.role == Role::Tool;
        units.push(Unit { members: vec![index], tokens: cost, kept: None, orphan });
        calls.made_by(message, units.len() - 1);
    }
    calls.unanswered().for_each(|at| units[at].kept = Some(Kept::InFlight));
    keep_what_is_never_lost(messages, &mut units);
    units
}

fn keep_what_is_never_lost(messages: &[&Message], units: &mut [Unit]) {
    let of_user = |unit: &Unit| messages[unit.members[0]].role == Role::User;
    let first = units.iter().position(of_user);
    let last = units.iter().rposition(of_user);
    for (at, unit) in units.iter_mut().enumerate() {
        let members = || unit.members.iter().map(|&index| messages[index]);
        unit.kept = match () {
            () if members().any(|message| message.role == Role::System) => Some(Kept::System),
            () if members().any(|message| message.pinned) => Some(Kept::Pinned),
            () if first == Some(at) => Some(Kept::FirstUser),
            () if last == Some(at) => Some(Kept::LastUser),
            () => unit.kept,
        };
    }
}

/// Calls whose results have not come, by id. Ids may repeat: a result answers the newest call of
/// its id that is still open.
#[derive(Default)]
struct OpenCalls<'a> {
    open: HashMap<&'a str, Vec<usize>>,
}

impl<'a> OpenCalls<'a> {
    fn made_by(&mut self, message: &'a Message, unit: usize) {
        for call in &message.tool_calls {
            self.open.entry(&call.id).or_default().push(unit);
        }
    }

    /// The unit of the call that the message answers, which is then no longer open.
    fn answered_by(&mut self, message: &Message) -> Option<usize> {
        let id = message.tool_call_id.as_deref().filter(|_| message.role == Role::Tool)?;
        self.open.get_mut(id)?.pop()
    }

    fn unanswered(self) -> impl Iterator<Item = usize> {
        self.open.into_values().flatten()
    }
}

#[cfg(test)]
mod tests;
