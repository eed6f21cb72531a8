//! Finds which results answer which calls, and lays a history out for a window.
//!
//! In normal form, results directly follow their calls, and each call has a result.

use std::borrow::Cow;

use contexture_core::session::message::{Message as Logged, Role, Signals};
use contexture_core::session::normal::{
    Answered, CallPlace, Calls, NO_RESULT, result_without_call, system_note,
};

use crate::message::{self, Message};

/// A history as strategies choose from it.
pub(crate) struct Laid {
    /// The messages, numbered from 1.
    pub(crate) messages: Vec<Logged>,
    /// Origin of each message.
    pub(crate) origins: Vec<LaidOrigin>,
    /// For each message, the ids of the calls that it answers beyond the first.
    pub(crate) further: Vec<Vec<String>>,
}

/// The origin of a laid message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LaidOrigin {
    /// The message with this index.
    Message(usize),
    /// The message with this index, which must be sent as one of the user.
    AsUser(usize),
    /// No message: a result for the call with this id.
    NoResult(String),
}

/// The calls and results of a history.
struct MatchedCalls {
    /// For each message, the calls that it answers, all from one message.
    answers: Vec<Vec<CallPlace>>,
    /// For each message, the later messages that answer its calls.
    answered_by: Vec<Vec<usize>>,
    /// For each message, its calls without a result, with their ids.
    open: Vec<Vec<(CallPlace, String)>>,
}

impl MatchedCalls {
    /// Finds the call of each result. The further results of a message belong to the same message as
    /// its first.
    fn of<M: Message>(history: &[M]) -> Self {
        let mut calls: Calls<String> = Calls::default();
        let mut answers = vec![Vec::new(); history.len()];
        let mut answered_by = vec![Vec::new(); history.len()];
        for (at, message) in history.iter().enumerate() {
            let mut caller = None;
            for id in message.answers() {
                let Some(Answered::Open(call)) = calls.answer(&id.into_owned(), caller) else {
                    continue;
                };
                caller = Some(call.0);
                answers[at].push(call);
            }
            if let Some(caller) = caller {
                answered_by[caller].push(at);
                continue;
            }
            for (place, call) in message.calls().into_iter().enumerate() {
                calls.add(call.id.into_owned(), (at, place));
            }
        }
        let mut of_messages = vec![Vec::new(); history.len()];
        calls.open().for_each(|(id, call)| of_messages[call.0].push((call, id)));
        of_messages.iter_mut().for_each(|calls| calls.sort());
        Self { answers, answered_by, open: of_messages }
    }
}

/// Lays out a history: as it is, or in normal form.
pub(crate) fn laid<M: Message>(
    history: &[M],
    count: &dyn Fn(&str) -> u64,
    is_normal: bool,
) -> Laid {
    let matched = MatchedCalls::of(history);
    let laid = Laid { messages: vec![], origins: vec![], further: vec![] };
    let mut laying = Laying { history, count, laid };
    let leading = history.iter().take_while(|it| it.role() == Role::System).count();
    for (at, message) in history.iter().enumerate() {
        let is_result = message.role() == Role::Tool || !message.answers().is_empty();
        match is_normal {
            true if !matched.answers[at].is_empty() => {}
            true if is_result => laying.as_user(at, Role::Tool, result_without_call),
            true if at >= leading && message.role() == Role::System => {
                laying.as_user(at, Role::System, system_note);
            }
            true => {
                laying.message(at, &[]);
                for result in &matched.answered_by[at] {
                    laying.message(*result, &matched.answers[*result]);
                }
                matched.open[at].iter().for_each(|(call, id)| laying.no_result(*call, id));
            }
            false => laying.message(at, &matched.answers[at]),
        }
    }
    laying.laid
}

/// A history that is being laid out.
struct Laying<'a, M> {
    history: &'a [M],
    count: &'a dyn Fn(&str) -> u64,
    laid: Laid,
}

impl<M: Message> Laying<'_, M> {
    /// Adds a message, which answers these calls.
    fn message(&mut self, at: usize, answers: &[CallPlace]) {
        let message = &self.history[at];
        let role = match message.answers().is_empty() {
            true => message.role(),
            false => Role::Tool,
        };
        let tokens = message.tokens(self.count);
        let mut answers = answers.iter().copied().map(message::id);
        let first = answers.next();
        let mut own = message::logged(message, at, role, &message.text(), first, tokens);
        if own.tool_call_id.is_some() {
            // What answers a call asks for none: servers have no such messages.
            own.tool_calls.clear();
        }
        self.add(own, answers.collect(), LaidOrigin::Message(at));
    }

    /// Adds a message that is sent as one of the user, with another text.
    fn as_user(&mut self, at: usize, role: Role, text: fn(&str) -> String) {
        let message = &self.history[at];
        let own: Cow<'_, str> = message.text();
        let sent = text(&own);
        let tokens = message.tokens(self.count) + (self.count)(&sent);
        let tokens = tokens.saturating_sub((self.count)(&own));
        let logged = message::logged(message, at, role, &sent, None, tokens);
        self.add(Logged { tool_calls: Vec::new(), ..logged }, Vec::new(), LaidOrigin::AsUser(at));
    }

    /// Adds a result for a call that has none.
    fn no_result(&mut self, call: CallPlace, id: &str) {
        let Some(before) = self.laid.messages.last() else { return };
        let result = Logged {
            role: Role::Tool,
            content: NO_RESULT.into(),
            tool_call_id: Some(message::id(call)),
            tool_calls: Vec::new(),
            tokens: (self.count)(NO_RESULT),
            signals: Signals::default(),
            pinned: false,
            ..before.clone()
        };
        self.add(result, Vec::new(), LaidOrigin::NoResult(id.to_owned()));
    }

    fn add(&mut self, message: Logged, further: Vec<String>, origin: LaidOrigin) {
        let number = self.laid.messages.len() as u64 + 1;
        self.laid.messages.push(Logged { number, ..message });
        self.laid.origins.push(origin);
        self.laid.further.push(further);
    }
}
