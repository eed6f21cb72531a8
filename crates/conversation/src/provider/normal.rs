//! The normal form of requests for every kind of server, which even the strictest chat templates
//! accept.
//!
//! A request in this form has at most one system message, which comes first. Then user and
//! assistant alternate, beginning with the user; the last message is from the user or a tool. Each
//! call is directly followed by its result and has a JSON object as arguments. Ids and names use
//! only characters that all servers accept. No text is lost, and the stored messages do not change.
//!
//! A later system message does not go into the first one: that would change the beginning of every
//! later request and defeat prompt caches. It becomes part of the preceding user message, even if
//! calls stand between the two, so that all rounds of a turn begin alike.

mod call;

pub(super) use self::call::arguments;

use std::collections::HashMap;
use std::sync::Arc;

use self::call::{Ids, name, object};
use super::chat::{ChatMessage, Request};
use crate::session::message::Role;
use crate::session::normal::{
    Answered, CallPlace, Calls, NO_RESULT, result_without_call, system_note,
};

/// Name under which the ids of calls that the server gave are kept.
pub(super) const IDS: &str = "ids";
/// Filler for a message that must exist but has no text.
const NOTHING: &str = "…";
/// Text of an empty result.
const NO_OUTPUT: &str = "(no output)";
/// Separator of texts merged into one message.
const BETWEEN: &str = "\n\n";

/// The differences between the forms that kinds of servers need.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageForm {
    /// True if a user message may directly follow results. Other kinds of servers require an
    /// assistant message in between.
    pub(super) joins_results: bool,
    /// False if the model takes no messages with calls and results, which then become texts.
    pub(super) takes_calls: bool,
}

/// The form that the strictest servers want.
pub(super) const STRICT: MessageForm = MessageForm { joins_results: false, takes_calls: true };

impl Request {
    /// Returns the request in the form that even the strictest servers accept: at most one system
    /// message, which comes first; then user and assistant in turn, each call directly followed by
    /// its result. No text is lost. The library's own servers get this form anyway.
    #[must_use]
    pub fn normalized(&self) -> Self {
        normal(self, STRICT)
    }
}

/// Converts a request to normal form.
pub(super) fn normal(request: &Request, form: MessageForm) -> Request {
    let said = &request.messages;
    let leading = said.iter().take_while(|said| said.role == Role::System).count();
    let mut system = NormalMessage::new(0, Role::System);
    said[..leading].iter().for_each(|said| system.add(0, &said.content));
    let system = (!system.texts.is_empty()).then(|| system.spoken());
    let results = Results::of(said);
    let mut speakers = Speakers { form, ids: Ids::default(), turns: Vec::new() };
    for (at, one) in said.iter().enumerate().skip(leading) {
        speakers.add(at, one, &results, said);
    }
    speakers.end(said.len());
    let steady = speakers.turns.iter().take_while(|turn| turn.until < request.stable).count();
    let stable = match request.stable == 0 || request.stable < leading {
        true => 0,
        false => steady + usize::from(system.is_some()),
    };
    let turns = speakers.turns.into_iter().map(NormalMessage::spoken);
    Request { messages: system.into_iter().chain(turns).collect(), stable, ..request.clone() }
}

/// The assignment of result messages to calls, both by position.
struct Results {
    of_calls: HashMap<CallPlace, Vec<usize>>,
    /// For each message, true if it is the result of a call.
    placed: Vec<bool>,
}

impl Results {
    fn of(said: &[ChatMessage]) -> Self {
        let mut calls = Calls::default();
        let mut found = Self { of_calls: HashMap::new(), placed: vec![false; said.len()] };
        for (at, said) in said.iter().enumerate() {
            if said.role == Role::Assistant {
                for (place, call) in said.tool_calls.iter().enumerate() {
                    calls.add(&*call.id, (at, place));
                }
            }
            let id = said.tool_call_id.as_deref().filter(|_| said.role == Role::Tool);
            let answered = id.and_then(|id| calls.answer(&id, None));
            if let Some(Answered::Open(call) | Answered::Again(call)) = answered {
                found.of_calls.entry(call).or_default().push(at);
                found.placed[at] = true;
            }
        }
        found
    }

    fn of_call(&self, call: CallPlace) -> &[usize] {
        self.of_calls.get(&call).map_or(&[], Vec::as_slice)
    }
}

/// A message under construction. `until` is the index of the last message of the request that went
/// into it.
struct NormalMessage {
    said: ChatMessage,
    texts: Vec<Arc<str>>,
    until: usize,
}

impl NormalMessage {
    fn new(at: usize, role: Role) -> Self {
        Self { said: ChatMessage::new(role, ""), texts: Vec::new(), until: at }
    }

    fn of(at: usize, said: &ChatMessage) -> Self {
        let own = ChatMessage { content: "".into(), ..said.clone() };
        let mut turn = Self { said: own, ..Self::new(at, said.role) };
        turn.add(at, &said.content);
        turn
    }

