//! One form of messages for every kind of server, which the strictest chat templates accept.
//!
//! There is one system message, and it is first. Then user and assistant take turns; the user
//! begins, and the last word is the user's or a tool's. Each call has its result right behind it,
//! its arguments are a JSON object, and ids and names have only characters that all servers take.
//! Nothing that is said is lost, and the log is not touched.
//!
//! What the system says later does not go into the first message: that would change the beginning of
//! every later request, on which prompt caches live. It becomes a part of the user's message before
//! it, also when calls stand between the two, so that the rounds of a turn have one beginning.

mod call;

use std::collections::HashMap;
use std::sync::Arc;

use self::call::{Ids, name, object};
use super::chat::{Request, Said};
use crate::session::message::Role;

/// Said where somebody has to speak and nobody did.
const NOTHING: &str = "…";
/// The result of a call that has none, and the text of a result without one.
const NO_RESULT: &str = "(no result)";
const NO_OUTPUT: &str = "(no output)";
/// Separates texts that become one message.
const BETWEEN: &str = "\n\n";

/// How a kind of server differs from the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Its name, under which answers keep what must go back as it came.
    pub(super) family: &'static str,
    /// Whether the user may speak right after results of calls. Templates of the others want the
    /// model to speak in between.
    pub(super) joins_results: bool,
}

/// The request in normal form.
pub(super) fn normal(request: &Request, form: Form) -> Request {
    let said = &request.messages;
    let leading = said.iter().take_while(|said| said.role == Role::System).count();
    let texts = said[..leading].iter().map(|said| &said.content);
    let mut system: Option<Arc<str>> = None;
    for text in texts.filter(|text| !is_blank(text)) {
        system = Some(system.map_or_else(|| text.clone(), |before| joined(&before, text)));
    }
    let results = Results::of(&said[leading..]);
    let mut speakers = Speakers { form, ids: Ids::default(), turns: Vec::new() };
    for (at, said) in said.iter().enumerate().skip(leading) {
        speakers.add(at, said, &results.of_message(at - leading, request, leading));
    }
    speakers.end(said.len());
    let turns = speakers.turns;
    let steady = turns.iter().take_while(|turn| turn.until < request.stable).count();
    let stable = match request.stable < leading {
        true => 0,
        false => steady + usize::from(system.is_some()),
    };
    let system = system.map(|text| Said { content: text, ..Said::new(Role::System, "") });
    let messages = system.into_iter().chain(turns.into_iter().map(|turn| turn.said)).collect();
    Request { messages, stable: if request.stable == 0 { 0 } else { stable }, ..request.clone() }
}

/// Which messages are the results of which calls, by their places.
struct Results {
    /// By the message with the call, and the call's place in it.
    of_calls: HashMap<(usize, usize), Vec<usize>>,
    /// Messages that are the result of a call.
    placed: Vec<bool>,
}

impl Results {
    fn of(said: &[Said]) -> Self {
        let mut calls: Vec<((usize, usize), &str)> = Vec::new();
        let mut found = Self { of_calls: HashMap::new(), placed: vec![false; said.len()] };
        for (at, said) in said.iter().enumerate() {
            let own = said.tool_calls.iter().enumerate();
            if said.role == Role::Assistant {
                calls.extend(own.map(|(place, call)| ((at, place), &*call.id)));
            }
            let Some(id) = said.tool_call_id.as_deref().filter(|_| said.role == Role::Tool) else {
                continue;
            };
            if let Some(call) = found.caller(&calls, id) {
                found.of_calls.entry(call).or_default().push(at);
                found.placed[at] = true;
            }
        }
        found
    }

    /// The call that a result with this id answers: of the last message that has one of this id,
    /// the first that has no result yet, else the last.
    fn caller(&self, calls: &[((usize, usize), &str)], id: &str) -> Option<(usize, usize)> {
        let same = |(_, known): &&((usize, usize), &str)| *known == id;
        let (last, _) = calls.iter().rev().find(same)?;
        let of_last = calls.iter().filter(same).filter(|(call, _)| call.0 == last.0);
        let mut open = of_last.map(|(call, _)| *call).filter(|c| !self.of_calls.contains_key(c));
        Some(open.next().unwrap_or(*last))
    }

    /// What is to be known of a message to place it.
    fn of_message<'r>(&self, at: usize, request: &'r Request, leading: usize) -> Placed<'r> {
        let said = &request.messages[leading + at];
        let of_call = |place| {
            let places = self.of_calls.get(&(at, place)).map_or(&[][..], Vec::as_slice);
            places.iter().map(|at| (leading + at, &request.messages[leading + at])).collect()
        };
        Placed {
            results: (0..said.tool_calls.len()).map(of_call).collect(),
            is_result: self.placed[at],
        }
    }
}