    fn add(&mut self, at: usize, text: &Arc<str>) {
        if !is_blank(text) {
            self.texts.push(Arc::clone(text));
        }
        self.until = self.until.max(at);
    }

    fn spoken(self) -> ChatMessage {
        let content = match &*self.texts {
            [] if self.said.tool_calls.is_empty() && self.said.pictures.is_empty() => {
                NOTHING.into()
            }
            [] => "".into(),
            [text] => Arc::clone(text),
            texts => texts.join(BETWEEN).into(),
        };
        ChatMessage { content, ..self.said }
    }
}

/// The messages built so far.
struct Speakers {
    form: MessageForm,
    ids: Ids,
    turns: Vec<NormalMessage>,
}

impl Speakers {
    fn add(&mut self, at: usize, said: &ChatMessage, results: &Results, all: &[ChatMessage]) {
        match said.role {
            Role::Assistant if !said.tool_calls.is_empty() && self.form.takes_calls => {
                self.calls(at, said, results, all);
            }
            Role::Tool if results.placed[at] && self.form.takes_calls => {}
            _ if is_blank(&said.content) && said.pictures.is_empty() => {}
            Role::Assistant => {
                self.assistant(at, &ChatMessage { tool_calls: Vec::new(), ..said.clone() });
            }
            Role::User => {
                self.user(at, &said.content);
                if let Some(user) = self.turns.last_mut() {
                    user.said.pictures.extend_from_slice(&said.pictures);
                }
            }
            Role::Tool => self.user(at, &result_without_call(&said.content).into()),
            Role::System => self.note(at, &said.content),
        }
    }

    /// Adds an answer with tool calls, and their results.
    fn calls(&mut self, at: usize, said: &ChatMessage, results: &Results, all: &[ChatMessage]) {
        let is_kept = said.kept().is_some();
        let given = said.opaque.as_ref().and_then(|opaque| opaque[IDS].as_array());
        let mut own = said.clone();
        for call in &mut own.tool_calls {
            let is_given = given.is_some_and(|ids| ids.iter().any(|id| *id == *call.id));
            call.id = self.ids.of(&call.id, is_given);
            call.name = if is_kept { call.name.clone() } else { name(&call.name) };
            call.arguments = object(&call.arguments);
        }
        let ids: Vec<String> = own.tool_calls.iter().map(|call| call.id.clone()).collect();
        self.assistant(at, &own);
        for (place, id) in ids.into_iter().enumerate() {
            let mut result = NormalMessage::new(at, Role::Tool);
            let of_call = results.of_call((at, place));
            of_call.iter().for_each(|from| result.add(*from, &all[*from].content));
            if result.texts.is_empty() {
                let text = if of_call.is_empty() { NO_RESULT } else { NO_OUTPUT };
                result.texts.push(text.into());
            }
            result.said.tool_call_id = Some(id);
            self.turns.push(result);
        }
    }

    fn assistant(&mut self, at: usize, said: &ChatMessage) {
        match self.turns.last_mut() {
            None => self.turns.push(NormalMessage::new(at, Role::User)),
            Some(last) if last.said.role == Role::Assistant => {
                // Opaque data must be returned unchanged, so messages that have it are not merged.
                if last.said.opaque.is_none() && said.opaque.is_none() {
                    last.add(at, &said.content);
                    last.said.tool_calls.extend_from_slice(&said.tool_calls);
                    return;
                }
                self.turns.push(NormalMessage::new(at, Role::User));
            }
            Some(_) => {}
        }
        self.turns.push(NormalMessage::of(at, said));
    }

    fn user(&mut self, at: usize, text: &Arc<str>) {
        let last = self.turns.last().map(|turn| turn.said.role);
        if last == Some(Role::Tool) && !self.form.joins_results {
            self.turns.push(NormalMessage::new(at, Role::Assistant));
        }
        if last != Some(Role::User) {
            self.turns.push(NormalMessage::new(at, Role::User));
        }
        if let Some(user) = self.turns.last_mut() {
            user.add(at, text);
        }
    }

    /// Adds a system message that comes after other messages.
    fn note(&mut self, at: usize, text: &str) {
        let text: Arc<str> = system_note(text).into();
        let is_answer = |turn: &NormalMessage| {
            turn.said.role == Role::Assistant && turn.said.tool_calls.is_empty()
        };
        let mut of_turn = self.turns.iter_mut().rev().take_while(|turn| !is_answer(turn));
        match of_turn.find(|turn| turn.said.role == Role::User) {
            Some(user) => user.add(at, &text),
            None => self.user(at, &text),
        }
    }

    /// Adds a user message if the last message is from the assistant or there is none.
    fn end(&mut self, at: usize) {
        if self.turns.last().is_none_or(|last| last.said.role == Role::Assistant) {
            self.turns.push(NormalMessage::new(at, Role::User));
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

#[cfg(test)]
mod tests;