/// Where a message belongs.
struct Placed<'r> {
    /// The results of each of its calls, with their places.
    results: Vec<Vec<(usize, &'r Said)>>,
    /// It was placed behind the call that it is the result of.
    is_result: bool,
}

/// A message, and up to which place of the request it was made of.
struct Turn {
    said: Said,
    until: usize,
}

/// The messages as they come to be.
struct Speakers {
    form: Form,
    ids: Ids,
    turns: Vec<Turn>,
}

impl Speakers {
    fn add(&mut self, at: usize, said: &Said, placed: &Placed<'_>) {
        let is_empty = is_blank(&said.content);
        match said.role {
            Role::Assistant if !said.tool_calls.is_empty() => self.calls(at, said, placed),
            Role::Tool if placed.is_result => {}
            _ if is_empty => {}
            Role::Assistant => self.assistant(at, said.clone()),
            Role::User => self.user(at, Arc::clone(&said.content)),
            Role::Tool => self.user(at, format!("Result of a tool:\n{}", said.content).into()),
            Role::System => self.note(at, &said.content),
        }
    }

    /// An answer that calls tools, with the results.
    fn calls(&mut self, at: usize, said: &Said, placed: &Placed<'_>) {
        let mut said = said.clone();
        let is_kept = said.kept(self.form.family).is_some();
        if said.content.trim().is_empty() {
            said.content = "".into();
        }
        for call in &mut said.tool_calls {
            call.id = self.ids.of(&call.id, is_kept);
            if !is_kept {
                call.name = name(&call.name);
            }
            call.arguments = object(&call.arguments);
        }
        let ids: Vec<String> = said.tool_calls.iter().map(|call| call.id.clone()).collect();
        self.assistant(at, said);
        for (id, results) in ids.into_iter().zip(&placed.results) {
            let mut content: Option<Arc<str>> = None;
            for (_, result) in results {
                let text = Arc::clone(&result.content);
                content = Some(content.map_or(text, |before| joined(&before, &result.content)));
            }
            let content = content.unwrap_or_else(|| NO_RESULT.into());
            let content = if is_blank(&content) { NO_OUTPUT.into() } else { content };
            let until = results.iter().map(|(at, _)| *at).fold(at, usize::max);
            let said = Said { content, ..Said::new(Role::Tool, "") };
            self.turns.push(Turn { said: Said { tool_call_id: Some(id), ..said }, until });
        }
    }

    fn assistant(&mut self, at: usize, said: Said) {
        match self.turns.last_mut() {
            None => self.say(at, Role::User, NOTHING.into()),
            Some(last) if last.said.role == Role::Assistant => {
                // What must go back as it came is joined with nothing.
                if last.said.opaque.is_none() && said.opaque.is_none() {
                    if !is_blank(&said.content) {
                        last.said.content = joined(&last.said.content, &said.content);
                    }
                    last.said.tool_calls.extend(said.tool_calls);
                    last.until = at;
                    return;
                }
                self.say(at, Role::User, NOTHING.into());
            }
            Some(_) => {}
        }
        self.turns.push(Turn { said, until: at });
    }

    fn user(&mut self, at: usize, text: Arc<str>) {
        match self.turns.last_mut() {
            Some(last) if last.said.role == Role::User => last.add(at, &text),
            Some(last) if last.said.role == Role::Tool && !self.form.joins_results => {
                self.say(at, Role::Assistant, NOTHING.into());
                self.say(at, Role::User, text);
            }
            _ => self.say(at, Role::User, text),
        }
    }

    /// What the system says in the middle.
    fn note(&mut self, at: usize, text: &str) {
        let text: Arc<str> = format!("<system-note>\n{text}\n</system-note>").into();
        let answer =
            |turn: &Turn| turn.said.role == Role::Assistant && turn.said.tool_calls.is_empty();
        let in_turn = self.turns.iter_mut().rev().take_while(|turn| !answer(turn));
        match in_turn.into_iter().find(|turn| turn.said.role == Role::User) {
            Some(user) => user.add(at, &text),
            None => self.user(at, text),
        }
    }

    /// Nobody is asked who has spoken last.
    fn end(&mut self, at: usize) {
        if self.turns.last().is_none_or(|last| last.said.role == Role::Assistant) {
            self.say(at, Role::User, NOTHING.into());
        }
    }

    fn say(&mut self, at: usize, role: Role, content: Arc<str>) {
        let said = Said { content, ..Said::new(role, "") };
        self.turns.push(Turn { said, until: at });
    }
}

impl Turn {
    fn add(&mut self, at: usize, text: &Arc<str>) {
        self.said.content = match &*self.said.content {
            NOTHING => Arc::clone(text),
            before => joined(before, text),
        };
        self.until = self.until.max(at);
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn joined(before: &str, text: &str) -> Arc<str> {
    match before.is_empty() {
        true => text.into(),
        false => [before, BETWEEN, text].concat().into(),
    }
}

#[cfg(test)]
mod tests;
